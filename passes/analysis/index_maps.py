"""The index maps of the movement operations: which element of which operand an element is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.ir import SSAValue

from plait.dialects import lazy
from plait.passes.analysis.affine import ZERO, Expr, Space, add, combine, constant, scale

Point = tuple[Expr, ...]
"""An index expression per axis."""


@dataclass(frozen=True)
class Condition:
    """``expr >= 0``, or ``expr == 0``."""

    expr: Expr
    equality: bool = False

    def decide(self, space: Space) -> bool | None:
        """Whether it always holds, never holds, or depends."""
        low, high = space.bounds_of(self.expr)
        if self.equality:
            return True if low == high == 0 else False if low > 0 or high < 0 else None
        return True if low >= 0 else False if high < 0 else None


@dataclass(frozen=True)
class Source:
    """An element of an operand that an element of a result is, under conditions."""

    value: SSAValue
    point: Point
    conditions: tuple[Condition, ...] = ()
    """Those that are not always true; all must hold."""


def _ints(attribute: object) -> tuple[int, ...]:
    return tuple(cast(Any, attribute).get_values())


def sources(op: lazy.MovementOp, point: Point, space: Space) -> tuple[Source, ...]:
    """Where the element of the result at ``point`` comes from: the first source whose conditions
    hold. When none does, it is padding. Sources that never apply are left out."""
    match op:
        case lazy.ConcatOp():
            return _concat(op, point, space)
        case lazy.PadOp():
            return _pad(op, point, space)
        case _:
            [operand] = op.operands
            return (Source(operand, _whole(op, point, space)),)


def _whole(op: lazy.MovementOp, point: Point, space: Space) -> Point:
    """The operand's element for the operations where every element has one."""
    match op:
        case lazy.ReshapeOp():
            return reshape(point, lazy.shape_of(op.result), lazy.shape_of(op.operand), space)
        case lazy.PermuteOp():
            order = _ints(op.permutation)
            moved = [ZERO] * len(order)
            for axis, expr in zip(order, point, strict=True):
                moved[axis] = expr
            return tuple(moved)
        case lazy.ExpandOp():
            extents = lazy.shape_of(op.operand)
            return tuple(
                ZERO if extent == 1 else expr for extent, expr in zip(extents, point, strict=True)
            )
        case lazy.SliceOp():
            bounds = zip(point, _ints(op.starts), _ints(op.steps), strict=True)
            return tuple(add(scale(expr, step), start) for expr, start, step in bounds)
        case lazy.FlipOp():
            flipped, extents = set(_ints(op.axes)), lazy.shape_of(op.operand)
            return tuple(
                add(scale(expr, -1), extents[axis] - 1) if axis in flipped else expr
                for axis, expr in enumerate(point)
            )
        case lazy.WindowOp():
            return _window(op, point)
        case _:
            raise AssertionError(f"{op.name} is not a movement operation with one whole operand")


def _window(op: lazy.WindowOp, point: Point) -> Point:
    axes = _ints(op.axes)
    moved = list(point[: len(point) - len(axes)])
    within = point[len(point) - len(axes) :]
    for axis, expr, stride, dilation in zip(
        axes, within, _ints(op.strides), _ints(op.dilations), strict=True
    ):
        moved[axis] = combine((moved[axis], stride), (expr, dilation))
    return tuple(moved)


def _kept(conditions: Sequence[Condition], space: Space) -> tuple[Condition, ...] | None:
    """The conditions that depend, or None if one never holds."""
    decided = [(condition, condition.decide(space)) for condition in conditions]
    if any(verdict is False for _, verdict in decided):
        return None
    return tuple(condition for condition, verdict in decided if verdict is None)


def _pad(op: lazy.PadOp, point: Point, space: Space) -> tuple[Source, ...]:
    extents = lazy.shape_of(op.operand)
    if 0 in extents:
        return ()
    moved: list[Expr] = []
    conditions: list[Condition] = []
    for expr, extent, low, gap in zip(
        point, extents, _ints(op.low), _ints(op.interior), strict=True
    ):
        offset, step = add(expr, -low), gap + 1
        conditions.append(Condition(offset))
        conditions.append(Condition(add(scale(offset, -1), (extent - 1) * step)))
        if gap and extent > 1:
            conditions.append(Condition(space.mod(offset, step), equality=True))
        moved.append(space.floordiv(offset, step) if extent > 1 else ZERO)
    kept = _kept(conditions, space)
    return () if kept is None else (Source(op.operand, tuple(moved), kept),)


def _concat(op: lazy.ConcatOp, point: Point, space: Space) -> tuple[Source, ...]:
    axis = op.axis.value.data
    found: list[Source] = []
    start = 0
    for value in op.inputs:
        extent = lazy.shape_of(value)[axis]
        offset = add(point[axis], -start)
        start += extent
        if not extent:
            continue
        inside = (Condition(offset), Condition(add(scale(offset, -1), extent - 1)))
        kept = _kept(inside, space)
        if kept is not None:
            found.append(Source(value, (*point[:axis], offset, *point[axis + 1 :]), kept))
    return tuple(found)


def reshape(point: Point, have: Sequence[int], want: Sequence[int], space: Space) -> Point:
    """The point of shape ``want`` at the row-major position of ``point`` in shape ``have``.

    Axes are matched in the smallest groups of equal product, so that a reshape leaves the axes it
    does not touch as they are.
    """
    if 0 in have:
        return tuple(ZERO for _ in want)
    result: list[Expr] = []
    first = 0
    taken = 0
    while first < len(have) or taken < len(want):
        last, end = first, taken
        left = right = 1
        while True:
            if left < right or (left == right and last == first and last < len(have)):
                left *= have[last]
                last += 1
            elif right < left or (end == taken and end < len(want)):
                right *= want[end]
                end += 1
            else:
                break
        if last == first + 1 and end == taken + 1:
            result.append(point[first])
            first, taken = last, end
            continue
        group = space.linearize(point[first:last], have[first:last])
        if prod(have[first:last]) == 1:
            group = constant(0)
        result.extend(space.delinearize(group, want[taken:end]))
        first, taken = last, end
    return tuple(ZERO if extent == 1 else expr for extent, expr in zip(want, result, strict=True))


def in_range(point: Point, shape: Sequence[int], space: Space) -> bool:
    """Whether a point certainly lies within a shape."""
    for expr, extent in zip(point, shape, strict=True):
        low, high = space.bounds_of(expr)
        if low < 0 or high >= extent:
            return False
    return True
