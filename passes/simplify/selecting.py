"""Sums that select one element: ``sum_k (k == i ? x[k] : 0)`` is ``x[i]``.

Indexing and embeddings arrive as comparisons of a count with the indices, a select and a sum over
the count. The result is a gather, zero where the index is out of range; the product of indices and
counts never exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, i1, i32, i64
from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy import ComparePredicate, ReduceKind
from plait.passes.analysis.affine import ZERO, Expr, Space, add, combine, constant, index, scale
from plait.passes.analysis.index_maps import Point, sources
from plait.passes.simplify.builder import Builder, owner_of, splat_value
from plait.passes.simplify.reduces import axes_of

_MAX_STEPS = 64


def select_one(op: Operation, build: Builder) -> SSAValue | None:
    """The gather that a sum over a one-hot selection is, or None."""
    if not isinstance(op, lazy.ReduceOp) or op.kind.data != ReduceKind.SUM:
        return None
    axes = axes_of(op)
    views, select = _through_views(op.operand)
    if len(axes) != 1 or not isinstance(select, lazy.SelectOp):
        return None
    shape = lazy.shape_of(op.operand)
    if 0 in shape:
        return None
    found = _equality(select.condition)
    if found is None:
        return None
    chosen, other = (select.on_true, select.on_false)
    if not found.equal:
        chosen, other = other, chosen
    if splat_value(other) != 0:
        return None
    path = [*found.views, *views]
    for counted, indices in ((found.lhs, found.rhs), (found.rhs, found.lhs)):
        offset = _count_along(_replay(build, counted, path), axes[0], shape)
        wanted = _replay(build, indices, path)
        if offset is not None and _is_constant_along(wanted, axes[0]):
            values = _replay(build, chosen, views)
            return _gather(build, op, values, wanted, axes[0], offset)
    return None


@dataclass
class _Equality:
    """A condition that compares two values for (in)equality, under views."""

    lhs: SSAValue
    rhs: SSAValue
    equal: bool
    views: list[lazy.MovementOp]
    """From the comparison outwards."""


def _through_views(value: SSAValue) -> tuple[list[lazy.MovementOp], Operation | None]:
    """The views on a value, innermost first, and what they are views of."""
    views = list[lazy.MovementOp]()
    op = owner_of(value)
    while isinstance(op, lazy.MovementOp) and _is_whole(op) and len(views) < _MAX_STEPS:
        views.append(op)
        op = owner_of(op.operands[0])
    return views[::-1], op


def _is_whole(op: lazy.MovementOp) -> bool:
    """Whether every element of the result is an element of the only operand."""
    return not isinstance(op, lazy.PadOp | lazy.ConcatOp)


def _equality(condition: SSAValue) -> _Equality | None:
    equal = True
    views = list[lazy.MovementOp]()
    for _ in range(_MAX_STEPS):
        more, op = _through_views(condition)
        views = [*more, *views]
        if isinstance(op, lazy.NotOp):
            equal, condition = not equal, op.operand
        elif isinstance(op, lazy.CompareOp) and op.predicate.data in (
            ComparePredicate.EQ,
            ComparePredicate.NE,
        ):
            same = op.predicate.data == ComparePredicate.EQ
            if lazy.element_type_of(op.lhs) != i1:
                return _Equality(op.lhs, op.rhs, equal == same, views)
            truth = splat_value(op.rhs)
            if truth is None:
                return None
            equal = equal if same == bool(truth) else not equal
            condition = op.lhs
        else:
            return None
    return None


def _replay(build: Builder, value: SSAValue, views: Sequence[lazy.MovementOp]) -> SSAValue:
    """The same views on another value of the same shape."""
    for view in views:
        value = build.add(_on(view, value))
    return value


def _on(view: lazy.MovementOp, value: SSAValue) -> Operation:
    type = TensorType(lazy.element_type_of(value), lazy.shape_of(view.results[0]))
    return view.create(operands=[value], result_types=[type], properties=dict(view.properties))


def _count_along(value: SSAValue, axis: int, shape: tuple[int, ...]) -> int | None:
    """``c`` if the value at every point of the shape is its index along the axis plus ``c``."""
    space = Space.of_extents(shape)
    point = tuple(index(k) if extent != 1 else ZERO for k, extent in enumerate(shape))
    expr = _index_value(value, point, space)
    if expr is None:
        return None
    offset = combine(expr, (index(axis) if shape[axis] != 1 else ZERO, -1))
    return offset.constant if offset.is_constant else None


def _index_value(value: SSAValue, point: Point, space: Space) -> Expr | None:
    """The value at a point as an expression of the indices, if it is one."""
    total, factor = constant(0), 1
    for _ in range(_MAX_STEPS):
        number = splat_value(value)
        if number is not None:
            return add(total, factor * int(number))
        op = owner_of(value)
        match op:
            case lazy.IotaOp():
                return combine(total, scale(point[op.axis.value.data], factor))
            case lazy.MovementOp() if _is_whole(op):
                (source,) = sources(op, point, space)
                value, point = source.value, source.point
            case lazy.AddOp() | lazy.SubOp() if isinstance(splat_value(op.rhs), int):
                sign = 1 if isinstance(op, lazy.AddOp) else -1
                total = add(total, sign * factor * int(splat_value(op.rhs) or 0))
                value = op.lhs
            case lazy.MulOp() if isinstance(splat_value(op.rhs), int):
                factor *= int(splat_value(op.rhs) or 0)
                value = op.lhs
            case _:
                return None
    return None


def _is_constant_along(value: SSAValue, axis: int) -> bool:
    shape = lazy.shape_of(value)
    space = Space.of_extents(shape)
    point: Point = tuple(index(k) if extent != 1 else ZERO for k, extent in enumerate(shape))
    for _ in range(_MAX_STEPS):
        op = owner_of(value)
        if not isinstance(op, lazy.MovementOp) or not _is_whole(op):
            break
        (source,) = sources(op, point, space)
        value, point = source.value, source.point
    return all(axis not in expr.indices() for expr in point)


def _gather(
    build: Builder, op: lazy.ReduceOp, values: SSAValue, wanted: SSAValue, axis: int, offset: int
) -> SSAValue | None:
    """``values`` at ``wanted - offset`` along the axis; zero outside."""
    type = lazy.element_type_of(wanted)
    shape = lazy.shape_of(values)
    if type not in (i32, i64):
        return None
    stops = [1 if k == axis else extent for k, extent in enumerate(shape)]
    zeros = [0] * len(shape)
    at = build.add(lazy.SliceOp(wanted, zeros, stops, [1] * len(shape)))
    if offset:
        at = build.add(lazy.SubOp(at, build.splat(offset, at.type)))
    if _is_constant_along(values, axis):
        taken = build.add(lazy.SliceOp(values, zeros, stops, [1] * len(shape)))
    else:
        taken = build.add(lazy.GatherOp(values, at, axis))
    flags = TensorType(i1, stops)
    low = build.add(lazy.CompareOp(ComparePredicate.GE, at, build.splat(0, at.type), flags))
    top = build.splat(shape[axis], at.type)
    high = build.add(lazy.CompareOp(ComparePredicate.LT, at, top, flags))
    inside = build.add(lazy.AndOp(low, high))
    masked = build.add(lazy.SelectOp(inside, taken, build.splat(0, taken.type)))
    return build.reshape(masked, lazy.shape_of(op.result))
