"""The node behind a tensor: a ``lazy`` operation on other nodes, or an input. Nothing is computed.

Nodes are light and hold no IR; :mod:`plait.frontend.trace` emits the IR of a graph when it is
needed. The classes of this package build on each other, each adding methods:
``Node -> Movement -> Elementwise -> Reductions -> Indexing -> Tensor``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute

from plait.dialects import lazy
from plait.dtypes import (
    Array,
    ElementType,
    is_bool,
    is_float,
    name_of_type,
    type_of_name,
)
from plait.errors import PlaitError
from plait.frontend.api import is_integer

Shape = tuple[int, ...]
Scalar = float | int | bool
LARGEST_SPLAT = 1024
"""Elements of a constant beyond which it is expanded: a dense attribute holds every one."""
Vjp = Callable[[Any], Sequence[Any]]
"""From the gradient of a result to the gradients of what it was made of (None: no gradient)."""


class Node:
    """A tensor value that has not been computed."""

    __array_ufunc__ = None
    """numpy leaves arithmetic of arrays and tensors to tensors."""

    __slots__ = (
        "__weakref__",
        "alias_of",
        "array",
        "donated",
        "element",
        "name",
        "op",
        "properties",
        "shape",
        "sources",
        "vjp",
        "vjp_sources",
    )

    def __init__(
        self,
        op: type[lazy.LazyOp] | None,
        sources: Sequence[Node],
        shape: Shape,
        element: ElementType,
        properties: Mapping[str, Attribute] | None = None,
    ):
        self.op = op
        """The operation, or None for an input."""
        self.sources = tuple(sources)
        self.shape = shape
        """Extent per axis."""
        self.element = element
        self.properties = dict(properties or {})
        self.array: Array | None = None
        """The data of an input that has some."""
        self.name: str | None = None
        self.donated = False
        self.alias_of: Node | None = None
        """The input whose buffer this result takes over."""
        self.vjp: Vjp | None = None
        """The gradient of a composite, if it has one of its own."""
        self.vjp_sources: tuple[Node, ...] = ()

    # What it is

    @property
    def dtype(self) -> str:
        """The element type by its PyTorch name: ``float32``, ``int64``, ``bool``, ..."""
        return name_of_type(self.element)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_floating(self) -> bool:
        return is_float(self.element)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise PlaitError(
            "the truth of a tensor is not known while the program is built: use `where` to choose "
            "by its elements, or `.numpy()` to compute it"
        )

    def __float__(self) -> float:
        raise self._not_computed("float")

    def __int__(self) -> int:
        raise self._not_computed("int")

    def _not_computed(self, kind: str) -> PlaitError:
        return PlaitError(
            f"a tensor has no value while the program is built: use `.cast('{kind}32')` to convert "
            f"its elements, or `{kind}(x.item())` to compute it"
        )

    # Making nodes

    def make(
        self,
        op: type[lazy.LazyOp],
        sources: Sequence[Node],
        shape: Shape,
        element: ElementType | None = None,
        **properties: Attribute,
    ) -> Self:
        """The node of an operation; ``element`` is this node's by default."""
        return type(self)(op, sources, shape, element or self.element, properties)

    def full_like(self, value: Scalar, element: ElementType | None = None) -> Self:
        """A constant of this tensor's shape."""
        return self.constant(value, element or self.element, self.shape)

    @classmethod
    def constant(cls, value: Scalar, element: ElementType, shape: Shape) -> Self:
        """A tensor with one value everywhere."""
        small = math.prod(shape) <= LARGEST_SPLAT
        attr = scalar_attr(value, element)
        held = shape if small else (1,) * len(shape)
        dense = cast(Any, DenseIntOrFPElementsAttr).from_list(
            TensorType(element, held), [attr.value.data] if 0 not in held else []
        )
        made = cls(lazy.ConstantOp, (), held, element, {"value": dense})
        return made if small else cls(lazy.ExpandOp, [made], shape, element)

    @classmethod
    def literal(cls, values: Array, element: ElementType) -> Self:
        """A tensor with every element listed in the program."""
        dense = cast(Any, DenseIntOrFPElementsAttr).from_list(
            TensorType(element, values.shape), values.reshape(-1).tolist()
        )
        return cls(lazy.ConstantOp, (), values.shape, element, {"value": dense})

    @classmethod
    def counting(cls, axis: int, element: ElementType, shape: Shape) -> Self:
        """Counts from 0 along an axis."""
        return cls(lazy.IotaOp, (), shape, element, {"axis": i64_attr(axis)})

    def axis(self, axis: int, extra: int = 0) -> int:
        """An axis, counted from the end if negative; ``extra`` axes may be added."""
        rank = self.ndim + extra
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise PlaitError(
                f"axis {axis} is out of range for shape {self.shape}: expected {-max(rank, 1)} to "
                f"{max(rank, 1) - 1}"
            )
        return axis % rank if rank else 0

    def own_axis(self, axis: int) -> int:
        """An axis of a tensor that has some; raises :class:`PlaitError` for one without."""
        if not self.shape:
            raise PlaitError(f"axis {axis} of a tensor without axes: expected one with some")
        return self.axis(axis)

    def require_axes(self, count: int) -> None:
        """Raises :class:`PlaitError` for a tensor of fewer axes."""
        if self.ndim < count:
            raise PlaitError(f"expected a tensor of {count} axes or more, found shape {self.shape}")

    def axes(self, axes: int | Sequence[int] | None) -> tuple[int, ...]:
        """Axes, all of them for None; an axis may be named once."""
        if axes is None:
            return tuple(range(self.ndim))
        given = list(axes) if isinstance(axes, Sequence) else [axes]
        found = tuple(self.axis(axis) for axis in given) if self.ndim else ()
        if len(set(found)) != len(found):
            raise PlaitError(f"axes {tuple(given)} of shape {self.shape} name an axis twice")
        return found


def extents(shape: Sequence[Any]) -> Shape:
    """A shape, checked: extents are integers of 0 or more."""
    if not all(is_integer(extent) and 0 <= extent < 2**63 for extent in shape):
        raise PlaitError(f"expected extents of 0 or more in 63 bits, found {tuple(shape)}")
    return tuple(int(extent) for extent in shape)


def i64_attr(value: int) -> IntegerAttr[Any]:
    from xdsl.dialects.builtin import i64

    return IntegerAttr(value, i64)


def scalar_attr(value: Scalar, element: ElementType) -> Any:
    """A number as an attribute of an element type; integers wrap."""
    if is_float(element):
        return FloatAttr(float(value), cast(Any, element))
    if is_bool(element):
        return IntegerAttr(int(bool(value)), cast(Any, element))
    return IntegerAttr(int(value), cast(Any, element), truncate_bits=True)


def element_of(dtype: Any) -> ElementType:
    """The element type of a dtype given as a name, a numpy dtype or type, or a Python type."""
    if isinstance(dtype, str):
        return type_of_name(dtype)
    python = {float: "float32", int: "int64", bool: "bool"}
    if dtype in python:
        return type_of_name(python[dtype])
    text = str(dtype)
    if text.startswith("torch."):
        return type_of_name(text.removeprefix("torch."))
    return type_of_name(np.dtype(dtype).name)


def checked(shape: Callable[[], Shape]) -> Shape:
    """The shape that inference gives, with its complaint as a :class:`PlaitError`."""
    try:
        return shape()
    except ValueError as error:
        raise PlaitError(str(error)) from None


_ORDER = ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def promoted(lhs: ElementType, rhs: ElementType) -> ElementType:
    """The element type that two tensors meet in, as in PyTorch."""
    if lhs == rhs:
        return lhs
    a, b = name_of_type(lhs), name_of_type(rhs)
    if "bool" in (a, b):
        return rhs if a == "bool" else lhs
    if {a, b} == {"float16", "bfloat16"}:
        return type_of_name("float32")
    if {a, b} == {"uint8", "int8"}:
        return type_of_name("int16")
    if is_float(lhs) != is_float(rhs):
        return lhs if is_float(lhs) else rhs
    if a in _ORDER and b in _ORDER:
        return lhs if _ORDER.index(a) > _ORDER.index(b) else rhs
    return type_of_name(np.promote_types(a, b).name)


def element_of_scalar(value: Scalar, other: ElementType) -> ElementType:
    """The type of a Python number that meets a tensor: it only changes the tensor's kind."""
    if isinstance(value, bool):
        return other
    if isinstance(value, int):
        return type_of_name("int64") if is_bool(other) else other
    return other if is_float(other) else type_of_name("float32")
