"""The accesses of a kernel: every buffer element it reads, from every space it iterates over.

A kernel evaluates values at the points of spaces: what it stores at the points of the result, what
a reduce combines at the points of its operand (kept and reduced axes), likewise scans and scatters.
Each such evaluation is a :class:`Sweep`. Following operands from there through movement operations
leads to buffers, and to results of other sweeps of the same kernel, on which it then depends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any, cast

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.passes.analysis.access import Access, Free, canonical
from plait.passes.analysis.affine import ZERO, Expr, Space, index
from plait.passes.analysis.image import Extents
from plait.passes.analysis.index_maps import Condition, Point, sources
from plait.passes.analysis.updates import pieces_of

MAX_STATES = 1 << 14
"""Elements of values that are followed in one sweep; beyond that, buffers count as read whole."""

Closing = lazy.ReduceOp | lazy.ArgReduceOp | lazy.ScanOp | lazy.ScatterOp
"""Operations whose operands are evaluated in a space of their own."""


@dataclass
class Sweep:
    """One evaluation of a value at all points of its shape."""

    value: SSAValue
    closing: Closing | None
    """What combines the elements; None where they are stored."""
    reduced: tuple[int, ...]
    """The axes of the space that are combined."""
    loads: list[Access] = field(default_factory=list[Access])
    """Of buffers; those from data last."""
    inner: list[Access] = field(default_factory=list[Access])
    """Of results of other sweeps."""
    level: int = 0
    """How many sweeps must be finished before, one after another."""

    @property
    def space(self) -> Extents:
        return lazy.shape_of(self.value)


def sweeps_of_group(group: GroupOp) -> list[Sweep]:
    """The sweeps of a group; loads are of the group's operands."""
    inputs = group.inputs
    sweeps = sweeps_of(group.yield_op.arguments, lambda value: isinstance(value, BlockArgument))
    for sweep in sweeps:
        sweep.loads = [
            Access(inputs[a.value.index], a.space, a.point, a.conditions, a.free)
            for a in sweep.loads
            if isinstance(a.value, BlockArgument)
        ]
    for output, number in group.updates.items():
        _leave_out_kept(group, sweeps, output, number)
    return sweeps


def _leave_out_kept(group: GroupOp, sweeps: list[Sweep], output: int, number: int) -> None:
    """Elements that a result has in common with the input it is written over are not read."""
    value = group.yield_op.arguments[output]
    pieces = pieces_of(value, group.block.args[number]) or ()
    kept = {(piece.point, piece.conditions) for piece in pieces if piece.kept}
    for sweep in sweeps:
        if sweep.value is value and sweep.closing is None:
            sweep.loads = [
                load
                for load in sweep.loads
                if load.value is not group.inputs[number]
                or (load.point, tuple(load.conditions)) not in kept
            ]


def sweeps_of_operations(
    operations: Collection[Operation], outputs: Iterable[SSAValue]
) -> list[Sweep]:
    """The sweeps of a kernel that would consist of these operations and store ``outputs``; whatever
    else the operations use is a buffer."""
    inside = operations if isinstance(operations, set | frozenset) else set(operations)
    return sweeps_of(outputs, lambda value: value.owner not in inside)


def sweeps_of(outputs: Iterable[SSAValue], is_buffer: Callable[[SSAValue], bool]) -> list[Sweep]:
    """The sweeps that compute ``outputs`` from buffers, in an order in which they can run."""
    sweeps: list[Sweep] = []
    made: dict[Operation, list[int]] = {}
    pending = [Sweep(value, None, ()) for value in dict.fromkeys(outputs)]
    while pending:
        sweep = pending.pop()
        number = len(sweeps)
        sweeps.append(sweep)
        if sweep.closing is not None:
            made.setdefault(sweep.closing, []).append(number)
        _Walk(sweep, is_buffer).run()
        for access in sweep.inner:
            op = access.value.owner
            if isinstance(op, Closing) and op not in made:
                made[op] = []
                pending.extend(_operand_sweeps(op))
    return _ordered(sweeps, made)


def _operand_sweeps(op: Closing) -> list[Sweep]:
    match op:
        case lazy.ReduceOp():
            return [Sweep(op.operand, op, tuple(sorted(cast(Any, op.axes).get_values())))]
        case lazy.ArgReduceOp() | lazy.ScanOp():
            return [Sweep(op.operand, op, (op.axis.value.data,))]
        case lazy.ScatterOp():
            axis = (op.axis.value.data,)
            operands = (op.destination, op.indices, op.updates)
            return [Sweep(value, op, axis) for value in dict.fromkeys(operands)]


def _ordered(sweeps: Sequence[Sweep], made: dict[Operation, list[int]]) -> list[Sweep]:
    needs = {
        number: {k for a in sweep.inner for k in made[cast(Operation, a.value.owner)]}
        for number, sweep in enumerate(sweeps)
    }
    order = list(TopologicalSorter(needs).static_order())
    for number in order:
        before = [sweeps[k].level for k in needs[number]]
        sweeps[number].level = max(before, default=-1) + 1
    return [sweeps[number] for number in order]


State = tuple[SSAValue, Point, tuple[Condition, ...]]


class _Walk:
    """Follows one value down to buffers, carrying the point at which each value is needed."""

    def __init__(self, sweep: Sweep, is_buffer: Callable[[SSAValue], bool]):
        self.sweep = sweep
        self.is_buffer = is_buffer
        self.extents = sweep.space
        self.space = Space.of_extents(self.extents)
        self.free: list[Free] = []
        self.gathered: dict[State, int] = {}
        self.seen: set[State] = set()
        self.pending: list[State] = []

    def run(self) -> None:
        if 0 in self.extents:
            return
        start = tuple(
            index(axis) if extent != 1 else ZERO for axis, extent in enumerate(self.extents)
        )
        self.follow(self.sweep.value, start, ())
        while self.pending:
            state = self.pending.pop()
            if len(self.seen) > MAX_STATES:
                self.give_up(state[0])
            else:
                self.visit(*state)

    def follow(self, value: SSAValue, point: Point, conditions: tuple[Condition, ...]) -> None:
        state = (value, point, conditions)
        if state not in self.seen:
            self.seen.add(state)
            self.pending.append(state)

    def visit(self, value: SSAValue, point: Point, conditions: tuple[Condition, ...]) -> None:
        if self.is_buffer(value):
            self.sweep.loads.append(self.access(value, point, conditions))
            return
        op = value.owner
        match op:
            case lazy.MovementOp():
                for source in sources(op, point, self.space):
                    held = conditions
                    if source.conditions:
                        both = canonical((*conditions, *source.conditions), self.space)
                        if both is None:
                            continue
                        held = both
                    self.follow(source.value, source.point, held)
            case lazy.GatherOp():
                self.follow(op.indices, point, conditions)
                axis = op.axis.value.data
                at = index(self.gather((op.indices, point, conditions), op))
                self.follow(op.source, (*point[:axis], at, *point[axis + 1 :]), conditions)
            case lazy.RngBitsOp():
                for word in (0, 1):
                    self.follow(op.key, (Expr(word),), conditions)
            case lazy.ReduceOp() | lazy.ArgReduceOp() | lazy.ScanOp() | lazy.ScatterOp():
                self.sweep.inner.append(self.access(value, point, conditions))
            case Operation():
                for operand in dict.fromkeys(op.operands):
                    self.follow(operand, point, conditions)
            case _:
                raise AssertionError(f"{value.type} from outside of a kernel is not a buffer")

    def access(self, value: SSAValue, point: Point, conditions: tuple[Condition, ...]) -> Access:
        """The access, with the indices from data that it uses numbered after the space's."""
        rank = len(self.extents)
        exprs = (*point, *(condition.expr for condition in conditions))
        used = sorted(k for k in set[int]().union(*(e.indices() for e in exprs)) if k >= rank)
        if not used:
            return Access(value, self.extents, point, conditions)
        number = {k: index(rank + place) for place, k in enumerate(used)}
        free = tuple(self.free[k - rank] for k in used)
        space = Space.of_extents((*self.extents, *(f.extent for f in free)))
        moved = tuple(space.rewrite(expr, number) for expr in point)
        held = tuple(Condition(space.rewrite(c.expr, number), c.equality) for c in conditions)
        return Access(value, self.extents, moved, held, free)

    def gather(self, state: State, op: lazy.GatherOp) -> int:
        """The index that stands for what a gather reads: one for equal reads."""
        if state not in self.gathered:
            limit = self.access(*state).distinct_elements
            extent = lazy.shape_of(op.source)[op.axis.value.data]
            self.gathered[state] = self.new_free(Free(extent, min(limit, extent), state))
        return self.gathered[state]

    def new_free(self, free: Free) -> int:
        self.free.append(free)
        return self.space.new_index((0, free.extent - 1))

    def give_up(self, value: SSAValue) -> None:
        """Counts whatever a value is made of as read whole."""
        pending, known = [value], {value}
        while pending:
            value = pending.pop()
            op = value.owner
            if self.is_buffer(value) or isinstance(op, Block | Closing):
                self.whole(value)
            else:
                new = [operand for operand in op.operands if operand not in known]
                known.update(new)
                pending.extend(new)

    def whole(self, value: SSAValue) -> None:
        shape = lazy.shape_of(value)
        if 0 in shape:
            return
        point = tuple(index(self.new_free(Free(extent, extent, object()))) for extent in shape)
        access = self.access(value, point, ())
        (self.sweep.loads if self.is_buffer(value) else self.sweep.inner).append(access)
