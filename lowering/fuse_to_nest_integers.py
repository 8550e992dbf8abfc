"""Scalar code of elementwise operations on integer and ``i1`` elements. Nothing traps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects import lazy
from plait.dtypes import is_bool, is_unsigned
from plait.lowering.fuse_to_nest_scalars import Scalars, width

_BINARY: dict[type[Operation], type[Operation]] = {
    lazy.AddOp: arith.AddiOp,
    lazy.SubOp: arith.SubiOp,
    lazy.MulOp: arith.MuliOp,
    lazy.AndOp: arith.AndIOp,
    lazy.OrOp: arith.OrIOp,
    lazy.XorOp: arith.XOrIOp,
}
_BOOLEAN: dict[type[Operation], type[Operation]] = {
    lazy.AddOp: arith.OrIOp,
    lazy.MulOp: arith.AndIOp,
    lazy.MaxOp: arith.OrIOp,
    lazy.MinOp: arith.AndIOp,
}


def integer_operation(
    scalars: Scalars, op: Operation, type: Attribute, operands: Sequence[SSAValue]
) -> SSAValue:
    """An elementwise operation on integers or booleans."""
    if len(operands) == 2:
        return integer_binary(scalars, op.__class__, type, operands[0], operands[1])
    [value] = operands
    zero = scalars.const(0, value.type)
    match op:
        case lazy.NotOp():
            return scalars.emit(arith.XOrIOp(value, scalars.const(-1, value.type)))
        case lazy.NegOp():
            return scalars.emit(arith.SubiOp(zero, value))
        case lazy.AbsOp() if is_unsigned(type):
            return value
        case lazy.AbsOp():
            return scalars.emit(arith.MaxSIOp(value, scalars.emit(arith.SubiOp(zero, value))))
        case lazy.SignOp():
            one = scalars.const(1, value.type)
            sign = scalars.select(scalars.cmpi("ne", value, zero), one, zero)
            if is_unsigned(type):
                return sign
            negative = scalars.cmpi("slt", value, zero)
            return scalars.select(negative, scalars.const(-1, value.type), sign)
        case _:
            raise AssertionError(f"{op.name} is not an operation on integers")


def integer_binary(
    scalars: Scalars, op: type[Operation], type: Attribute, lhs: SSAValue, rhs: SSAValue
) -> SSAValue:
    """A binary operation on integers or booleans."""
    direct = (_BOOLEAN if is_bool(type) else {}).get(op) or _BINARY.get(op)
    if direct is not None:
        return scalars.emit(direct(lhs, rhs))  # pyright: ignore[reportCallIssue]
    unsigned = is_unsigned(type) or is_bool(type)
    if op is lazy.MaxOp:
        return scalars.emit((arith.MaxUIOp if unsigned else arith.MaxSIOp)(lhs, rhs))
    if op is lazy.MinOp:
        return scalars.emit((arith.MinUIOp if unsigned else arith.MinSIOp)(lhs, rhs))
    if op in (lazy.DivOp, lazy.RemOp):
        return _divide(scalars, op, unsigned, lhs, rhs)
    if op in (lazy.ShlOp, lazy.ShrOp):
        return _shift(scalars, op, unsigned, lhs, rhs)
    if op is lazy.PowOp:
        return _power(scalars, unsigned, lhs, rhs)
    raise AssertionError(f"{op.name} is not an operation on integers")


def _divide(
    scalars: Scalars, op: type[Operation], unsigned: bool, lhs: SSAValue, rhs: SSAValue
) -> SSAValue:
    """Truncating quotient or remainder; both are 0 for a divisor of 0, and -1 never overflows."""
    zero, one = scalars.const(0, lhs.type), scalars.const(1, lhs.type)
    by_zero = scalars.cmpi("eq", rhs, zero)
    special = by_zero
    if not unsigned:
        by_minus_one = scalars.cmpi("eq", rhs, scalars.const(-1, lhs.type))
        special = scalars.emit(arith.OrIOp(by_zero, by_minus_one))
    safe = scalars.select(special, one, rhs)
    if op is lazy.RemOp:
        return scalars.emit((arith.RemUIOp if unsigned else arith.RemSIOp)(lhs, safe))
    quotient = scalars.emit((arith.DivUIOp if unsigned else arith.DivSIOp)(lhs, safe))
    if not unsigned:
        negated = scalars.emit(arith.SubiOp(zero, lhs))
        quotient = scalars.select(special, negated, quotient)
    return scalars.select(by_zero, zero, quotient)


def _shift(
    scalars: Scalars, op: type[Operation], unsigned: bool, lhs: SSAValue, rhs: SSAValue
) -> SSAValue:
    """Shifts as if bit by bit, for any amount."""
    last = scalars.const(width(lhs.type) - 1, lhs.type)
    amount = scalars.emit(arith.MinUIOp(rhs, last))
    if op is lazy.ShrOp and not unsigned:
        return scalars.emit(arith.ShRSIOp(lhs, amount))
    shifted = scalars.emit((arith.ShLIOp if op is lazy.ShlOp else arith.ShRUIOp)(lhs, amount))
    within = scalars.cmpi("ule", rhs, last)
    return scalars.select(within, shifted, scalars.const(0, lhs.type))


def _power(scalars: Scalars, unsigned: bool, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Power by squaring, a step per bit of the exponent; products wrap."""
    type, bits = lhs.type, width(lhs.type)
    zero, one = scalars.const(0, type), scalars.const(1, type)
    result, square = one, lhs
    for bit in range(bits if unsigned else bits - 1):
        mask = scalars.const(1 << bit, type)
        used = scalars.cmpi("ne", scalars.emit(arith.AndIOp(rhs, mask)), zero)
        result = scalars.select(used, scalars.emit(arith.MuliOp(result, square)), result)
        square = scalars.emit(arith.MuliOp(square, square))
    if unsigned:
        return result
    negative = scalars.cmpi("slt", rhs, zero)
    inverse = scalars.select(scalars.cmpi("eq", lhs, one), one, zero)
    minus_one = scalars.const(-1, type)
    odd = scalars.cmpi("ne", scalars.emit(arith.AndIOp(rhs, one)), zero)
    inverse = scalars.select(
        scalars.cmpi("eq", lhs, minus_one), scalars.select(odd, minus_one, one), inverse
    )
    return scalars.select(negative, inverse, result)
