"""Elementwise identities. Signed zeros may change sign (``x + 0``); nothing else does."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dtypes import is_bool, is_float
from plait.passes.simplify.builder import Builder, owner_of, splat_value

_INVOLUTIONS = (lazy.NegOp, lazy.NotOp)
_IDEMPOTENT = (
    lazy.AbsOp,
    lazy.FloorOp,
    lazy.CeilOp,
    lazy.RoundOp,
    lazy.TruncOp,
    lazy.MaterializeOp,
)


def simplify_elementwise(op: Operation, build: Builder) -> SSAValue | None:
    """A simpler value for an elementwise operation, or None."""
    match op:
        case lazy.AddOp() | lazy.MulOp() | lazy.OrOp() | lazy.AndOp() | lazy.XorOp():
            return _commuting(op) or _reassociated(op, build)
        case lazy.SubOp() | lazy.ShlOp() | lazy.ShrOp():
            return op.lhs if splat_value(op.rhs) == 0 else None
        case lazy.DivOp() | lazy.PowOp():
            return op.lhs if splat_value(op.rhs) == 1 else None
        case lazy.MaxOp() | lazy.MinOp():
            return _extremum(op)
        case lazy.SelectOp():
            return _select(op)
        case lazy.CastOp() | lazy.BitcastOp():
            return op.operand if op.operand.type == op.result.type else None
        case _:
            return _unary(op)


def _commuting(op: lazy.BinaryOp) -> SSAValue | None:
    boolean = lazy.element_type_of(op.result) == i1
    ones = 1 if boolean else -1
    neutral = {
        "lazy.add": 0,
        "lazy.mul": 1,
        "lazy.or": 0,
        "lazy.and": ones,
        "lazy.xor": 0,
    }[op.name]
    for side, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        value = splat_value(other)
        if value is not None and value == neutral:
            return side
    if op.lhs is op.rhs and isinstance(op, lazy.OrOp | lazy.AndOp):
        return op.lhs
    return None


def _reassociated(op: lazy.BinaryOp, build: Builder) -> SSAValue | None:
    """``(x + a) + b`` of integers is ``x + (a + b)``; they wrap, so it is exact."""
    inner, added = owner_of(op.lhs), splat_value(op.rhs)
    if inner is None or added is None:
        inner, added = owner_of(op.rhs), splat_value(op.lhs)
    if added is None or not isinstance(op, lazy.AddOp) or not isinstance(inner, lazy.AddOp):
        return None
    if is_float(lazy.element_type_of(op.result)) or is_bool(lazy.element_type_of(op.result)):
        return None
    for value, first in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
        constant = splat_value(first)
        if constant is not None:
            return build.add(lazy.AddOp(value, build.splat(constant + added, op.result.type)))
    return None


def _extremum(op: lazy.MaxOp | lazy.MinOp) -> SSAValue | None:
    if op.lhs is op.rhs:
        return op.lhs
    unreachable = float("-inf") if isinstance(op, lazy.MaxOp) else float("inf")
    for side, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if splat_value(other) == unreachable:
            return side
    return None


def _select(op: lazy.SelectOp) -> SSAValue | None:
    if op.on_true is op.on_false:
        return op.on_true
    condition = splat_value(op.condition)
    if condition is None:
        return None
    return op.on_true if condition else op.on_false


def _unary(op: Operation) -> SSAValue | None:
    inner = owner_of(op.operands[0]) if op.operands else None
    if inner is None or type(inner) is not type(op):
        return None
    if isinstance(op, _INVOLUTIONS):
        return inner.operands[0]
    return inner.results[0] if isinstance(op, _IDEMPOTENT) else None
