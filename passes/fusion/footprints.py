"""Footprints of groups: every load as a function of the points of the group's iteration space.

The coordinates are the axes of the space, numbered; a value in the kept space (after the reduce) is
addressed by the kept axes under the same numbers. So a load before and one after the reduce, or one
in another group over the same space, can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from math import prod
from typing import Any, cast

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dtypes import itemsize
from plait.passes.analysis.access import Access, AccessKind, canonical
from plait.passes.analysis.affine import ZERO, Expr, Space, index
from plait.passes.analysis.index_maps import Condition, Point, Source, reshape, sources
from plait.passes.analysis.rows import core_of
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.footprint import Footprint, Load, Where
from plait.passes.fusion.plan import Plan

Axes = tuple[int, ...]
Shape = tuple[int, ...]


class _Kind(Enum):
    """How a walk goes on at an operation."""

    POINTWISE = auto()
    MOVEMENT = auto()
    REDUCE = auto()
    OTHER = auto()


@cache
def _kind(op: type[Operation]) -> _Kind:
    if issubclass(op, lazy.MovementOp):
        return _Kind.MOVEMENT
    if issubclass(op, lazy.ReduceOp | lazy.ArgReduceOp):
        return _Kind.REDUCE
    special = (lazy.GatherOp, lazy.RngBitsOp, lazy.ScanOp, lazy.ScatterOp)
    return _Kind.OTHER if issubclass(op, special) else _Kind.POINTWISE


class Memo:
    """Index maps that were worked out already, by the extents of the space they are over.

    Weighing merges asks for the same operations at the same points again and again. Valid as long
    as the operations are not changed.
    """

    def __init__(self) -> None:
        self._spaces = dict[Shape, Space]()
        self._sources = dict[tuple[Shape, Operation, Point], tuple[Source, ...]]()
        self._accesses = dict[
            tuple[Shape, Shape, Point, frozenset[Condition]], tuple[AccessKind, int]
        ]()

    def space(self, shape: Shape) -> Space:
        """The space with these extents."""
        if shape not in self._spaces:
            self._spaces[shape] = Space.of_extents(shape)
        return self._spaces[shape]

    def sources(self, shape: Shape, op: lazy.MovementOp, point: Point) -> tuple[Source, ...]:
        """Where the element of the result at a point comes from."""
        key = (shape, op, point)
        found = self._sources.get(key)
        if found is None:
            found = self._sources[key] = sources(op, point, self.space(shape))
        return found

    def access(
        self, shape: Shape, value: SSAValue, point: Point, conditions: frozenset[Condition]
    ) -> tuple[AccessKind, int]:
        """How a buffer is read from a space, and how many elements of it."""
        key = (shape, lazy.shape_of(value), point, conditions)
        found = self._accesses.get(key)
        if found is None:
            kept = canonical(tuple(conditions), self.space(shape))
            access = Access(value, shape, point, kept or ())
            elements = 0 if kept is None else access.distinct_elements
            found = self._accesses[key] = (access.kind, elements)
        return found


def footprints_of(plan: Plan, memo: Memo | None = None) -> list[Footprint]:
    """The footprint of every group of a plan, in its order."""
    memo = memo or Memo()
    return [footprint_of_group(group, memo) for group in plan.groups]


def footprint_of_group(group: GroupOp, memo: Memo) -> Footprint:
    """The footprint of a group, which stays with it from pass to pass until the group changes."""
    state = _state(group)
    kept = cast(tuple[object, Footprint] | None, getattr(group, _REMEMBERED, None))
    if kept is None or kept[0] != state:
        kept = (state, footprint_of([group], memo))
        setattr(group, _REMEMBERED, kept)
    return kept[1]


_REMEMBERED = "_footprint"


def _state(group: GroupOp) -> tuple[object, ...]:
    """All that a footprint depends on; compared by identity first, so cheap while nothing
    changes."""
    found: list[object] = [*group.operands, *(value.type for value in group.operands)]
    for op in group.block.ops:
        found += (op, *op.operands, *op.properties.values(), *op.attributes.values())
    return tuple(found)


def footprint_of(groups: Sequence[GroupOp], memo: Memo | None = None) -> Footprint:
    """The footprint of one group, or of several in topological order as if they were one."""
    members = set[Operation](groups)
    ops = [op for group in groups for op in group.block.ops]
    reduces = [
        cast(lazy.ReduceOp | lazy.ArgReduceOp, op) for op in ops if _kind(type(op)) is _Kind.REDUCE
    ]
    spaces = {(lazy.shape_of(op.operand), reduced_axes(op)) for op in reduces}
    ordered = any(isinstance(op, lazy.ScanOp | lazy.ScatterOp) for op in ops)
    stored = [
        (group, position)
        for group in groups
        for position, output in enumerate(group.outputs)
        if len(groups) == 1 or any(use.operation not in members for use in output.uses)
    ]
    results = [group.yield_op.arguments[position] for group, position in stored]
    outputs = tuple(group.outputs[position] for group, position in stored)
    if not spaces and not ordered:
        spaces = {(lazy.shape_of(max(results, key=lambda x: prod(lazy.shape_of(x)))), ())}
    if len(spaces) != 1 or ordered:
        return _without_space(groups, outputs)
    ((shape, reduced),) = spaces
    walk = _Walk(members, shape, reduced, memo or Memo())
    for op in reduces:
        walk.visit(op.operand, walk.full, late=False)
    walk.choose_order()
    for value in map(core_of, results):
        if not walk.visit_result(value):
            return _without_space(groups, outputs)
    walk.check_flows()
    sweeps = _sweeps(ops, members, results, walk.points)
    return Footprint.of(shape, reduced, walk.loads, outputs, sweeps, walk.aligned)


def _sweeps(
    ops: Sequence[Operation], members: set[Operation], results: Sequence[SSAValue], points: int
) -> int:
    """Reduces and full-size results that wait for one another, at most."""
    level = dict[SSAValue, int]()
    most = 1
    for op in ops:
        kind = _kind(type(op))
        if not op.results:
            continue
        below = 0
        for value in op.operands:
            below = max(below, _level(level, members, value))
        if kind is _Kind.REDUCE:
            below += 1
            most = max(most, below)
        if below:
            level[op.results[0]] = below
    for value in results:
        if prod(lazy.shape_of(value)) == points:
            most = max(most, _level(level, members, value) + 1)
    return most


def _level(level: dict[SSAValue, int], members: set[Operation], value: SSAValue) -> int:
    if type(value) is BlockArgument:
        while (inner := inside(members, value)) is not None:
            value = inner
    return level.get(value, 0)


def inside(members: set[Operation], value: SSAValue) -> SSAValue | None:
    """What a member's argument stands for, if another member computes it."""
    if type(value) is not BlockArgument:
        return None
    group = value.owner.parent_op()
    assert isinstance(group, GroupOp)
    source = group.inputs[value.index]
    owner = source.owner
    if not isinstance(owner, GroupOp) or owner not in members:
        return None
    return owner.yield_op.arguments[cast(OpResult, source).index]


def reduced_axes(op: Operation) -> Axes:
    """The axes a reduce closes, sorted."""
    if isinstance(op, lazy.ArgReduceOp):
        return (op.axis.value.data,)
    return tuple(sorted(cast(Any, op).axes.get_values()))


def _without_space(groups: Sequence[GroupOp], outputs: tuple[SSAValue, ...]) -> Footprint:
    """Groups with several spaces: every operand is read whole, somehow."""
    members = set[Operation](groups)
    buffers = dict.fromkeys(
        value for group in groups for value in group.inputs if value.owner not in members
    )
    loads = [Load(value, False, "irregular", Where(None), bytes_of(value)) for value in buffers]
    return Footprint.of(None, (), loads, outputs)


@dataclass
class _Walk:
    """Follows values down to the arguments, carrying the point at which each is needed."""

    members: set[Operation]
    shape: Shape
    reduced: Axes
    memo: Memo
    space: Space = field(init=False)
    full: Point = field(init=False)
    order: Expr = ZERO
    aligned: bool = True
    loads: list[Load] = field(default_factory=list[Load])
    flows: list[tuple[SSAValue, Point]] = field(default_factory=list[tuple[SSAValue, Point]])
    seen: set[tuple[SSAValue, Point, bool]] = field(
        default_factory=set[tuple[SSAValue, Point, bool]]
    )

    def __post_init__(self) -> None:
        self.space = self.memo.space(self.shape)
        self.full = tuple(
            index(axis) if extent != 1 else ZERO for axis, extent in enumerate(self.shape)
        )

    @property
    def kept(self) -> tuple[Shape, Point]:
        left = [axis for axis in range(len(self.shape)) if axis not in self.reduced]
        return tuple(self.shape[axis] for axis in left), tuple(self.full[axis] for axis in left)

    @property
    def points(self) -> int:
        return prod(self.shape)

    def choose_order(self) -> None:
        """Full-size results are stored in the order in which the reduces read their largest
        buffers, if that is one and the same."""
        orders = {x.where.position for x in self.loads if x.access == "bijective"}
        (order,) = orders if len(orders) == 1 else (None,)
        self.order = order if order is not None else self.space.linearize(self.full, self.shape)

    def visit_result(self, value: SSAValue) -> bool:
        """A stored value has the points of the full space or of the kept one."""
        shape = lazy.shape_of(value)
        kept_shape, kept = self.kept
        if self.reduced and prod(shape) == prod(kept_shape):
            point = reshape(kept, kept_shape, shape, self.space)
        elif prod(shape) == self.points:
            point = self.space.delinearize(self.order, shape)
        else:
            return False
        self.visit(value, point, late=bool(self.reduced) and prod(shape) != self.points)
        return True

    def check_flows(self) -> None:
        """Values that pass between reduces, results and groups must be needed point by point."""
        kept_shape, kept = self.kept
        rows = self.space.linearize(kept, kept_shape)
        for value, point in self.flows:
            shape = lazy.shape_of(value)
            position = self.space.linearize(point, shape)
            if prod(shape) == prod(kept_shape) and position == rows:
                continue
            if prod(shape) != self.points or position != self.order:
                self.aligned = False

    def visit(self, value: SSAValue, point: Point, late: bool) -> None:
        pending: list[tuple[SSAValue, Point, frozenset[Condition], bool]]
        pending = [(value, point, frozenset(), False)]
        while pending:
            value, point, conditions, irregular = pending.pop()
            if (value, point, irregular) in self.seen:
                continue
            self.seen.add((value, point, irregular))
            inner = inside(self.members, value)
            if inner is not None:
                self.flows.append((value, point))
                self.aligned &= not irregular
                pending.append((inner, point, conditions, irregular))
                continue
            if type(value) is BlockArgument:
                self._load(value, point, conditions, irregular, late)
                continue
            op = cast(Operation, value.owner)
            kind = _kind(type(op))
            if kind is _Kind.POINTWISE:
                pending.extend((x, point, conditions, irregular) for x in op.operands)
            elif kind is _Kind.MOVEMENT:
                found = self.memo.sources(self.shape, cast(lazy.MovementOp, op), point)
                pending.extend(
                    (x.value, x.point, conditions.union(x.conditions), irregular) for x in found
                )
            elif kind is _Kind.REDUCE:
                self.flows.append((value, point))
            elif isinstance(op, lazy.GatherOp):
                pending.append((op.source, point, conditions, True))
                pending.append((op.indices, point, conditions, irregular))
            elif isinstance(op, lazy.RngBitsOp):
                pending.append((op.key, (ZERO,), conditions, True))

    def _load(
        self,
        argument: BlockArgument,
        point: Point,
        conditions: frozenset[Condition],
        irregular: bool,
        late: bool,
    ) -> None:
        group = argument.owner.parent_op()
        assert isinstance(group, GroupOp)
        buffer = group.inputs[argument.index]
        extents = lazy.shape_of(buffer)
        where = Where(self.space.linearize(point, extents), conditions)
        if irregular:
            kind, touched = AccessKind.IRREGULAR, prod(extents)
        else:
            kind, touched = self.memo.access(self._space_of(late), buffer, point, conditions)
        element = itemsize(lazy.element_type_of(buffer))
        self.loads.append(Load(buffer, late, kind.value, where, touched * element))

    def _space_of(self, late: bool) -> Shape:
        """The extents of the points: a late value has one for all of the reduced axes."""
        if not late:
            return self.shape
        return tuple(1 if axis in self.reduced else e for axis, e in enumerate(self.shape))
