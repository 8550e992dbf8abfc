"""What the scalar ``arith`` and ``math`` operations of kernels compute, on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, IndexType
from xdsl.ir import Attribute, Operation

from plait.dialects.lazy_eval import erf
from plait.dialects.lazy_numpy import Numbers
from plait.dtypes import Array, bf16_to_f32, f32_to_bf16, is_bool, is_float, numpy_dtype

_SIMPLE: dict[type[Operation], Callable[..., Array]] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.ShLIOp: np.left_shift,
    arith.ShRSIOp: np.right_shift,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.SelectOp: np.where,
    math.AbsFOp: np.abs,
    math.ExpOp: np.exp,
    math.Exp2Op: np.exp2,
    math.LogOp: np.log,
    math.Log2Op: np.log2,
    math.SqrtOp: np.sqrt,
    math.SinOp: np.sin,
    math.CosOp: np.cos,
    math.TanOp: np.tan,
    math.TanhOp: np.tanh,
    math.ErfOp: erf,
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.RoundEvenOp: np.rint,
    math.TruncOp: np.trunc,
    math.PowFOp: np.power,
    math.Atan2Op: np.arctan2,
    math.CopySignOp: np.copysign,
}
_UNSIGNED: dict[type[Operation], Callable[..., Array]] = {
    arith.MaxUIOp: np.maximum,
    arith.MinUIOp: np.minimum,
    arith.DivUIOp: np.floor_divide,
    arith.RemUIOp: np.remainder,
    arith.ShRUIOp: np.right_shift,
}
_CMPI: tuple[tuple[Callable[..., Array], bool], ...] = (
    (np.equal, False),
    (np.not_equal, False),
    (np.less, False),
    (np.less_equal, False),
    (np.greater, False),
    (np.greater_equal, False),
    (np.less, True),
    (np.less_equal, True),
    (np.greater, True),
    (np.greater_equal, True),
)
_CMPF = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    13: np.not_equal,
}


def _fma(a: Array, b: Array, c: Array) -> Array:
    """A product and sum rounded once, in extended precision."""
    wide = np.longdouble
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def unsigned(x: Array) -> Array:
    """The same bits as unsigned integers; booleans as they are."""
    return x if x.dtype == np.bool_ else x.astype(f"uint{x.dtype.itemsize * 8}")


class ScalarMeaning:
    """Scalar operations under a way of holding numbers."""

    def __init__(self, numbers: Numbers):
        self.numbers = numbers

    def dtype(self, type: Attribute) -> np.dtype[Any]:
        return np.dtype(np.int64) if isinstance(type, IndexType) else self.numbers.dtype(type)

    def value(self, op: Operation, operands: Sequence[Array]) -> Array:
        """The result of one operation."""
        cls, dtype = op.__class__, self.dtype(op.results[0].type)
        if isinstance(op, arith.ConstantOp):
            return np.asarray(cast(Any, op.value).value.data).astype(dtype)
        if cls in _SIMPLE:
            return np.asarray(_SIMPLE[cls](*operands)).astype(dtype)
        if cls in _UNSIGNED:
            return np.asarray(_UNSIGNED[cls](*map(unsigned, operands))).astype(dtype)
        match op:
            case math.FmaOp():
                return _fma(*operands)
            case arith.CmpiOp():
                function, bits = _CMPI[op.predicate.value.data]
                a, b = map(unsigned, operands) if bits else operands
                return function(a, b)
            case arith.CmpfOp():
                return cmpf(op.predicate.value.data, *operands)
            case arith.DivSIOp():
                a, b = operands
                return (
                    np.trunc(a / b).astype(dtype)
                    if dtype.itemsize < 8
                    else a // b + ((a % b != 0) & ((a < 0) != (b < 0)))
                )
            case arith.RemSIOp():
                return np.fmod(operands[0], operands[1]).astype(dtype)
            case _:
                return self.converted(op, operands[0], dtype)

    def converted(self, op: Operation, x: Array, dtype: np.dtype[Any]) -> Array:
        have, want = op.operands[0].type, op.results[0].type
        match op:
            case arith.ExtUIOp() | arith.UIToFPOp():
                return unsigned(x).astype(dtype)
            case arith.FPToUIOp():
                return x.astype(f"uint{dtype.itemsize * 8}").astype(dtype)
            case arith.ExtSIOp() if is_bool(have):
                return -x.astype(dtype)
            case arith.TruncIOp() if is_bool(want):
                return (x & 1) != 0
            case arith.TruncFOp():
                return self.narrowed(x, want)
            case arith.BitcastOp():
                return self.bits(x, have, want)
            case arith.IndexCastOp() | arith.ExtSIOp() | arith.TruncIOp() | arith.SIToFPOp():
                return x.astype(dtype)
            case arith.FPToSIOp() | arith.ExtFOp():
                return x.astype(dtype)
            case _:
                raise AssertionError(f"{op.name} has no meaning on numpy arrays")

    def narrowed(self, x: Array, want: Attribute) -> Array:
        if self.numbers.float64:
            return x
        if isinstance(want, BFloat16Type):
            return bf16_to_f32(f32_to_bf16(x)).reshape(x.shape)
        return x.astype(self.numbers.dtype(want))

    def bits(self, x: Array, have: Attribute, want: Attribute) -> Array:
        raw = np.ascontiguousarray(x)
        if isinstance(have, BFloat16Type):
            raw = f32_to_bf16(raw).reshape(x.shape)
        elif is_float(have):
            raw = raw.astype(numpy_dtype(have))
        target = raw.view(numpy_dtype(want)).reshape(x.shape)
        return self.numbers.taken(target, want) if is_float(want) else target


def cmpf(predicate: int, a: Array, b: Array) -> Array:
    """A comparison of floats by its number in MLIR."""
    if predicate in _CMPF:
        return _CMPF[predicate](a, b)
    nan = np.isnan(a) | np.isnan(b)
    if predicate in (7, 14):
        return nan if predicate == 14 else ~nan
    if predicate == 6:
        return ~nan & np.not_equal(a, b)
    ordered = {8: 1, 9: 2, 10: 3, 11: 4, 12: 5}[predicate]
    return nan | _CMPF[ordered](a, b)
