"""Reduces that consume the results of others, as one kernel: found pair by pair, by value."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp, KeepOp
from plait.dtypes import itemsize
from plait.passes import remarks
from plait.passes.analysis.rows import (
    Follower,
    Places,
    Rows,
    Steps,
    repeats,
    rows_of,
    rows_that_read,
)
from plait.passes.analysis.targets import Target
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.engine import MAX_OPERATIONS
from plait.passes.fusion.footprints import inside
from plait.passes.fusion.kernels import MIN_ROWS, ON_CHIP, SMALL_SPACE
from plait.passes.fusion.legality import Verdict, acyclic, within_launch
from plait.passes.fusion.plan import Plan
from plait.passes.fusion.products import NESTED_EFFICIENCY, ROW_EFFICIENCY, pays

KEPT = ON_CHIP - (8 << 10)
"""Bytes of a row that may be kept: shared memory less what reductions need of it."""
SHARED_OPERANDS = 1 << 20
"""Bytes that all rows read again, at most: they have to stay in a second-level cache."""


@dataclass(frozen=True)
class Chain:
    """A merge that would be made."""

    kept: tuple[SSAValue, ...]
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
            finder.kept[number] = tuple(
                op.operand for op in group.body_ops() if isinstance(op, KeepOp)
            )
        return finder

    def run(self) -> None:
        """Makes the merges, the most valuable first."""
        queue = list[tuple[int, int, int, int]]()
        for a, b in dict.fromkeys(self._edges()):
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
        self._report()
        self._rewrite()

    def _edges(self) -> list[tuple[int, int]]:
        number = {group: position for position, group in enumerate(self.plan.groups)}
        return [
            (number[value.owner], reader)
            for value, readers in self.plan.readers().items()
            if isinstance(value.owner, GroupOp)
            for reader in readers
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
        """Whether the second cluster, which reads what the first writes, can be one with it."""
        verdict = acyclic(self.plan.graph, a, b)
        if not verdict:
            return verdict
        groups = self._groups(sorted([*self.members[a], *self.members[b]]))
        merged = Merged.of(groups, self.steps)
        verdict = merged.fits()
        if not verdict:
            return verdict
        producers = set[Operation](self._groups(self.members[a]))
        flows = merged.flows(producers)
        saved = merged.saved()
        held = (*self.kept[a], *self.kept[b])
        if not held and merged.repeats((), flows, None) == 1:
            verdict = _parallel(max(map(_points, merged.results)), merged.work)
            verdict = verdict and pays(groups, saved, NESTED_EFFICIENCY, self.target)
            return Chain((), saved) if verdict else verdict
        return self._kept_rows(merged, tuple(dict.fromkeys((*held, *flows))), saved)

    def _kept_rows(self, merged: Merged, kept: tuple[SSAValue, ...], saved: int) -> Chain | Verdict:
        rows = rows_of(kept, merged.places, merged.reduces())
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
        shared = merged.shared_bytes(rows)
        if shared > SHARED_OPERANDS:
            message = "what every row reads again does not stay in cache"
            facts = {"bytes": shared, "limit": SHARED_OPERANDS}
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
                    _mark(group, members, set(kept))
        self.plan.rewrite()


def _mark(group: GroupOp, members: set[Operation], kept: set[SSAValue]) -> None:
    for argument in group.block.args:
        if inside(members, argument) in kept:
            uses = list(argument.uses)
            keep = KeepOp(argument)
            first = group.block.first_op
            assert first is not None
            group.block.insert_op_before(keep, first)
            for use in uses:
                use.operation.operands[use.index] = keep.result


@dataclass
class Merged:
    """Groups as the one kernel they would be."""

    groups: list[GroupOp]
    members: set[Operation]
    results: list[SSAValue]
    """What the kernel stores, as values inside of it."""
    outputs: list[SSAValue]
    steps: Steps

    @staticmethod
    def of(groups: list[GroupOp], steps: Steps | None = None) -> Merged:
        members = set[Operation](groups)
        stored = [
            (group.yield_op.arguments[position], output)
            for group in groups
            for position, output in enumerate(group.outputs)
            if any(use.operation not in members for use in output.uses)
        ]
        results = [value for value, _ in stored]
        outputs: list[SSAValue] = [output for _, output in stored]
        return Merged(groups, members, results, outputs, steps or Steps())

    def through(self, value: SSAValue) -> SSAValue | None:
        return inside(self.members, value)

    @cached_property
    def follower(self) -> Follower:
        return Follower(self.through, self.steps)

    @cached_property
    def places(self) -> dict[SSAValue, Places | None]:
        """Where each result needs the values inside."""
        return {result: self.follower.places(result) for result in self.results}

    def inputs(self) -> list[SSAValue]:
        """The buffers that the kernel reads."""
        values = (value for group in self.groups for value in group.inputs)
        return [value for value in dict.fromkeys(values) if value.owner not in self.members]

    def reduces(self) -> list[SSAValue]:
        """The results of reduces."""
        return [
            op.results[0]
            for group in self.groups
            for op in group.body_ops()
            if isinstance(op, lazy.ReduceOp | lazy.ArgReduceOp)
        ]

    @property
    def work(self) -> int:
        """Points of the largest space that it walks."""
        sizes = [1]
        for group in self.groups:
            sizes += [_points(op.operands[0]) for op in group.body_ops() if op.operands]
        return max(sizes)

    def fits(self) -> Verdict:
        count = sum(len(group.body_ops()) for group in self.groups)
        if count > MAX_OPERATIONS:
            message = "the merged kernel would be too long"
            facts = {"operations": count, "limit": MAX_OPERATIONS}
            return Verdict("fuse.too-many-operations", message, dict(facts))
        verdict = within_launch(len(self.inputs()), len(self.outputs))
        if not verdict:
            return verdict
        ordered = lazy.ScanOp | lazy.ScatterOp
        if any(isinstance(op, ordered) for group in self.groups for op in group.body_ops()):
            return Verdict("fuse.runs-in-order", "one of the groups runs in order along an axis")
        return Verdict()

    def flows(self, producers: set[Operation]) -> list[SSAValue]:
        """What passes from the producers to the other groups, as values inside."""
        found = list[SSAValue]()
        for group in self.groups:
            if group in producers:
                continue
            for argument in group.block.args:
                owner = group.inputs[argument.index].owner
                inner = self.through(argument)
                if inner is not None and owner in producers:
                    found.append(inner)
        return list(dict.fromkeys(found))

    def saved(self) -> int:
        """Bytes of what is no longer read and written between the groups."""
        total, read = 0, set[SSAValue]()
        for group in self.groups:
            for value in dict.fromkeys(group.inputs):
                if value.owner in self.members or value in read:
                    total += bytes_of(value)
                read.add(value)
        stored = set(self.outputs)
        for group in self.groups:
            total += sum(bytes_of(output) for output in group.outputs if output not in stored)
        return total

    def repeats(
        self, kept: Sequence[SSAValue], watched: Sequence[SSAValue], rows: Rows | None
    ) -> int:
        roots = dict[SSAValue, list[int]]()
        for value in self.results:
            roots[value] = [] if rows is None else sorted(rows.of_result[value])
        for value in kept:
            assert rows is not None
            roots[value] = sorted(rows.of_value[value])
        return repeats(roots, kept, watched, self.follower)

    def shared_bytes(self, rows: Rows) -> int:
        """Bytes that several rows read: of every buffer, what the rows share that read it alike."""
        own = dict[SSAValue, set[int]]()
        for result in self.results:
            places = self.places[result]
            assert places is not None
            for argument, found in rows_that_read(places, rows.of_result[result]).items():
                if self.through(argument) is not None:
                    continue
                group = argument.owner.parent_op()
                assert isinstance(group, GroupOp)
                buffer = group.inputs[argument.index]
                own[buffer] = own.get(buffer, found) & found
        every = set(range(len(rows.extents)))
        return sum(
            bytes_of(buffer) // prod(rows.extents[row] for row in found)
            for buffer, found in own.items()
            if found != every
        )


def _points(value: SSAValue) -> int:
    return prod(lazy.shape_of(value))


def _parallel(rows: int, work: int) -> Verdict:
    if rows >= MIN_ROWS or work <= SMALL_SPACE:
        return Verdict()
    message = "too few rows would run in parallel"
    return Verdict("fuse.too-few-rows", message, {"rows": rows, "least": MIN_ROWS})


def _row_bytes(rows: Rows, value: SSAValue) -> int:
    shape = lazy.shape_of(value)
    elements = prod(shape[axis] for axis in rows.kept(value))
    return elements * max(itemsize(lazy.element_type_of(value)), 4)
