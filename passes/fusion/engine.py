"""Merging groups by value: the best candidate of the whole plan first, until none is left.

A pass says which predicates must hold for the groups as one kernel, and when a merge is worth it.
The engine finds the candidates (groups that read one buffer, or one of which reads what the other
writes), weighs each as the kernel it would be, and keeps the graph free of cycles.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from xdsl.dialects.builtin import ModuleOp

from plait.dialects.fuse import GroupOp
from plait.passes import remarks
from plait.passes.fusion.cost import bytes_moved
from plait.passes.fusion.footprint import Footprint
from plait.passes.fusion.footprints import Memo, footprint_of, footprints_of
from plait.passes.fusion.legality import YES, Verdict, acyclic
from plait.passes.fusion.plan import Plan, functions_with_groups

MAX_OPERATIONS = 400
"""Operations in one kernel at most: beyond that, compilers and registers give out."""


@dataclass(frozen=True)
class Merge:
    """Two kernels and the one they would be."""

    a: Footprint
    b: Footprint
    whole: Footprint
    saved: int
    """Bytes the plan would move less."""


MergeRule = Callable[[Merge], Verdict]


PairRule = Callable[[Footprint, Footprint], Verdict]


def merge_groups_by_value(
    module: ModuleOp, rule: tuple[MergeRule, ...], done: str, pairs: tuple[PairRule, ...] = ()
) -> None:
    """Makes the merges a rule allows in every function, the most valuable first.

    ``done`` is the id of the remark for a merge. ``pairs`` are asked first, since they need not
    see the merged kernel; they get the two groups in topological order.
    """
    for function in functions_with_groups(module):
        plan = Plan.read(function)
        memo = Memo()
        _Engine(plan, footprints_of(plan, memo), rule, done, pairs, memo).run()
        plan.rewrite()


@dataclass
class _Engine:
    plan: Plan
    footprints: list[Footprint]
    rule: tuple[MergeRule, ...]
    done: str
    pairs: tuple[PairRule, ...]
    memo: Memo
    members: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    weighed: set[tuple[int, int, int]] = field(default_factory=set[tuple[int, int, int]])
    version: dict[int, int] = field(default_factory=dict[int, int])
    offered: dict[tuple[int, int], Footprint] = field(
        default_factory=dict[tuple[int, int], Footprint]
    )
    """What the merges in the queue would be, by the groups that were offered."""
    refused: dict[tuple[int, int], Verdict] = field(default_factory=dict[tuple[int, int], Verdict])

    def run(self) -> None:
        graph = self.plan.graph
        self.members = {number: [number] for number in range(len(self.plan.groups))}
        self.version = dict.fromkeys(self.members, 0)
        queue = list[tuple[int, int, int, int]]()
        for a, b in dict.fromkeys(_candidates(self.plan)):
            self._offer(queue, a, b)
        while queue:
            weight, a, b, version = heapq.heappop(queue)
            first, second = graph.find(a), graph.find(b)
            if first == second:
                continue
            if version != self._versions(first, second):
                self._offer(queue, a, b)
                continue
            verdict = acyclic(graph, first, second)
            if verdict:
                self._merge(first, second, self.offered[a, b], -weight)
            else:
                self.refused[self._pair(a, b)] = verdict
        self._report()

    def _versions(self, a: int, b: int) -> int:
        return self.version[a] + self.version[b]

    def _pair(self, a: int, b: int) -> tuple[int, int]:
        return (a, b) if a < b else (b, a)

    def _offer(self, queue: list[tuple[int, int, int, int]], a: int, b: int) -> None:
        """Puts a candidate in the queue if the rule allows it as things stand."""
        first, second = self.plan.graph.find(a), self.plan.graph.find(b)
        key = (*self._pair(first, second), self._versions(first, second))
        if first == second or key in self.weighed:
            return
        self.weighed.add(key)
        verdict = acyclic(self.plan.graph, first, second)
        merge = self._weigh(first, second) if verdict else verdict
        verdict = merge if isinstance(merge, Verdict) else self._check(merge)
        if isinstance(merge, Verdict) or not verdict:
            self.refused[self._pair(a, b)] = verdict
            return
        self.refused.pop(self._pair(a, b), None)
        self.offered[a, b] = merge.whole
        entry = (-merge.saved, a, b, self._versions(first, second))
        heapq.heappush(queue, entry)

    def _groups(self, nodes: list[int]) -> list[GroupOp]:
        return [self.plan.groups[node] for node in nodes]

    def _weigh(self, a: int, b: int) -> Merge | Verdict:
        if not _may_share_space(self.footprints[a], self.footprints[b]):
            return Verdict("fuse.space-differs", "the iteration spaces or the reduced axes differ")
        first, last = (a, b) if self.plan.graph.before(a, b) else (b, a)
        for predicate in self.pairs:
            verdict = predicate(self.footprints[first], self.footprints[last])
            if not verdict:
                return verdict
        groups = self._groups(sorted([*self.members[a], *self.members[b]]))
        count = sum(len(group.body_ops()) for group in groups)
        if count > MAX_OPERATIONS:
            message = "the merged kernel would be too long"
            facts = {"operations": count, "limit": MAX_OPERATIONS}
            return Verdict("fuse.too-many-operations", message, dict(facts))
        whole = footprint_of(groups, self.memo)
        one, other = self.footprints[a], self.footprints[b]
        saved = bytes_moved(one) + bytes_moved(other) - bytes_moved(whole)
        return Merge(one, other, whole, saved)

    def _check(self, merge: Merge) -> Verdict:
        for predicate in self.rule:
            verdict = predicate(merge)
            if not verdict:
                return verdict
        return YES

    def _merge(self, a: int, b: int, whole: Footprint, saved: int) -> None:
        graph = self.plan.graph
        names = (graph.names[a], graph.names[b])
        together = sorted([*self.members.pop(a), *self.members.pop(b)])
        node = graph.merge(a, b)
        self.members[node] = together
        self.version[node] = self._versions(a, b) + 1
        self.footprints[node] = whole
        remarks.passed(
            self.done, f"made '{names[0]}' and '{names[1]}' one kernel", groups=names, saved=saved
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


def _may_share_space(a: Footprint, b: Footprint) -> bool:
    """What can be said of the merged space from the two alone."""
    if a.space is None or b.space is None:
        return False
    if a.reduced and b.reduced:
        return (a.space, a.reduced) == (b.space, b.reduced)
    return a.points in (b.points, b.rows) or b.points in (a.points, a.rows)


def _candidates(plan: Plan) -> Iterator[tuple[int, int]]:
    """Each group with the first readers of what it writes, and the readers of a buffer in turn."""
    number = {group: position for position, group in enumerate(plan.groups)}
    for value, readers in plan.readers().items():
        owner = value.owner
        if isinstance(owner, GroupOp):
            yield from ((number[owner], reader) for reader in readers)
        yield from pairwise(readers)
