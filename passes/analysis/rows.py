"""Rows: the axes along which a kernel can run in parallel while it keeps values on chip.

A value that is kept is computed once for each row and then read by whatever needs it in that row.
An axis of it is a row axis if every result of the kernel needs the value, along that axis, only at
its own position on one of its axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any, cast

from xdsl.ir import BlockArgument, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp, KeepOp
from plait.passes.analysis.affine import ZERO, Expr, Space, index
from plait.passes.analysis.index_maps import Point, sources

MAX_STATES = 1 << 12
"""Elements of values that are followed from one result at most."""

Through = Callable[[SSAValue], SSAValue | None]
"""What a value stands for where it is not computed by an operation: None for a buffer."""
Axes = tuple[int, ...]
Places = Mapping[SSAValue, Sequence[Point]]
"""The points at which an element needs each value."""


def no_way(value: SSAValue) -> SSAValue | None:
    """No value stands for another one."""
    return None


@dataclass(frozen=True)
class Rows:
    """The rows of a kernel, and where they are in the values it keeps and in its results."""

    extents: tuple[int, ...]
    of_value: Mapping[SSAValue, Mapping[int, int]]
    """For each kept value, which of its axes is which axis of the rows."""
    of_result: Mapping[SSAValue, Mapping[int, int]]

    @property
    def count(self) -> int:
        return prod(self.extents)

    def kept(self, value: SSAValue) -> Axes:
        """The axes of a value along which it is kept."""
        return tuple(a for a in range(len(lazy.shape_of(value))) if a not in self.of_value[value])


class Steps:
    """From an element to those it is computed from; what was found once is remembered.

    Points are over the axes of the value that is stored or kept, and over more indices that reduces
    open. Values of one shape share them, and all their steps.
    """

    def __init__(self) -> None:
        self._spaces: dict[tuple[int, ...], Space] = {}
        self._known: dict[tuple[SSAValue, Point, int], Step] = {}

    def space(self, value: SSAValue) -> Space:
        """The indices for elements of ``value``: from 0 on, its axes."""
        shape = lazy.shape_of(value)
        space = self._spaces.get(shape)
        if space is None:
            space = self._spaces[shape] = Space.of_extents(shape)
        return space

    def of(self, op: Operation, value: SSAValue, point: Point, space: Space) -> Step:
        """The elements that an operation computes an element of its result from."""
        key = (value, point, id(space))
        known = self._known.get(key)
        if known is None:
            before = len(space.bounds)
            states = _needs(op, point, space)
            opened = tuple(range(before, len(space.bounds)))
            known = self._known[key] = Step(states, opened)
        return known


@dataclass(frozen=True)
class Step:
    """Elements that are needed, and the indices opened for them."""

    states: Sequence[tuple[SSAValue, Point]]
    opened: tuple[int, ...] = ()


@dataclass(frozen=True)
class Follower:
    """Follows elements inside of a kernel to where they come from."""

    through: Through = no_way
    steps: Steps = field(default_factory=Steps)

    def step(self, value: SSAValue, point: Point, space: Space) -> Step:
        if type(value) is BlockArgument:
            inner = self.through(value)
            return Step(() if inner is None else ((inner, point),))
        return self.steps.of(cast(Operation, value.owner), value, point, space)

    def places(self, start: SSAValue) -> Places | None:
        """The points at which an element of ``start`` needs each value; None if there are too
        many. The indices from 0 on are the axes of ``start``."""
        space = self.steps.space(start)
        first = (start, _point_of(start))
        found: dict[SSAValue, list[Point]] = {}
        seen = {first}
        pending = [first]
        while pending:
            value, point = pending.pop()
            found.setdefault(value, []).append(point)
            for state in self.step(value, point, space).states:
                if state not in seen:
                    seen.add(state)
                    pending.append(state)
            if len(seen) > MAX_STATES:
                return None
        return found


def _point_of(value: SSAValue) -> Point:
    """An element by an index for each of its axes."""
    shape = lazy.shape_of(value)
    return tuple(index(axis) if extent != 1 else ZERO for axis, extent in enumerate(shape))


def rows_of(
    values: Iterable[SSAValue],
    places: Mapping[SSAValue, Places | None],
    links: Iterable[SSAValue] = (),
) -> Rows | None:
    """The rows of a kernel that keeps ``values`` and stores results; None if there are none that
    all of them share. ``places`` has each result with what it needs. Results are lined up by the
    values they both need, kept ones or ``links``."""
    wanted = list(dict.fromkeys(values))
    needed = _only({*wanted, *links}, places)
    if needed is None:
        return None
    results = list(needed)
    first = max(results, key=lambda result: len(needed[result]))
    shape = lazy.shape_of(first)
    rows = [axis for axis, extent in enumerate(shape) if extent != 1]
    while rows:
        lined_up = _line_up(first, rows, needed)
        if any(value not in lined_up.of_value for value in wanted):
            return None
        if any(result not in lined_up.of_result for result in results):
            return None
        shared = [lined_up.of_value[value] for value in wanted]
        common = set(rows).intersection(
            *(set(held.values()) for held in (*shared, *lined_up.of_result.values()))
        )
        if common == set(rows):
            return lined_up.numbered(rows, wanted, shape)
        rows = [axis for axis in rows if axis in common]
    return None


def core_of(value: SSAValue) -> SSAValue:
    """A stored value before views that keep every element: a kernel undoes them in the store."""
    while isinstance(value.owner, lazy.PermuteOp | lazy.ReshapeOp | lazy.FlipOp | KeepOp):
        value = value.owner.operand
    return value


def kept_values(group: GroupOp) -> list[SSAValue]:
    """What a group keeps, in the order in which it is computed."""
    return [op.operand for op in group.body_ops() if isinstance(op, KeepOp)]


def rows_of_group(group: GroupOp, results: Iterable[SSAValue]) -> Rows | None:
    """The rows of a group that keeps values and stores ``results``; None for one that does not
    keep any, or that cannot."""
    values = kept_values(group)
    if not values:
        return None
    follower = Follower()
    reduces = [op.results[0] for op in group.body_ops() if _closes_axes(type(op))]
    return rows_of(values, {result: follower.places(result) for result in results}, reduces)


def _only(
    known: set[SSAValue], places: Mapping[SSAValue, Places | None]
) -> dict[SSAValue, Places] | None:
    """Of what each result needs, the known values."""
    needed = dict[SSAValue, Places]()
    for result, found in places.items():
        if found is None:
            return None
        needed[result] = {value: points for value, points in found.items() if value in known}
    return needed


@dataclass
class _LinedUp:
    """Where the axes of one result are in values and in other results."""

    of_value: dict[SSAValue, dict[int, int]]
    of_result: dict[SSAValue, dict[int, int]]

    def numbered(
        self, rows: Sequence[int], values: Iterable[SSAValue], shape: Sequence[int]
    ) -> Rows:
        number = {axis: place for place, axis in enumerate(rows)}

        def renamed(axes: Mapping[int, int]) -> dict[int, int]:
            return {axis: number[row] for axis, row in axes.items() if row in number}

        return Rows(
            tuple(shape[axis] for axis in rows),
            {value: renamed(self.of_value[value]) for value in values},
            {result: renamed(axes) for result, axes in self.of_result.items()},
        )


def _line_up(first: SSAValue, rows: Sequence[int], places: Mapping[SSAValue, Places]) -> _LinedUp:
    """Follows the axes of ``first`` into the values it needs, and from there into other results
    that need them, and so on."""
    found = _LinedUp({}, {first: {axis: axis for axis in rows}})
    pending = [first]
    while pending:
        result = pending.pop()
        for value, points in places[result].items():
            own = _own(points, found.of_result[result])
            before = found.of_value.get(value)
            agreed = own if before is None else dict(own.items() & before.items())
            found.of_value[value] = agreed
        for other, needed in places.items():
            if other not in found.of_result and not found.of_value.keys().isdisjoint(needed):
                found.of_result[other] = _by_value(other, needed, found.of_value)
                pending.append(other)
    return found


def rows_that_read(places: Places, row_of: Mapping[int, int]) -> dict[BlockArgument, set[int]]:
    """The values from outside that a result needs, and on which of the rows it depends where it
    reads each. ``row_of`` has the rows that its axes are."""
    found: dict[BlockArgument, set[int]] = {}
    for value, points in places.items():
        if isinstance(value, BlockArgument):
            used = [{k for expr in point for k in expr.indices()} for point in points]
            alike = used[0].intersection(*used[1:])
            found[value] = {row_of[axis] for axis in alike if axis in row_of}
    return found


def _needs(op: Operation, point: Point, space: Space) -> list[tuple[SSAValue, Point]]:
    def anywhere(operand: SSAValue, axis: int) -> tuple[SSAValue, Point]:
        at = index(space.new_index((0, max(lazy.shape_of(operand)[axis] - 1, 0))))
        return operand, (*point[:axis], at, *point[axis + 1 :])

    match op:
        case lazy.MovementOp():
            return [(source.value, source.point) for source in sources(op, point, space)]
        case lazy.ReduceOp() | lazy.ArgReduceOp():
            return [(op.operand, _opened(op, point, space))]
        case lazy.ScanOp():
            return [anywhere(op.operand, op.axis.value.data)]
        case lazy.GatherOp():
            return [(op.indices, point), anywhere(op.source, op.axis.value.data)]
        case lazy.ScatterOp():
            axis = op.axis.value.data
            rest = [anywhere(operand, axis) for operand in (op.indices, op.updates)]
            return [(op.destination, point), *rest]
        case lazy.RngBitsOp():
            return []
        case _:
            return [(operand, point) for operand in op.operands]


def _opened(op: lazy.ReduceOp | lazy.ArgReduceOp, point: Point, space: Space) -> Point:
    shape = lazy.shape_of(op.operand)
    if isinstance(op, lazy.ReduceOp):
        axes = set(cast(Any, op.axes).get_values())
    else:
        axes = {op.axis.value.data}
    kept = iter(point)
    return tuple(
        (index(space.new_index((0, max(extent - 1, 0)))) if extent != 1 else ZERO)
        if axis in axes
        else next(kept)
        for axis, extent in enumerate(shape)
    )


def _axis_of(expr: Expr, rank: int) -> int | None:
    """The axis that an expression is, if it is one of the first ``rank`` and nothing else."""
    for axis in expr.indices():
        if axis < rank and expr == index(axis):
            return axis
    return None


def _own(points: Sequence[Point], order: Mapping[int, int]) -> dict[int, int]:
    """Which axes of a value are which of the numbered axes of the result."""
    found: dict[int, int] = {}
    for axis in range(len(points[0])):
        exprs = {point[axis] for point in points}
        (only,) = exprs if len(exprs) == 1 else (None,)
        at = _axis_of(only, 1 << 30) if only is not None else None
        if at is not None and at in order:
            found[axis] = order[at]
    return found


def _by_value(
    result: SSAValue, places: Places, of_value: Mapping[SSAValue, Mapping[int, int]]
) -> dict[int, int]:
    """Which axes of a result are which rows, through the values that it needs."""
    rank = len(lazy.shape_of(result))
    found: dict[int, int] = {}
    for value, points in places.items():
        for axis, row in of_value.get(value, {}).items():
            at = _axis_of(points[0][axis], rank)
            if at is not None:
                found[at] = row
    return found


def repeats(
    roots: Mapping[SSAValue, Iterable[int]],
    kept: Iterable[SSAValue],
    watched: Iterable[SSAValue],
    follower: Follower,
) -> int:
    """How often an element of a reduction, or of a watched value, is computed at most.

    ``roots`` are the values that are computed at all their points, kept or stored, with their row
    axes. A reduction is repeated by the loops around it that its element does not depend on, but
    not by those inside of the last one it does depend on: it is computed before they start. Every
    root computes its elements anew, but for those that depend on the row alone.
    """
    stops, heavy = set(kept), set(watched)
    times = dict[SSAValue, int]()
    per_row = set[SSAValue]()
    for root, rows in roots.items():
        shape = lazy.shape_of(root)
        space, point = follower.steps.space(root), _point_of(root)
        first = [axis for axis in rows if shape[axis] != 1]
        inner = [axis for axis, extent in enumerate(shape) if extent != 1 and axis not in first]
        # An element and the loops around it, outermost first.
        pending = [((root, point), (*first, *inner))]
        seen = {(root, point)}
        while pending:
            (value, point), loops = pending.pop()
            if value in stops and value is not root:
                continue
            if value in heavy or _closes_axes(type(value.owner)):
                used = {number for expr in point for number in expr.indices()}
                if used == set(first):
                    per_row.add(value)
                else:
                    times[value] = times.get(value, 0) + _repeated(loops, used, space)
            step = follower.step(value, point, space)
            inside = loops + step.opened
            for state in step.states:
                if state not in seen:
                    seen.add(state)
                    pending.append((state, inside))
            if len(seen) > MAX_STATES:
                return 1 << 30
    return max((count + (value in per_row) for value, count in times.items()), default=1)


@cache
def _closes_axes(op: type) -> bool:
    return issubclass(op, lazy.ReduceOp | lazy.ArgReduceOp)


def _repeated(loops: Sequence[int], used: set[int], space: Space) -> int:
    places = [place for place, number in enumerate(loops) if number in used]
    outside = loops[: max(places, default=-1) + 1]
    return prod(space.extent(number) for number in outside if number not in used)
