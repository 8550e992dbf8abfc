"""What the elementwise operations of the ``lazy`` dialect compute, on numpy arrays.

The arrays of one call have one dtype, and the functions return that dtype (booleans for
comparisons). Half-precision operands are widened by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from plait.dialects import lazy
from plait.dtypes import Array, is_bool, is_float, is_unsigned

_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(x: Array) -> Array:
    """Error function; computed in float64."""
    if x.size == 0:
        return x.copy()
    return np.asarray(_erf(x.astype(np.float64))).astype(x.dtype)


def divide(a: Array, b: Array) -> Array:
    """Truncating integer quotient; 0 for a divisor of 0."""
    safe = np.where(b == 0, np.ones_like(b), b)
    quotient = a // safe
    remainder = a - quotient * safe
    quotient = quotient + ((remainder != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(b == 0, np.zeros_like(a), quotient)


def remainder(a: Array, b: Array) -> Array:
    """Integer remainder with the dividend's sign; 0 for a divisor of 0."""
    safe = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.fmod(a, safe))


def power(a: Array, b: Array) -> Array:
    """Integer power that wraps; a negative exponent gives 0 except for bases 1 and -1."""
    result, square = np.ones_like(a), a.copy()
    bits = a.dtype.itemsize * 8
    for bit in range(bits if a.dtype.kind == "u" else bits - 1):
        used = (b >> a.dtype.type(bit)) & a.dtype.type(1)
        result = np.where(used != 0, result * square, result)
        square = square * square
    if a.dtype.kind == "u":
        return result
    odd = (b & a.dtype.type(1)) != 0
    minus_one = np.where(odd, -1, 1).astype(a.dtype)
    inverse = np.where(a == 1, 1, np.where(a == -1, minus_one, 0)).astype(a.dtype)
    return np.where(b < 0, inverse, result)


def _bits(dtype: np.dtype[Any]) -> int:
    return 1 if dtype == np.bool_ else dtype.itemsize * 8


def shift_left(a: Array, b: Array) -> Array:
    """Left shift; 0 for amounts that are not within the width."""
    bits = _bits(a.dtype)
    within = (b >= 0) & (b < bits)
    return np.where(within, np.left_shift(a, np.where(within, b, 0).astype(a.dtype)), 0).astype(
        a.dtype
    )


def shift_right(a: Array, b: Array) -> Array:
    """Right shift; as if bit by bit for amounts that are not within the width."""
    bits = _bits(a.dtype)
    within = (b >= 0) & (b < bits)
    shifted = np.right_shift(a, np.where(within, b, bits - 1).astype(a.dtype))
    return np.where(within | (a.dtype.kind == "i"), shifted, 0).astype(a.dtype)


def sign(x: Array) -> Array:
    """-1, the number itself if it is 0 or NaN, or 1."""
    return np.where(x > 0, np.ones_like(x), np.where(x < 0, -np.ones_like(x), x))


def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def reciprocal(x: Array) -> Array:
    return 1 / x


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_FLOAT: dict[type[Operation], Callable[..., Array]] = {
    lazy.NegOp: np.negative,
    lazy.AbsOp: np.abs,
    lazy.SignOp: sign,
    lazy.ExpOp: np.exp,
    lazy.Exp2Op: np.exp2,
    lazy.LogOp: np.log,
    lazy.Log2Op: np.log2,
    lazy.SqrtOp: np.sqrt,
    lazy.RsqrtOp: rsqrt,
    lazy.ReciprocalOp: reciprocal,
    lazy.SinOp: np.sin,
    lazy.CosOp: np.cos,
    lazy.TanOp: np.tan,
    lazy.TanhOp: np.tanh,
    lazy.ErfOp: erf,
    lazy.SigmoidOp: sigmoid,
    lazy.FloorOp: np.floor,
    lazy.CeilOp: np.ceil,
    lazy.RoundOp: np.rint,
    lazy.TruncOp: np.trunc,
    lazy.IsNanOp: np.isnan,
    lazy.IsFiniteOp: np.isfinite,
    lazy.AddOp: np.add,
    lazy.SubOp: np.subtract,
    lazy.MulOp: np.multiply,
    lazy.DivOp: np.divide,
    lazy.RemOp: np.fmod,
    lazy.PowOp: np.power,
    lazy.Atan2Op: np.arctan2,
    lazy.MaxOp: np.maximum,
    lazy.MinOp: np.minimum,
}
_INTEGER: dict[type[Operation], Callable[..., Array]] = {
    lazy.NegOp: np.negative,
    lazy.AbsOp: np.abs,
    lazy.SignOp: np.sign,
    lazy.NotOp: np.invert,
    lazy.AddOp: np.add,
    lazy.SubOp: np.subtract,
    lazy.MulOp: np.multiply,
    lazy.DivOp: divide,
    lazy.RemOp: remainder,
    lazy.PowOp: power,
    lazy.MaxOp: np.maximum,
    lazy.MinOp: np.minimum,
    lazy.AndOp: np.bitwise_and,
    lazy.OrOp: np.bitwise_or,
    lazy.XorOp: np.bitwise_xor,
    lazy.ShlOp: shift_left,
    lazy.ShrOp: shift_right,
}
_BOOLEAN: dict[type[Operation], Callable[..., Array]] = {
    **_INTEGER,
    lazy.AddOp: np.logical_or,
    lazy.MulOp: np.logical_and,
    lazy.MaxOp: np.logical_or,
    lazy.MinOp: np.logical_and,
}
_COMPARE: dict[lazy.ComparePredicate, Callable[[Array, Array], Array]] = {
    lazy.ComparePredicate.EQ: np.equal,
    lazy.ComparePredicate.NE: np.not_equal,
    lazy.ComparePredicate.LT: np.less,
    lazy.ComparePredicate.LE: np.less_equal,
    lazy.ComparePredicate.GT: np.greater,
    lazy.ComparePredicate.GE: np.greater_equal,
}


def arithmetic(op: type[Operation], type: Attribute) -> Callable[..., Array]:
    """The function of a unary, binary or predicate operation on elements ``type``."""
    table = _FLOAT if is_float(type) else _BOOLEAN if is_bool(type) else _INTEGER
    return table[op]


def compare(predicate: lazy.ComparePredicate) -> Callable[[Array, Array], Array]:
    return _COMPARE[predicate]


def to_odd(x: Array) -> Array:
    """Numbers as float32, inexact ones as the neighbour whose last bit is odd: what rounds them on
    to 16 bits then rounds as if it were the first (S. Boldo, G. Melquiond: Emulation of FMA and
    correctly rounded sums: proved algorithms using rounding to odd, 2008)."""
    exact = x.astype(np.float64)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        cut = (x >> 11) | (x & 0x7FF != 0).astype(x.dtype)
        exact = np.where(np.abs(exact) < 2**52, exact, cut.astype(np.float64) * 2.0**11)
    with np.errstate(over="ignore"):
        near = np.asarray(exact.astype(np.float32))
    bits, back = near.view(np.int32), near.astype(np.float64)
    even = np.isfinite(exact) & (back != exact) & (bits & 1 == 0)
    step = np.where(np.abs(back) < np.abs(exact), 1, -1)
    return np.where(even, bits + step, bits).astype(np.int32).view(np.float32)


def to_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats to integers: truncates, saturates, NaN gives 0."""
    limits = np.iinfo(dtype)
    inside = (x > limits.min) & (x < float(limits.max) + 1)
    cut = np.trunc(np.where(inside, x, 0)).astype(dtype)
    result = np.where(x <= limits.min, limits.min, np.where(inside, cut, limits.max))
    return np.where(np.isnan(x), 0, result).astype(dtype)


def identity_of(kind: str, type: Attribute) -> float | int | bool:
    """What combining elements ``type`` starts from: ``sum prod max min any all``."""
    match kind:
        case "sum" | "any":
            return 0
        case "prod" | "all":
            return 1
        case _:
            sign = -1 if kind == "max" else 1
    if is_float(type):
        return sign * math.inf
    if is_bool(type):
        return sign > 0
    width = type.width.data  # pyright: ignore
    if is_unsigned(type):
        return 0 if sign < 0 else 2**width - 1  # pyright: ignore
    return -(2 ** (width - 1)) if sign < 0 else 2 ** (width - 1) - 1  # pyright: ignore
