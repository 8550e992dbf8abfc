"""Element-wise arithmetic of two tensors, or a tensor and a number."""

from __future__ import annotations

from typing import Any

from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.pointwise_unary import FLOAT
from plait.frontend.torch.table import common, lowers, pointwise
from plait.frontend.torch.types import Number

Operand = Any
"""A tensor or a number."""


def number(value: Any) -> Number:
    """An option that must be a number."""
    if not isinstance(value, int | float):
        raise UnsupportedError(f"a {type(value).__name__} as an option")
    return value


@pointwise("add.Tensor", "add.Scalar")
def add(x: Tensor, y: Tensor, alpha: Number = 1) -> Tensor:
    if x.dtype == "bool":
        return x | y if alpha else x
    return x + (y if alpha == 1 else y * number(alpha))


@pointwise("sub.Tensor", "sub.Scalar")
def sub(x: Tensor, y: Tensor, alpha: Number = 1) -> Tensor:
    if x.dtype == "bool":
        raise UnsupportedError("subtraction of booleans")
    return x - (y if alpha == 1 else y * number(alpha))


@lowers("rsub.Tensor", "rsub.Scalar")
def rsub(x: Operand, y: Operand, alpha: Number = 1) -> Tensor:
    (lhs, rhs), result = common([x, y], "DEFAULT")
    return sub(rhs, lhs, alpha=alpha).cast(result)


@pointwise("mul.Tensor", "mul.Scalar")
def mul(x: Tensor, y: Tensor) -> Tensor:
    return x & y if x.dtype == "bool" else x * y


@pointwise("div.Tensor", "div.Scalar", "true_divide.Tensor", kind=FLOAT)
def div(x: Tensor, y: Tensor) -> Tensor:
    return x / y


def safe_divisor(x: Operand, y: Operand) -> tuple[Tensor, Tensor, str]:
    """Operands of a whole division; PyTorch raises where an integer is divided by 0."""
    (lhs, rhs), result = common([x, y], "DEFAULT")
    if not lhs.is_floating and (isinstance(y, Tensor) or not y):
        raise UnsupportedError("integers divided by what may be 0")
    if lhs.dtype == "bool":
        raise UnsupportedError("division of booleans")
    return lhs, rhs, result


def floor_quotient(x: Tensor, y: Tensor) -> Tensor:
    """PyTorch's floor division of floats, from the exact remainder."""
    rest = x.fmod(y)
    quotient = (x - rest) / y
    off = (rest != 0) & ((y < 0) ^ (rest < 0))
    quotient = off.where(quotient - 1, quotient)
    floored = quotient.floor()
    floored = (quotient - floored > 0.5).where(floored + 1, floored)
    whole = (quotient != 0).where(floored, (x / y) * 0.0)
    return (y == 0).where(x / y, whole)


@lowers("floor_divide", "floor_divide.Scalar")
def floor_divide(x: Operand, y: Operand) -> Tensor:
    lhs, rhs, result = safe_divisor(x, y)
    return (floor_quotient(lhs, rhs) if lhs.is_floating else lhs // rhs).cast(result)


@lowers("div.Tensor_mode", "div.Scalar_mode")
def div_mode(x: Operand, y: Operand, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return div(x, y)
    if rounding_mode == "floor":
        return floor_divide(x, y)
    lhs, rhs, result = safe_divisor(x, y)
    if lhs.is_floating:
        return (lhs / rhs).trunc().cast(result)
    return ((lhs - lhs.fmod(rhs)) // rhs).cast(result)


@lowers("remainder.Tensor", "remainder.Scalar")
def remainder(x: Operand, y: Operand) -> Tensor:
    lhs, rhs, result = safe_divisor(x, y)
    return (lhs % rhs).cast(result)


@lowers("fmod.Tensor", "fmod.Scalar")
def fmod(x: Operand, y: Operand) -> Tensor:
    lhs, rhs, result = safe_divisor(x, y)
    return lhs.fmod(rhs).cast(result)


def integer_power(x: Tensor, exponent: int) -> Tensor:
    """By repeated squaring."""
    result: Tensor | None = None
    while exponent:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        x = x * x if exponent else x
    assert result is not None
    return result


@lowers("pow.Tensor_Scalar")
def pow_number(x: Tensor, exponent: Number) -> Tensor:
    (base, power), result = common([x, exponent], "BOOL_TO_LONG")
    if exponent == 0:
        return base.full_like(1).cast(result)
    if not base.is_floating:
        if exponent < 0:
            raise UnsupportedError("integers to a negative power")
        return integer_power(base, int(exponent)).cast(result)
    match exponent:
        case 0.5:
            made = base.sqrt()
        case -0.5:
            made = base.rsqrt()
        case 1:
            made = base
        case 2 | 3:
            made = integer_power(base, int(exponent))
        case -1:
            made = base.reciprocal()
        case -2:
            made = (base * base).reciprocal()
        case _:
            made = base.pow(power)
    return made.cast(result)


@lowers("pow.Tensor_Tensor", "pow.Scalar")
def pow_tensor(x: Operand, exponent: Tensor) -> Tensor:
    (base, power), result = common([x, exponent], "BOOL_TO_LONG")
    if not base.is_floating:
        raise UnsupportedError("integers to powers that may be negative")
    return base.pow(power).cast(result)
