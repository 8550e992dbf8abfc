"""The pass ``fuse-group-crossing-dag``."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from plait.passes import remarks
from plait.passes.fusion.classes import Bucket, buckets
from plait.passes.fusion.cost import gain
from plait.passes.fusion.footprint import Footprint
from plait.passes.fusion.footprints import footprints_of
from plait.passes.fusion.legality import REDUCE_RULE, Verdict, check, independent
from plait.passes.fusion.plan import Plan, functions_with_groups
from plait.passes.fusion.report import report_refusal

_MAX_PARTNERS = 16
"""Groups of one class that a group is paired with, the nearest ones in the order."""


@dataclass(frozen=True)
class FuseGroupCrossingDagPass(ModulePass):
    """Chooses among merges of reduces that exclude each other.

    Where a reduce could join either of two others, or two merges together would close a cycle, the
    merge that saves more bytes is made first. All candidates of the whole program are weighed
    before the first is made, so the outcome does not depend on where they stand.

    Before: `sum_2` could join either of the others, but those two cannot be one.
    ```mlir
    %0 = fuse.group "sum_0" (%a = %x : tensor<4x8xf32>, %b = %y : tensor<4x8xf32>)
        -> tensor<4xf32> {
      %e = lazy.add %a, %b : tensor<4x8xf32>
      %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %s : tensor<4xf32>
    }
    %1 = fuse.group "sum_1" (%a = %x : tensor<4x8xf32>, %b = %z : tensor<4x8xf32>)
        -> tensor<4xf32> {
      %e = lazy.add %a, %b : tensor<4x8xf32>
      %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %s : tensor<4xf32>
    }
    %2 = fuse.group "sum_2" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
      %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %s : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    %1 = fuse.group "sum_1" (%a = %x : tensor<4x8xf32>, %b = %z : tensor<4x8xf32>)
        -> tensor<4xf32> {
      %e = lazy.add %a, %b : tensor<4x8xf32>
      %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %s : tensor<4xf32>
    }
    %0, %2 = fuse.group "sum_0+1" (%a = %x : tensor<4x8xf32>, %b = %y : tensor<4x8xf32>)
        -> tensor<4xf32>, tensor<4xf32> {
      %e = lazy.add %a, %b : tensor<4x8xf32>
      %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      %t = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %s, %t : tensor<4xf32>, tensor<4xf32>
    }
    ```
    Remarks: `fuse.reduces-merged` (passed); `fuse.depends` and `fuse.closes-cycle` (missed), with
    the path.
    """

    name = "fuse-group-crossing-dag"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_with_groups(op):
            plan = Plan.read(function)
            _Chooser(plan, footprints_of(plan)).run()
            plan.rewrite()


@dataclass
class _Chooser:
    """Merges the best candidate, then weighs the ones it touched again."""

    plan: Plan
    footprints: list[Footprint]

    def run(self) -> None:
        graph = self.plan.graph
        queue = [
            (-gain(self.footprints[a], self.footprints[b]), a, b)
            for bucket in buckets(self.footprints).values()
            for a, b in _pairs(bucket)
        ]
        heapq.heapify(queue)
        refused = dict[tuple[int, int], tuple[int, int, Verdict]]()
        while queue:
            weight, first, second = heapq.heappop(queue)
            a, b = graph.find(first), graph.find(second)
            if a == b:
                continue
            verdict = check(REDUCE_RULE, self.footprints[a], self.footprints[b])
            now = -gain(self.footprints[a], self.footprints[b])
            if verdict and now > weight:
                heapq.heappush(queue, (now, first, second))
                continue
            verdict = verdict and independent(graph, a, b)
            if verdict and now < 0:
                self._merge(a, b, -now)
            elif not verdict:
                refused.setdefault((min(a, b), max(a, b)), (a, b, verdict))
        self._report(refused)

    def _merge(self, a: int, b: int, saved: int) -> None:
        graph = self.plan.graph
        names = (graph.names[a], graph.names[b])
        merged = self.footprints[a].merged(self.footprints[b])
        self.footprints[graph.merge(a, b)] = merged
        message = f"made '{names[0]}' and '{names[1]}' one kernel"
        remarks.passed("fuse.reduces-merged", message, groups=names, saved=saved)

    def _report(self, refused: dict[tuple[int, int], tuple[int, int, Verdict]]) -> None:
        graph = self.plan.graph
        for a, b, verdict in refused.values():
            if graph.find(a) != graph.find(b):
                report_refusal(self.plan, self.footprints, a, b, verdict)


def _pairs(bucket: Bucket) -> Iterator[tuple[int, int]]:
    """Groups with equal sets of large loads, and groups with those that have all of theirs."""
    for loads, targets in bucket.targets().items():
        own = sorted(bucket.members[loads])
        for target in {loads: None, **dict.fromkeys(targets)}:
            others = own if target == loads else sorted(bucket.members[target])
            yield from _near(own, others)


def _near(own: Sequence[int], others: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for node in own:
        while start < len(others) and others[start] < node:
            start += 1
        reach = max(0, start - _MAX_PARTNERS), start + _MAX_PARTNERS
        for other in others[reach[0] : reach[1]]:
            if other != node:
                yield min(node, other), max(node, other)
