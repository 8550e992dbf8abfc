"""Scalar code of elementwise operations on floating-point elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects import lazy
from plait.lowering.fuse_to_nest_scalars import Scalars

_UNARY: dict[type[Operation], type[Operation]] = {
    lazy.NegOp: arith.NegfOp,
    lazy.AbsOp: math.AbsFOp,
    lazy.ExpOp: math.ExpOp,
    lazy.Exp2Op: math.Exp2Op,
    lazy.LogOp: math.LogOp,
    lazy.Log2Op: math.Log2Op,
    lazy.SqrtOp: math.SqrtOp,
    lazy.SinOp: math.SinOp,
    lazy.CosOp: math.CosOp,
    lazy.TanOp: math.TanOp,
    lazy.TanhOp: math.TanhOp,
    lazy.ErfOp: math.ErfOp,
    lazy.FloorOp: math.FloorOp,
    lazy.CeilOp: math.CeilOp,
    lazy.RoundOp: math.RoundEvenOp,
    lazy.TruncOp: math.TruncOp,
}
_BINARY: dict[type[Operation], type[Operation]] = {
    lazy.AddOp: arith.AddfOp,
    lazy.SubOp: arith.SubfOp,
    lazy.MulOp: arith.MulfOp,
    lazy.DivOp: arith.DivfOp,
    lazy.PowOp: math.PowFOp,
    lazy.Atan2Op: math.Atan2Op,
    lazy.MaxOp: arith.MaximumfOp,
    lazy.MinOp: arith.MinimumfOp,
}


def float_operation(
    scalars: Scalars, op: Operation, type: Attribute, operands: Sequence[SSAValue]
) -> SSAValue:
    """An elementwise operation on floats, in their compute type."""
    if len(operands) == 2:
        return float_binary(scalars, op.__class__, type, operands[0], operands[1])
    [value] = operands
    direct = _UNARY.get(op.__class__)
    if direct is not None:
        return scalars.emit(direct(value))  # pyright: ignore[reportCallIssue]
    one = scalars.const(1, value.type)
    match op:
        case lazy.ReciprocalOp():
            return scalars.emit(arith.DivfOp(one, value))
        case lazy.RsqrtOp():
            return scalars.emit(arith.DivfOp(one, scalars.emit(math.SqrtOp(value))))
        case lazy.SigmoidOp():
            decay = scalars.emit(math.ExpOp(scalars.emit(arith.NegfOp(value))))
            return scalars.emit(arith.DivfOp(one, scalars.emit(arith.AddfOp(one, decay))))
        case lazy.SignOp():
            zero = scalars.const(0, value.type)
            below = scalars.select(
                scalars.cmpf("olt", value, zero), scalars.const(-1, value.type), value
            )
            return scalars.select(scalars.cmpf("ogt", value, zero), one, below)
        case lazy.IsNanOp():
            return scalars.cmpf("uno", value, value)
        case lazy.IsFiniteOp():
            magnitude = scalars.emit(math.AbsFOp(value))
            return scalars.cmpf("olt", magnitude, scalars.const(inf, value.type))
        case _:
            raise AssertionError(f"{op.name} is not an operation on floats")


def float_binary(
    scalars: Scalars, op: type[Operation], type: Attribute, lhs: SSAValue, rhs: SSAValue
) -> SSAValue:
    """A binary operation on floats, in their compute type."""
    if op is lazy.RemOp:
        return _remainder(scalars, lhs, rhs)
    return scalars.emit(_BINARY[op](lhs, rhs))  # pyright: ignore[reportCallIssue]


def _remainder(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """``fmod`` with one fused step in float64: exact while the quotient is below 2^53."""
    narrow = lhs.type != f64
    x, y = (scalars.emit(arith.ExtFOp(v, f64)) if narrow else v for v in (lhs, rhs))
    quotient = scalars.emit(math.TruncOp(scalars.emit(arith.DivfOp(x, y))))
    step = scalars.emit(math.FmaOp(scalars.emit(arith.NegfOp(quotient)), y, x))
    # A quotient that was rounded up leaves a remainder of the wrong sign.
    magnitude = scalars.emit(math.AbsFOp(y))
    signed = scalars.emit(math.CopySignOp(magnitude, x))
    wrong = scalars.cmpf("olt", scalars.emit(arith.MulfOp(step, x)), scalars.const(0, f64))
    fixed = scalars.select(wrong, scalars.emit(arith.AddfOp(step, signed)), step)
    result = scalars.emit(math.CopySignOp(fixed, x))
    # Nothing is left of infinity, and everything of a number below infinity.
    infinite = scalars.cmpf("oeq", magnitude, scalars.const(inf, f64))
    below = scalars.cmpf("olt", scalars.emit(math.AbsFOp(x)), scalars.const(inf, f64))
    result = scalars.select(scalars.emit(arith.AndIOp(infinite, below)), x, result)
    return scalars.emit(arith.TruncFOp(result, f32)) if narrow else result
