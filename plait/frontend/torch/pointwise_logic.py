"""Comparisons, logic, bits, and choices between elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from plait.frontend.elementwise import broadcast_shape
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.pointwise_binary import number
from plait.frontend.torch.pointwise_unary import FLOAT, signbit
from plait.frontend.torch.table import common, lowers, pointwise, representable
from plait.frontend.torch.types import Number

_COMPARISONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "eq": Tensor.__eq__,
    "ne": Tensor.__ne__,
    "lt": Tensor.__lt__,
    "le": Tensor.__le__,
    "gt": Tensor.__gt__,
    "ge": Tensor.__ge__,
}
_LOGIC: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "logical_and": lambda x, y: (x != 0) & (y != 0),
    "logical_or": lambda x, y: (x != 0) | (y != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0),
}
_BITS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "bitwise_and": Tensor.__and__,
    "bitwise_or": Tensor.__or__,
    "bitwise_xor": Tensor.__xor__,
}
for _name, _function in _COMPARISONS.items():
    pointwise(f"{_name}.Tensor", f"{_name}.Scalar", kind="ALWAYS_BOOL")(_function)
for _name, _function in _LOGIC.items():
    pointwise(_name, kind="ALWAYS_BOOL")(_function)
for _name, _function in _BITS.items():
    pointwise(f"{_name}.Tensor", f"{_name}.Scalar", f"{_name}.Scalar_Tensor")(_function)


def _shift(x: Tensor, y: Any, left: bool) -> Tensor:
    """Only by a known amount: beyond the width, machines differ."""
    bits = x.dtype.removeprefix("u").removeprefix("int")
    if not isinstance(y, int) or not bits.isdigit() or not 0 <= y < int(bits) - 1:
        raise UnsupportedError("a shift by an amount that is not known to fit")
    return x << y if left else x >> y


@lowers("bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar")
def left_shift(x: Tensor, y: Any) -> Tensor:
    return _shift(x, y, True)


@lowers("bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar")
def right_shift(x: Tensor, y: Any) -> Tensor:
    return _shift(x, y, False)


@pointwise("maximum")
def maximum(x: Tensor, y: Tensor) -> Tensor:
    return x | y if x.dtype == "bool" else x.maximum(y)


@pointwise("minimum")
def minimum(x: Tensor, y: Tensor) -> Tensor:
    return x & y if x.dtype == "bool" else x.minimum(y)


def _without_nan(x: Tensor, y: Tensor, both: Tensor) -> Tensor:
    return x.isnan().where(y, y.isnan().where(x, both)) if x.is_floating else both


@pointwise("fmax")
def fmax(x: Tensor, y: Tensor) -> Tensor:
    return _without_nan(x, y, maximum(x, y))


@pointwise("fmin")
def fmin(x: Tensor, y: Tensor) -> Tensor:
    return _without_nan(x, y, minimum(x, y))


@pointwise("atan2", kind=FLOAT)
def atan2(x: Tensor, y: Tensor) -> Tensor:
    return x.atan2(y)


@pointwise("copysign.Tensor", "copysign.Scalar", kind=FLOAT)
def copysign(x: Tensor, y: Tensor) -> Tensor:
    return signbit(y).where(-x.abs(), x.abs())


@pointwise("hypot")
def hypot(x: Tensor, y: Tensor) -> Tensor:
    a, b = x.abs(), y.abs()
    top, low = a.maximum(b), a.minimum(b)
    ratio = (top == 0).where(top, low / top)
    size = top * (1 + ratio * ratio).sqrt()
    return (a.isinf() | b.isinf()).where(math.inf, size)


@pointwise("logaddexp", kind=FLOAT)
def logaddexp(x: Tensor, y: Tensor) -> Tensor:
    together = x.maximum(y) + (-(x - y).abs()).exp().log1p()
    return (x.isinf() & (x == y)).where(x, together)


@pointwise("heaviside")
def heaviside(x: Tensor, y: Tensor) -> Tensor:
    above = (x > 0).cast(x.element)
    return (x == 0).where(y, x.isnan().where(0, above) if x.is_floating else above)


@pointwise("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", kind=FLOAT)
def xlogy(x: Tensor, y: Tensor) -> Tensor:
    return y.isnan().where(math.nan, (x == 0).where(0.0, x * y.log()))


@lowers("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        raise UnsupportedError("a choice between two numbers")
    (a, b), result = common([x, y], "NO_OPMATH")
    shape = broadcast_shape(condition.shape, a.shape)
    return (condition != 0).expand(shape).where(a.expand(shape), b.expand(shape)).cast(result)


@lowers("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    shape = broadcast_shape(x.shape, mask.shape)
    if not isinstance(value, Tensor):
        value = x.full_like(representable(number(value), x.dtype))
    return mask.expand(shape).where(value.cast(x.element).expand(shape), x.expand(shape))


def _clamp(x: Any, low: Any, high: Any) -> Tensor:
    bounds = [bound for bound in (low, high) if bound is not None]
    made, result = common([x, *bounds], "DEFAULT")
    if made[0].dtype == "bool":
        raise UnsupportedError("limits of booleans")
    value, *rest = made
    if low is not None:
        value = value.maximum(rest.pop(0))
    return (value.minimum(rest[0]) if rest else value).cast(result)


@lowers("clamp", "clamp.Tensor")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return _clamp(x, min, max)


@lowers("clamp_min", "clamp_min.Tensor")
def clamp_min(x: Tensor, min: Number | Tensor) -> Tensor:
    return _clamp(x, min, None)


@lowers("clamp_max", "clamp_max.Tensor")
def clamp_max(x: Tensor, max: Number | Tensor) -> Tensor:
    return _clamp(x, None, max)
