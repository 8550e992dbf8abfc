"""Points of a reduction's operand, from points of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from plait.dialects import lazy
from plait.passes.analysis.affine import Expr, combine, scale
from plait.passes.analysis.index_maps import Point


def reduced_axes(op: lazy.ReduceOp | lazy.ArgReduceOp) -> tuple[int, ...]:
    """The operand's axes that a reduction removes."""
    if isinstance(op, lazy.ReduceOp):
        return tuple(cast(Any, op.axes).get_values())
    return (op.axis.value.data,)


def merged_point(kept: Point, axes: Sequence[int], within: Sequence[Expr]) -> Point:
    """A point of a reduction's operand, from one of its result and one of the reduced axes."""
    inside = dict(zip(axes, within, strict=True))
    outside = iter(kept)
    rank = len(kept) + len(axes)
    return tuple(inside[axis] if axis in inside else next(outside) for axis in range(rank))


def merged_point_at(point: Point, axis: int, expr: Expr) -> Point:
    """The point with another expression on one axis."""
    return (*point[:axis], expr, *point[axis + 1 :])


def add_expr(lhs: Expr, rhs: Expr, factor: int) -> Expr:
    """``lhs + factor * rhs``."""
    return combine(lhs, scale(rhs, factor))
