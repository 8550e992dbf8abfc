"""The table of operators: what each means on plait's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from plait.frontend.elementwise import broadcast_shape
from plait.frontend.node import element_of
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError, aten
from plait.frontend.torch.types import Number, promotion

Meaning = Callable[..., Any]
"""From an operator's arguments, its tensors as plait's, to its result or a tuple of results."""


@dataclass(frozen=True)
class Rule:
    """How an operator is imported."""

    meaning: Meaning
    wants_result: bool
    """Whether the meaning takes ``result``, a tensor without data that shows type and shape."""
    contiguous: bool = False
    """Whether the meaning is right only for operands that are contiguous in PyTorch."""


TABLE: dict[Any, Rule] = {}
"""Overloads of ``torch.ops.aten`` and their rules."""


def overload(name: str) -> Any:
    """``"add.Tensor"`` as an overload, or None where this PyTorch has none."""
    packet, _, variant = name.partition(".")
    return getattr(getattr(aten, packet, None), variant or "default", None)


def lowers(
    *names: str, result: bool = False, contiguous: bool = False
) -> Callable[[Meaning], Meaning]:
    """Enters a function into the table under these overloads."""

    def enter(meaning: Meaning) -> Meaning:
        for name in names:
            found = overload(name)
            if found is not None:
                TABLE[found] = Rule(meaning, result, contiguous)
        return meaning

    return enter


def representable(value: Number, dtype: str) -> Number:
    """The number, if an integer type holds it as it is."""
    bits = dtype.removeprefix("u").removeprefix("int")
    if bits.isdigit():
        low, high = (
            (0, 1 << int(bits)) if dtype[0] == "u" else (-(1 << int(bits) - 1), 1 << int(bits) - 1)
        )
        if not low <= value < high or value != int(value):
            raise UnsupportedError(f"{value} does not fit {dtype}")
    return value


def common(
    args: Sequence[Tensor | Number], kind: str, shape: bool = True
) -> tuple[list[Tensor], str]:
    """Arguments in the type they are computed in and one shape, and the type of the result."""
    computed, result = promotion(args, kind)
    element = element_of(computed)
    shapes = [a.shape for a in args if isinstance(a, Tensor)]
    whole = broadcast_shape(*shapes)
    made: list[Tensor] = []
    for arg in args:
        if isinstance(arg, Tensor):
            made.append(arg.cast(element).expand(whole) if shape else arg.cast(element))
        else:
            made.append(Tensor.constant(representable(arg, computed), element, whole))
    return made, result


def pointwise(*names: str, kind: str = "DEFAULT") -> Callable[[Meaning], Meaning]:
    """Like :func:`lowers` for an element-wise function of all its positional arguments.

    It is given them in one type and shape, numbers too, and its result is converted.
    """

    def enter(meaning: Meaning) -> Meaning:
        @wraps(meaning)
        def promoted(*args: Any, **options: Any) -> Tensor:
            if any(not isinstance(arg, Tensor | int | float) for arg in args):
                raise UnsupportedError("an argument that is no number and no tensor")
            made, result = common(args, kind)
            return meaning(*made, **options).cast(result)

        return lowers(*names)(promoted)

    return enter
