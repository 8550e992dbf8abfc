"""Reduces that consume the results of others, as one kernel: found pair by pair, by value."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp, KeepOp
from plait.dialects.lazy_base import Shape
from plait.dtypes import itemsize
from plait.passes import remarks
from plait.passes.analysis.rows import Rows, Steps, rows_of
from plait.passes.analysis.targets import Target
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.footprints import inside
from plait.passes.fusion.kernels import MIN_ROWS, ON_CHIP, SMALL_SPACE
from plait.passes.fusion.legality import Verdict, acyclic
from plait.passes.fusion.merged import Merged, Views, points_of
from plait.passes.fusion.plan import Plan
from plait.passes.fusion.products import NESTED_EFFICIENCY, ROW_EFFICIENCY, pays

KEPT = ON_CHIP - (8 << 10)
"""Bytes of a row that may be kept: shared memory less what reductions need of it."""
LARGE = 16 << 10
"""Bytes of a buffer from which on it is worth reading once for two kernels."""
SHARED_OPERANDS = 1 << 20
"""Bytes that all rows read again, at most: they have to stay in a second-level cache."""


@dataclass(frozen=True)
class Chain:
    """A merge that would be made."""

    kept: tuple[SSAValue, ...]
    """What a row keeps on chip: values inside of the groups, and buffers."""
    saved: int


@dataclass
class ChainFinder:
    """Merges groups of one function with groups that consume what they write."""

    plan: Plan
    target: Target
    members: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    kept: dict[int, tuple[SSAValue, ...]] = field(default_factory=dict[int, tuple[SSAValue, ...]])
    """What a cluster keeps on chip, by its node."""
    steps: Steps = field(default_factory=Steps)
    views: Views = field(default_factory=Views)
    version: dict[int, int] = field(default_factory=dict[int, int])
    offered: dict[tuple[int, int], Chain] = field(default_factory=dict[tuple[int, int], Chain])
    """The merges in the queue, by the groups that were offered."""
    refused: dict[tuple[int, int], Verdict] = field(default_factory=dict[tuple[int, int], Verdict])

    @staticmethod
    def of(function: FuncOp, target: Target) -> ChainFinder:
        plan = Plan.read(function)
        finder = ChainFinder(plan, target)
        for number, group in enumerate(plan.groups):
            finder.members[number] = [number]
            finder.version[number] = 0
            finder.kept[number] = tuple(_held(group, finder.views))
        return finder

    def run(self) -> None:
        """Makes the merges: first those with a consumer, then those with another reader, of each
        kind the most valuable first."""
        self._settle(self._edges())
        self._settle(self._siblings())
        self._report()
        self._rewrite()

    def _settle(self, pairs: Iterable[tuple[int, int]]) -> None:
        queue = list[tuple[int, int, int, int]]()
        for a, b in dict.fromkeys(pairs):
            self._offer(queue, a, b)
        while queue:
            weight, a, b, version = heapq.heappop(queue)
            first, second = self.plan.graph.find(a), self.plan.graph.find(b)
            if first == second:
                continue
            if version != self.version[first] + self.version[second]:
                self._offer(queue, a, b)
                continue
            verdict = acyclic(self.plan.graph, first, second)
            if verdict:
                self._merge(first, second, self.offered[a, b], -weight)
            else:
                self.refused[a, b] = verdict

    def _edges(self) -> list[tuple[int, int]]:
        number = {group: position for position, group in enumerate(self.plan.groups)}
        return [
            (number[value.owner], reader)
            for value, readers in self.plan.readers().items()
            if isinstance(value.owner, GroupOp)
            for reader in readers
        ]

    def _siblings(self) -> list[tuple[int, int]]:
        """Groups that read one large buffer, each with the next one that does."""
        largest = [max(map(bytes_of, group.inputs), default=0) for group in self.plan.groups]
        return [
            (a, b)
            for value, readers in self.plan.readers().items()
            for a, b in pairwise(readers)
            if 2 * bytes_of(value) > max(largest[a], largest[b]) and bytes_of(value) >= LARGE
        ]

    def _offer(self, queue: list[tuple[int, int, int, int]], a: int, b: int) -> None:
        first, second = self.plan.graph.find(a), self.plan.graph.find(b)
        if first == second:
            return
        found = self._judge(first, second)
        if isinstance(found, Chain):
            self.refused.pop((a, b), None)
            self.offered[a, b] = found
            version = self.version[first] + self.version[second]
            heapq.heappush(queue, (-found.saved, a, b, version))
        else:
            self.refused[a, b] = found

    def _groups(self, nodes: Sequence[int]) -> list[GroupOp]:
        return [self.plan.groups[node] for node in nodes]

    def _judge(self, a: int, b: int) -> Chain | Verdict:
        """Whether two clusters, of which one reads what the other writes or both read a buffer, can
        be one."""
        if self.plan.graph.before(b, a):
            a, b = b, a
        verdict = acyclic(self.plan.graph, a, b)
        if not verdict:
            return verdict
        groups = self._groups(sorted([*self.members[a], *self.members[b]]))
        merged = Merged.of(groups, self.steps, self.views)
        verdict = merged.fits()
        if not verdict:
            return verdict
        producers = set[Operation](self._groups(self.members[a]))
        flows = merged.flows(producers)
        saved = merged.saved()
        held = (*self.kept[a], *self.kept[b])
        if not flows:
            return self._shared_rows(merged, held, producers, saved)
        if not held and merged.repeats((), flows, None) == 1:
            verdict = _parallel(max(map(points_of, merged.results)), merged.work)
            verdict = verdict and pays(groups, saved, NESTED_EFFICIENCY, self.target)
            return Chain((), saved) if verdict else verdict
        return self._kept_rows(merged, tuple(dict.fromkeys((*held, *flows))), saved)

    def _shared_rows(
        self, merged: Merged, held: Sequence[SSAValue], first: set[Operation], saved: int
    ) -> Chain | Verdict:
        """Whether both read the rows of a buffer: then each row is read once."""
        verdict = Verdict("fuse.no-rows", "the groups have no rows in common")
        buffer = max(merged.shared(first), key=bytes_of, default=None)
        for shape in merged.shapes_of(buffer) if buffer is not None else ():
            assert buffer is not None
            view = self.views.of(buffer, shape)
            found = self._kept_rows(merged, tuple(dict.fromkeys((*held, view))), saved)
            if isinstance(found, Chain):
                return found if view in found.kept else verdict
            verdict = found if found.reason != verdict.reason else verdict
        return verdict

    def _kept_rows(self, merged: Merged, kept: Sequence[SSAValue], saved: int) -> Chain | Verdict:
        links = (*merged.reduces(), *(view for view in kept if view in self.views.buffer))
        rows = rows_of(kept, merged.places_of(kept), links)
        if rows is None:
            return Verdict("fuse.no-rows", "the groups have no rows in common")
        needed = tuple(value for value in kept if rows.kept(value))
        row = sum(_row_bytes(rows, value) for value in needed)
        if row > KEPT:
            message = "a row of what passes between the groups does not stay on chip"
            return Verdict("fuse.row-too-long", message, {"bytes": row, "limit": KEPT})
        again = merged.repeats(needed, (), rows)
        if again > 1:
            message = "a reduce would be computed again and again"
            return Verdict("fuse.reduce-repeated", message, {"times": again})
        again = merged.shared_bytes(rows)
        if again > SHARED_OPERANDS:
            message = "what every row reads again does not stay in cache"
            facts = {"bytes": again, "limit": SHARED_OPERANDS}
            return Verdict("fuse.operand-too-large", message, dict(facts))
        verdict = _parallel(rows.count, merged.work)
        verdict = verdict and pays(merged.groups, saved, ROW_EFFICIENCY, self.target)
        return Chain(needed, saved) if verdict else verdict

    def _merge(self, a: int, b: int, chain: Chain, saved: int) -> None:
        graph = self.plan.graph
        names = (graph.names[a], graph.names[b])
        together = sorted([*self.members.pop(a), *self.members.pop(b)])
        version = self.version[a] + self.version[b] + 1
        node = graph.merge(a, b)
        self.members[node] = together
        self.version[node] = version
        self.kept[node] = chain.kept
        remarks.passed(
            "fuse.chain-merged",
            f"made '{names[0]}' and '{names[1]}' one kernel",
            groups=names,
            kept=len(chain.kept),
            saved=saved,
        )

    def _report(self) -> None:
        graph = self.plan.graph
        for (a, b), verdict in self.refused.items():
            if graph.find(a) != graph.find(b):
                remarks.missed(
                    verdict.reason,
                    f"'{graph.names[a]}' and '{graph.names[b]}' stay two kernels: "
                    f"{verdict.message}",
                    groups=(graph.names[a], graph.names[b]),
                    **verdict.facts,
                )

    def _rewrite(self) -> None:
        """Marks what is kept where it is read, then makes the merges."""
        for node, kept in self.kept.items():
            if node in self.members and len(self.members[node]) > 1:
                groups = self._groups(self.members[node])
                members = set[Operation](groups)
                for group in groups:
                    _mark(group, members, kept, self.views)
        self.plan.rewrite()


def _held(group: GroupOp, views: Views) -> Iterator[SSAValue]:
    """What a group keeps already: views of buffers, and values inside of it."""
    for op in group.body_ops():
        if isinstance(op, KeepOp):
            value = op.operand
            base = value.owner.operand if isinstance(value.owner, lazy.ReshapeOp) else value
            if isinstance(base, BlockArgument):
                yield views.of(group.inputs[base.index], lazy.shape_of(value))
            else:
                yield value


def _mark(group: GroupOp, members: set[Operation], kept: Sequence[SSAValue], views: Views) -> None:
    """Makes a group read what the kernel keeps through `fuse.keep`."""
    view_of = {views.buffer[token]: token for token in kept if token in views.buffer}
    for argument, buffer in zip(group.block.args, group.inputs, strict=True):
        if inside(members, argument) in kept:
            _keep(group, argument, lazy.shape_of(argument))
        elif buffer in view_of:
            _keep(group, argument, lazy.shape_of(view_of[buffer]))


def _keep(group: GroupOp, argument: BlockArgument, shape: Shape) -> None:
    """Puts a `fuse.keep` of an argument, looked at in a shape, before all that reads it."""
    uses, own = list(argument.uses), lazy.shape_of(argument)
    made: list[Operation] = []

    def seen_as(value: SSAValue, wanted: Shape) -> SSAValue:
        if lazy.shape_of(value) == wanted:
            return value
        made.append(lazy.ReshapeOp(value, wanted))
        return made[-1].results[0]

    keep = KeepOp(seen_as(argument, shape))
    made.append(keep)
    whole = seen_as(keep.result, own)
    first = group.block.first_op
    assert first is not None
    group.block.insert_ops_before(made, first)
    for use in uses:
        use.operation.operands[use.index] = whole


def _parallel(rows: int, work: int) -> Verdict:
    if rows >= MIN_ROWS or work <= SMALL_SPACE:
        return Verdict()
    message = "too few rows would run in parallel"
    return Verdict("fuse.too-few-rows", message, {"rows": rows, "least": MIN_ROWS})


def _row_bytes(rows: Rows, value: SSAValue) -> int:
    shape = lazy.shape_of(value)
    elements = prod(shape[axis] for axis in rows.kept(value))
    return elements * max(itemsize(lazy.element_type_of(value)), 4)
