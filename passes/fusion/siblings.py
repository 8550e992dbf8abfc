"""Reduces of the same data along different axes, as one kernel."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp, KeepOp
from plait.passes import remarks
from plait.passes.analysis.targets import Target
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.kernels import SMALL_SPACE
from plait.passes.fusion.legality import YES, Verdict, independent
from plait.passes.fusion.merged import Merged
from plait.passes.fusion.objective import Objective
from plait.passes.fusion.plan import Plan
from plait.passes.fusion.products import NESTED_EFFICIENCY, pays


@dataclass(frozen=True)
class Shape:
    """What a group does at each of its points."""

    points: int
    """Elements of its largest result."""
    length: int
    """Elements that its longest reduce combines for one of them."""
    walked: int
    """Points of its largest space."""

    @staticmethod
    def of(groups: Sequence[GroupOp]) -> Shape:
        points, length, walked = 1, 1, 1
        for group in groups:
            points = max(points, *(prod(lazy.shape_of(value)) for value in group.outputs))
            for op in group.body_ops():
                if isinstance(op, lazy.ReduceOp | lazy.ArgReduceOp):
                    whole, kept = (prod(lazy.shape_of(v)) for v in (op.operand, op.results[0]))
                    length = max(length, whole // max(kept, 1))
                    walked = max(walked, whole)
        return Shape(points, length, max(points, walked))


def threads_suit(one: Sequence[GroupOp], other: Sequence[GroupOp]) -> Verdict:
    """Whether the threads that the larger result of two sets of groups has are enough for both."""
    small, large = sorted(map(Shape.of, (one, other)), key=lambda shape: shape.points)
    few = max(small.walked, large.walked) <= SMALL_SPACE
    if _is_special(one, few) or _is_special(other, few):
        return Verdict("fuse.runs-in-order", "one of the groups has a schedule of its own")
    if not few and (large.length == 1 or small.length > large.length):
        message = "the reduces of the smaller result are longer: they need more threads"
        facts = {"lengths": (str(small.length), str(large.length))}
        return Verdict("fuse.longer-reduce", message, dict(facts))
    return YES


@dataclass
class SiblingFinder:
    """Merges groups of one function that read one buffer, in spaces that differ."""

    plan: Plan
    target: Target
    objective: Objective
    members: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    refused: dict[tuple[int, int], Verdict] = field(default_factory=dict[tuple[int, int], Verdict])

    @staticmethod
    def of(function: FuncOp, target: Target, objective: Objective) -> SiblingFinder:
        plan = Plan.read(function)
        members = {number: [number] for number in range(len(plan.groups))}
        return SiblingFinder(plan, target, objective, members)

    def run(self) -> None:
        """Makes the merges, those that share most first."""
        queue = [
            (-bytes_of(value), first, last)
            for value, readers in self.plan.readers().items()
            for first, last in pairwise(readers)
        ]
        heapq.heapify(queue)
        graph = self.plan.graph
        while queue:
            _, first, last = heapq.heappop(queue)
            a, b = graph.find(first), graph.find(last)
            if a == b:
                continue
            verdict = self._judge(a, b)
            if verdict:
                self._merge(a, b)
            else:
                self.refused[first, last] = verdict
        self._report()
        self.plan.rewrite()

    def _groups(self, *nodes: int) -> list[GroupOp]:
        numbers = sorted(number for node in nodes for number in self.members[node])
        return [self.plan.groups[number] for number in numbers]

    def _judge(self, a: int, b: int) -> Verdict:
        verdict = independent(self.plan.graph, a, b)
        if not verdict:
            return verdict
        sides = [self._groups(a), self._groups(b)]
        verdict = threads_suit(*sides)
        if not verdict:
            return verdict
        merged = Merged.of(self._groups(a, b))
        verdict = merged.fits()
        if not verdict:
            return verdict
        verdict = self._shared_stays(sides)
        if not verdict or self.objective is Objective.BYTES:
            return verdict
        return pays(merged.groups, merged.saved(), NESTED_EFFICIENCY, self.target)

    def _shared_stays(self, sides: Sequence[Sequence[GroupOp]]) -> Verdict:
        """What both read must stay in cache from the one reduce to the other."""
        read = [{value for group in side for value in group.inputs} for side in sides]
        shared = sum(map(bytes_of, read[0] & read[1]))
        limit = self.target.cache_bytes // 4
        if shared <= limit:
            return YES
        message = "what both read does not stay in cache from one reduce to the next"
        return Verdict("fuse.data-too-large", message, {"bytes": shared, "limit": limit})

    def _merge(self, a: int, b: int) -> None:
        graph = self.plan.graph
        names = (graph.names[a], graph.names[b])
        groups = self._groups(a, b)
        saved = Merged.of(groups).saved()
        together = sorted([*self.members.pop(a), *self.members.pop(b)])
        self.members[graph.merge(a, b)] = together
        remarks.passed(
            "fuse.siblings-merged",
            f"made '{names[0]}' and '{names[1]}' one kernel",
            groups=names,
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


def _is_special(groups: Sequence[GroupOp], few: bool) -> bool:
    """Whether groups run in order along an axis, keep rows, or sweep rows again where those are
    more than a ``few`` points."""
    special = lazy.ScanOp | lazy.ScatterOp | KeepOp
    if any(isinstance(op, special) for group in groups for op in group.body_ops()):
        return True
    return not few and any(map(_is_swept, groups))


def _is_swept(group: GroupOp) -> bool:
    """Whether a reduce is used again over the axes that it closes: a kernel with several sweeps."""
    below: set[SSAValue] = set()
    for op in group.body_ops():
        results: list[SSAValue] = [*op.results]
        reached = any(operand in below for operand in op.operands)
        if isinstance(op, lazy.ReduceOp | lazy.ArgReduceOp):
            if reached:
                return True
            below.update(results)
        elif reached:
            if isinstance(op, lazy.ExpandOp) and _grows(op):
                return True
            below.update(results)
    return False


def _grows(op: Operation) -> bool:
    whole, part = (prod(lazy.shape_of(value)) for value in (op.results[0], op.operands[0]))
    return whole > part
