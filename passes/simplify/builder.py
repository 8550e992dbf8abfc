"""Building operations during simplification: every new operation is shared if it exists already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    Signedness,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy_constants import Scalar, splat_scalar
from plait.dtypes import is_float

Key = tuple[Any, ...]
_LARGEST_SPLAT = 1024
"""Elements up to which one value repeated is a constant of its own."""


def key_of(op: Operation) -> Key:
    """Equal for operations that compute the same value, in any order of commuting operands."""
    operands: tuple[SSAValue, ...] = tuple(op.operands)
    if isinstance(op, lazy.BinaryOp) and op.COMMUTATIVE:
        operands = tuple(sorted(operands, key=id))
    properties = tuple(sorted(op.properties.items()))
    return (op.name, operands, properties, op.results[0].type)


@dataclass
class Builder:
    """Inserts operations before a point of a block and remembers what exists."""

    block: Block
    point: Operation | None = None
    known: dict[Key, Operation] = field(default_factory=dict[Key, Operation])
    fresh: list[Operation] = field(default_factory=list[Operation])
    """What was inserted since the caller last looked."""
    waiting: set[Operation] = field(default_factory=set[Operation])
    """What was inserted before and is still to be simplified: it may be after the point."""

    def add(self, op: Operation) -> SSAValue:
        """The value of ``op``: that of an equal operation if there is one."""
        key = key_of(op)
        found = self.known.get(key)
        if found is not None:
            op.erase()
            if found in self.waiting and self.point is not None:
                # Its operands are known at the point, since those of ``op`` are.
                found.detach()
                self.block.insert_op_before(found, self.point)
            return found.results[0]
        assert self.point is not None
        self.block.insert_op_before(op, self.point)
        self.known[key] = op
        self.fresh.append(op)
        return op.results[0]

    def splat(self, value: Scalar, type: Attribute) -> SSAValue:
        """A tensor of one value. A large one is an expand: xDSL keeps every element's bytes."""
        assert isinstance(type, TensorType)
        shape = type.get_shape()
        if prod(shape) <= _LARGEST_SPLAT:
            return self.add(lazy.ConstantOp(splat_attribute(value, cast(Attribute, type))))
        element = cast(TensorType[Attribute], type).element_type
        scalar = self.splat(value, TensorType(element, ()))
        return self.add(lazy.ExpandOp(self.reshape(scalar, [1] * len(shape)), shape))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value under another shape."""
        if lazy.shape_of(value) == tuple(shape):
            return value
        return self.add(lazy.ReshapeOp(value, tuple(shape)))


def splat_attribute(value: Scalar, type: Attribute) -> DenseIntOrFPElementsAttr:
    """``dense<value> : type``, the value wrapped into an integer type."""
    assert isinstance(type, TensorType)
    element = cast(TensorType[Attribute], type).element_type
    number = float(value) if is_float(element) else wrap(int(value), element)
    return cast(Any, DenseIntOrFPElementsAttr).from_list(type, [number])


def wrap(value: int, type: Attribute) -> int:
    """An integer modulo the width of a type, in its range."""
    integer = cast("IntegerType[int, Signedness]", type)
    width = integer.width.data
    value &= (1 << width) - 1
    signed = width > 1 and integer.signedness.data != Signedness.UNSIGNED
    return value - (1 << width) if signed and value >> (width - 1) else value


_SPLAT_VIEWS = (
    lazy.ReshapeOp,
    lazy.PermuteOp,
    lazy.ExpandOp,
    lazy.SliceOp,
    lazy.FlipOp,
    lazy.WindowOp,
)


def owner_of(value: SSAValue) -> Operation | None:
    """The operation that makes a value; None for an argument."""
    return value.owner if isinstance(value.owner, Operation) else None


def splat_value(value: SSAValue) -> Scalar | None:
    """The one value all elements have, if that is known."""
    op = owner_of(value)
    while isinstance(op, _SPLAT_VIEWS):
        op = owner_of(op.operands[0])
    if not isinstance(op, lazy.ConstantOp):
        return None
    number = splat_scalar(op.value)
    if number is None:
        return None
    return bool(number) if lazy.element_type_of(op.result) == i1 else number
