"""``sum(c * (x - mean(x))) = 0`` for any factor ``c`` that is constant along the summed axes."""

from __future__ import annotations

from math import prod
from typing import Any, cast

from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy import ReduceKind
from plait.dtypes import is_float
from plait.passes.simplify.builder import Builder, owner_of, splat_value
from plait.passes.simplify.reduces import axes_of

_MAX_FACTORS = 16


def vanish_centred_sum(op: Operation, build: Builder) -> SSAValue | None:
    """Drops centred terms from a sum; exact in real arithmetic, where inputs are finite.

    ``sum(c * (x - mean(x)))`` is zero, ``sum(y + c * (x - mean(x)))`` is ``sum(y)``.
    """
    if not isinstance(op, lazy.ReduceOp) or op.kind.data != ReduceKind.SUM:
        return None
    if not is_float(lazy.element_type_of(op.result)):
        return None
    axes = frozenset(axes_of(op))
    if _vanishes(op.operand, axes):
        return build.splat(0, op.result.type)
    term = owner_of(op.operand)
    if isinstance(term, lazy.AddOp | lazy.SubOp) and _vanishes(term.rhs, axes):
        return build.add(lazy.ReduceOp(ReduceKind.SUM, term.lhs, sorted(axes)))
    if isinstance(term, lazy.AddOp) and _vanishes(term.lhs, axes):
        return build.add(lazy.ReduceOp(ReduceKind.SUM, term.rhs, sorted(axes)))
    return None


def _vanishes(value: SSAValue, axes: frozenset[int]) -> bool:
    """Whether the value is centred over the axes, up to factors that are constant along them."""
    for _ in range(_MAX_FACTORS):
        inner = owner_of(value)
        match inner:
            case lazy.NegOp():
                value = inner.operand
            case lazy.MulOp() if _is_constant_along(inner.rhs, axes):
                value = inner.lhs
            case lazy.MulOp() if _is_constant_along(inner.lhs, axes):
                value = inner.rhs
            case lazy.DivOp() if _is_constant_along(inner.rhs, axes):
                value = inner.lhs
            case lazy.SubOp():
                return _is_mean(inner.rhs, inner.lhs, axes) or _is_mean(inner.lhs, inner.rhs, axes)
            case _:
                return False
    return False


def _is_constant_along(value: SSAValue, axes: frozenset[int]) -> bool:
    if splat_value(value) is not None:
        return True
    op = owner_of(value)
    if not isinstance(op, lazy.ExpandOp):
        return False
    source = lazy.shape_of(op.operand)
    return all(source[axis] == 1 for axis in axes)


def _is_mean(value: SSAValue, of: SSAValue, axes: frozenset[int]) -> bool:
    """Whether ``value`` is the mean of ``of`` over the axes, expanded back."""
    shape = lazy.shape_of(of)
    count = prod(shape[axis] for axis in axes)
    scale = 1.0
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    for _ in range(_MAX_FACTORS):
        op = owner_of(value)
        match op:
            case lazy.ExpandOp() if lazy.shape_of(op.operand) == kept:
                value = op.operand
            case lazy.ReshapeOp() if _keeps_axes(op, kept):
                value = op.operand
            case lazy.MulOp() if (factor := splat_value(op.rhs)) is not None:
                value, scale = op.lhs, scale * factor
            case lazy.MulOp() if (factor := splat_value(op.lhs)) is not None:
                value, scale = op.rhs, scale * factor
            case lazy.DivOp() if splat_value(op.rhs):
                value, scale = op.lhs, scale / cast(float, splat_value(op.rhs))
            case lazy.ReduceOp() if op.kind.data == ReduceKind.SUM:
                same = op.operand is of and frozenset(cast(Any, op.axes).get_values()) == axes
                return same and abs(scale * count - 1) < 1e-5
            case _:
                return False
    return False


def _keeps_axes(op: lazy.ReshapeOp, kept: tuple[int, ...]) -> bool:
    """Whether a reshape only adds or drops axes of extent 1, the others staying in order."""
    before = [extent for extent in lazy.shape_of(op.operand) if extent != 1]
    after = [extent for extent in lazy.shape_of(op.result) if extent != 1]
    return before == after == [extent for extent in kept if extent != 1]
