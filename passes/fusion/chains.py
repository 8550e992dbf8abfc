"""Reduces that consume the results of others, as one kernel: found pair by pair, by value."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp, KeepOp
from plait.dialects.lazy_base import Shape
from plait.passes import remarks
from plait.passes.fusion.chain_rules import LARGE, Chain, ChainRules
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.footprints import inside
from plait.passes.fusion.legality import Verdict, acyclic
from plait.passes.fusion.merged import Views
from plait.passes.fusion.plan import Plan


@dataclass
class ChainFinder:
    """Merges groups of one function with groups that consume what they write."""

    plan: Plan
    rules: ChainRules
    members: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    kept: dict[int, tuple[SSAValue, ...]] = field(default_factory=dict[int, tuple[SSAValue, ...]])
    """What a cluster keeps on chip, by its node."""
    version: dict[int, int] = field(default_factory=dict[int, int])
    offered: dict[tuple[int, int], Chain] = field(default_factory=dict[tuple[int, int], Chain])
    """The merges in the queue, by the groups that were offered."""
    refused: dict[tuple[int, int], Verdict] = field(default_factory=dict[tuple[int, int], Verdict])

    @staticmethod
    def of(function: FuncOp, rules: ChainRules) -> ChainFinder:
        plan = Plan.read(function)
        finder = ChainFinder(plan, rules)
        for number, group in enumerate(plan.groups):
            finder.members[number] = [number]
            finder.version[number] = 0
            finder.kept[number] = tuple(_held(group, rules.views))
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
        """Whether two clusters can be one."""
        if self.plan.graph.before(b, a):
            a, b = b, a
        verdict = acyclic(self.plan.graph, a, b)
        if not verdict:
            return verdict
        first, second = (self._groups(self.members[node]) for node in (a, b))
        return self.rules.pair(first, second, self.kept[a] + self.kept[b])

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
                    mark_kept(group, members, kept, self.rules.views)
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


def mark_kept(
    group: GroupOp, members: set[Operation], kept: Sequence[SSAValue], views: Views
) -> None:
    """Makes a group read what the kernel keeps through `fuse.keep`."""
    view_of = {views.buffer[token]: token for token in kept if token in views.buffer}
    for argument, buffer in zip(group.block.args, group.inputs, strict=True):
        if inside(members, argument) is None and buffer in view_of:
            _keep(group, argument, lazy.shape_of(view_of[buffer]))
    for value in kept:
        if isinstance(value.owner, Operation) and value.owner.parent is group.block:
            keep = KeepOp(value)
            value.replace_all_uses_with(keep.result)
            keep.operands[0] = value
            group.block.insert_op_after(keep, value.owner)


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
