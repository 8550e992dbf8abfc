"""Arithmetic on tensors, element by element, with broadcasting and type promotion as in PyTorch."""

from __future__ import annotations

import math
from typing import Any, Self, cast

import numpy as np

from plait.dialects import lazy
from plait.dtypes import ElementType, is_bool, is_float, type_of_name
from plait.errors import PlaitError
from plait.frontend.movement import Movement
from plait.frontend.node import (
    Scalar,
    Shape,
    element_of,
    element_of_scalar,
    promoted,
)

BOOL = type_of_name("bool")


def broadcast_shape(*shapes: Shape) -> Shape:
    """The common shape of several, by numpy's rule; raises :class:`PlaitError` naming both."""
    result: Shape = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        a = (1,) * (rank - len(result)) + result
        b = (1,) * (rank - len(shape)) + shape
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
            raise PlaitError(f"shapes {result} and {shape} cannot be broadcast together")
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return result


class Elementwise(Movement):
    """Methods that compute element by element."""

    __slots__ = ()

    # Operands

    def tensor_like(self, value: Self | Scalar, element: ElementType | None = None) -> Self:
        """A number as a tensor without axes that can meet this one; a tensor as it is."""
        if isinstance(value, Elementwise):
            return value
        if isinstance(value, np.generic):
            value = cast(Scalar, cast(Any, value).item())
        if not isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PlaitError(f"expected a tensor or a number, found {type(value).__name__}")
        return self.constant(value, element or element_of_scalar(value, self.element), ())

    def meet(self, other: Self | Scalar) -> tuple[Self, Self]:
        """Both operands in a common type and shape."""
        if isinstance(other, Elementwise):
            element = promoted(self.element, other.element)
        else:
            number = self.tensor_like(other)
            element = promoted(self.element, number.element)
            return self.cast(element), self.full_like(other, element)
        shape = broadcast_shape(self.shape, other.shape)
        return self.cast(element).expand(shape), other.cast(element).expand(shape)

    def as_float(self) -> Self:
        """This tensor, or float32 for integers."""
        return self if self.is_floating else self.cast("float32")

    # Conversions

    def cast(self, dtype: Any) -> Self:
        """Elements converted to another type."""
        element = dtype if not isinstance(dtype, str) and _is_element(dtype) else element_of(dtype)
        if element == self.element:
            return self
        return self.make(lazy.CastOp, [self], self.shape, element)

    to = cast

    def bitcast(self, dtype: Any) -> Self:
        """The bits of each element read as another type of the same width."""
        return self.make(lazy.BitcastOp, [self], self.shape, element_of(dtype))

    def float(self) -> Self:
        return self.cast("float32")

    def double(self) -> Self:
        return self.cast("float64")

    def half(self) -> Self:
        return self.cast("float16")

    def bfloat16(self) -> Self:
        return self.cast("bfloat16")

    def int(self) -> Self:
        return self.cast("int32")

    def long(self) -> Self:
        return self.cast("int64")

    def bool(self) -> Self:
        return self.cast("bool")

    # Making operations

    def unary(self, op: type[lazy.LazyOp]) -> Self:
        return self.make(op, [self], self.shape)

    def float_unary(self, op: type[lazy.LazyOp]) -> Self:
        return self.as_float().unary(op)

    def binary(self, op: type[lazy.LazyOp], other: Self | Scalar, swap: bool = False) -> Self:
        lhs, rhs = self.meet(other)
        lhs, rhs = (rhs, lhs) if swap else (lhs, rhs)
        return lhs.make(op, [lhs, rhs], lhs.shape)

    def compare(self, predicate: lazy.ComparePredicate, other: Self | Scalar) -> Self:
        lhs, rhs = self.meet(other)
        attr = lazy.ComparePredicateAttr(predicate)
        return lhs.make(lazy.CompareOp, [lhs, rhs], lhs.shape, BOOL, predicate=attr)

    # Arithmetic

    def __add__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.AddOp, other)

    def __radd__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.AddOp, other, swap=True)

    def __sub__(self, other: Self | Scalar) -> Self:
        return self.number().binary(lazy.SubOp, other)

    def __rsub__(self, other: Self | Scalar) -> Self:
        return self.number().binary(lazy.SubOp, other, swap=True)

    def __mul__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.MulOp, other)

    def __rmul__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.MulOp, other, swap=True)

    def __truediv__(self, other: Self | Scalar) -> Self:
        rhs = other.as_float() if isinstance(other, Elementwise) else other
        return self.as_float().binary(lazy.DivOp, rhs)

    def __rtruediv__(self, other: Self | Scalar) -> Self:
        return self.as_float().binary(lazy.DivOp, other, swap=True)

    def __floordiv__(self, other: Self | Scalar) -> Self:
        lhs, rhs = self.number().meet(other)
        if lhs.is_floating:
            return (lhs / rhs).floor()
        quotient = lhs.binary(lazy.DivOp, rhs)
        inexact = (lhs.binary(lazy.RemOp, rhs) != 0) & ((lhs < 0) ^ (rhs < 0))
        return quotient - inexact.cast(lhs.element)

    def __mod__(self, other: Self | Scalar) -> Self:
        lhs, rhs = self.number().meet(other)
        remainder = lhs.binary(lazy.RemOp, rhs)
        adjust = (remainder != 0) & ((remainder < 0) ^ (rhs < 0))
        return adjust.where(remainder + rhs, remainder)

    def __pow__(self, other: Self | Scalar) -> Self:
        if not isinstance(other, Elementwise) and other == 2:
            return self * self
        return self.number().binary(lazy.PowOp, other)

    def __rpow__(self, other: Self | Scalar) -> Self:
        return self.number().binary(lazy.PowOp, other, swap=True)

    def __neg__(self) -> Self:
        return self.number().unary(lazy.NegOp)

    def __and__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.AndOp, other)

    def __rand__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.AndOp, other, swap=True)

    def __or__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.OrOp, other)

    def __ror__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.OrOp, other, swap=True)

    def __xor__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.XorOp, other)

    def __rxor__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.XorOp, other, swap=True)

    def __lshift__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.ShlOp, other)

    def __rshift__(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.ShrOp, other)

    def __invert__(self) -> Self:
        return self.unary(lazy.NotOp)

    def __eq__(self, other: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.compare(lazy.ComparePredicate.EQ, other)

    def __ne__(self, other: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.compare(lazy.ComparePredicate.NE, other)

    def __lt__(self, other: Self | Scalar) -> Self:
        return self.compare(lazy.ComparePredicate.LT, other)

    def __le__(self, other: Self | Scalar) -> Self:
        return self.compare(lazy.ComparePredicate.LE, other)

    def __gt__(self, other: Self | Scalar) -> Self:
        return self.compare(lazy.ComparePredicate.GT, other)

    def __ge__(self, other: Self | Scalar) -> Self:
        return self.compare(lazy.ComparePredicate.GE, other)

    __hash__ = object.__hash__

    def number(self) -> Self:
        """This tensor, or int64 for booleans, which have no arithmetic of their own."""
        return self.cast("int64") if is_bool(self.element) else self

    def maximum(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.MaxOp, other)

    def minimum(self, other: Self | Scalar) -> Self:
        return self.binary(lazy.MinOp, other)

    def fmod(self, other: Self | Scalar) -> Self:
        """Remainder with the sign of this tensor."""
        return self.number().binary(lazy.RemOp, other)

    def atan2(self, other: Self | Scalar) -> Self:
        return self.as_float().binary(lazy.Atan2Op, other)

    def pow(self, other: Self | Scalar) -> Self:
        return self**other

    def where(self, on_true: Self | Scalar, on_false: Self | Scalar) -> Self:
        """``on_true`` where this condition holds, else ``on_false``."""
        if isinstance(on_true, Elementwise):
            a, b = on_true.meet(on_false)
        elif isinstance(on_false, Elementwise):
            b, a = on_false.meet(on_true)
        else:
            floats = isinstance(on_true, float) or isinstance(on_false, float)
            element = type_of_name("float32" if floats else "int64")
            a, b = (self.constant(value, element, ()) for value in (on_true, on_false))
        shape = broadcast_shape(self.shape, a.shape)
        sources = [self.cast(BOOL).expand(shape), a.expand(shape), b.expand(shape)]
        return self.make(lazy.SelectOp, sources, shape, a.element)

    def masked_fill(self, mask: Self, value: Scalar) -> Self:
        """``value`` where the mask holds."""
        return mask.where(self.full_like(value), self)

    def clamp(self, low: Scalar | None = None, high: Scalar | None = None) -> Self:
        """Elements limited to between ``low`` and ``high``."""
        result = self if low is None else self.maximum(low)
        return result if high is None else result.minimum(high)

    clip = clamp

    # Functions

    def abs(self) -> Self:
        return self.unary(lazy.AbsOp)

    def sign(self) -> Self:
        return self.unary(lazy.SignOp)

    def floor(self) -> Self:
        return self.unary(lazy.FloorOp) if self.is_floating else self

    def ceil(self) -> Self:
        return self.unary(lazy.CeilOp) if self.is_floating else self

    def round(self) -> Self:
        """Nearest integer, ties to even."""
        return self.unary(lazy.RoundOp) if self.is_floating else self

    def trunc(self) -> Self:
        return self.unary(lazy.TruncOp) if self.is_floating else self

    def exp(self) -> Self:
        return self.float_unary(lazy.ExpOp)

    def exp2(self) -> Self:
        return self.float_unary(lazy.Exp2Op)

    def log(self) -> Self:
        return self.float_unary(lazy.LogOp)

    def log2(self) -> Self:
        return self.float_unary(lazy.Log2Op)

    def sqrt(self) -> Self:
        return self.float_unary(lazy.SqrtOp)

    def rsqrt(self) -> Self:
        return self.float_unary(lazy.RsqrtOp)

    def reciprocal(self) -> Self:
        return self.float_unary(lazy.ReciprocalOp)

    def square(self) -> Self:
        return self * self

    def sin(self) -> Self:
        return self.float_unary(lazy.SinOp)

    def cos(self) -> Self:
        return self.float_unary(lazy.CosOp)

    def tan(self) -> Self:
        return self.float_unary(lazy.TanOp)

    def tanh(self) -> Self:
        return self.float_unary(lazy.TanhOp)

    def erf(self) -> Self:
        return self.float_unary(lazy.ErfOp)

    def sigmoid(self) -> Self:
        return self.float_unary(lazy.SigmoidOp)

    def log1p(self) -> Self:
        """log(1 + x), accurate near 0: log(u) * (x / (u - 1)) with u = 1 + x (Kahan)."""
        x = self.as_float()
        u = x + 1
        scaled = u.log() * (x / (u == 1).where(x.full_like(1), u - 1))
        return (u == 1).where(x, u.isinf().where(u.log(), scaled))

    def expm1(self) -> Self:
        """exp(x) - 1, accurate near 0: tanh(x / 2) * (exp(x) + 1)."""
        x = self.as_float()
        near = (x * 0.5).tanh() * (x.exp() + 1)
        return (x.abs() < 1).where(near, x.exp() - 1)

    def isnan(self) -> Self:
        return self.as_float().make(lazy.IsNanOp, [self.as_float()], self.shape, BOOL)

    def isfinite(self) -> Self:
        return self.as_float().make(lazy.IsFiniteOp, [self.as_float()], self.shape, BOOL)

    def isinf(self) -> Self:
        return ~self.isfinite() & ~self.isnan()

    # Activations

    def relu(self) -> Self:
        return self.maximum(0)

    def relu6(self) -> Self:
        return self.clamp(0, 6)

    def leaky_relu(self, slope: float = 0.01) -> Self:
        return (self > 0).where(self, self * slope)

    def elu(self, alpha: float = 1.0) -> Self:
        return (self > 0).where(self, self.minimum(0).expm1() * alpha)

    def selu(self) -> Self:
        """Scaled ELU (Klambauer et al., 2017)."""
        return self.elu(1.6732632423543772) * 1.0507009873554805

    def silu(self) -> Self:
        return self * self.sigmoid()

    swish = silu

    def gelu(self, approximate: str = "none") -> Self:
        """Gaussian error linear unit (Hendrycks and Gimpel, 2016); ``tanh`` approximates."""
        if approximate == "tanh":
            inner = (self + self * self * self * 0.044715) * math.sqrt(2 / math.pi)
            return self * 0.5 * (inner.tanh() + 1)
        return self * 0.5 * ((self * math.sqrt(0.5)).erf() + 1)

    def softplus(self) -> Self:
        """log(1 + exp(x)) without overflow."""
        return self.maximum(0) + (-self.abs()).exp().log1p()

    def mish(self) -> Self:
        return self * self.softplus().tanh()

    def hardtanh(self, low: float = -1.0, high: float = 1.0) -> Self:
        return self.clamp(low, high)

    def hardsigmoid(self) -> Self:
        return (self + 3).clamp(0, 6) / 6

    def hardswish(self) -> Self:
        return self * self.hardsigmoid()

    def logsigmoid(self) -> Self:
        return -(-self).softplus()


def _is_element(value: object) -> bool:
    from xdsl.ir import Attribute

    return isinstance(value, Attribute)


__all__ = ["BOOL", "Elementwise", "broadcast_shape", "is_float"]
