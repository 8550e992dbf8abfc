"""The pass ``fuse-merge-reduces``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from plait.passes import remarks
from plait.passes.fusion.classes import Bucket, buckets, crossing, independent_clusters
from plait.passes.fusion.cost import bytes_read, gain
from plait.passes.fusion.footprint import Footprint
from plait.passes.fusion.footprints import footprints_of
from plait.passes.fusion.legality import REDUCE_RULE, check
from plait.passes.fusion.plan import Plan, functions_with_groups
from plait.passes.fusion.report import report_neighbours


@dataclass(frozen=True)
class FuseMergeReducesPass(ModulePass):
    """Merges independent reduces that share their large loads.

    Groups merge if they run over one iteration space, close the same axes, and the bijective loads
    (as large as the space) of one are among those of the other: a merge never adds one. Small
    loads may be added, and what happens after the reduce may differ. Only merges that exclude no
    other are made: a group that could join either of two, and merges that together close a cycle,
    are left to `fuse-group-crossing-dag`.

    Before:
    ```mlir
    %0 = fuse.group "sum_0" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
      %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %s : tensor<4xf32>
    }
    %1 = fuse.group "max_1" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
      %m = lazy.reduce max %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %m : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    %0, %1 = fuse.group "sum_0+1" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xf32> {
      %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      %m = lazy.reduce max %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      fuse.yield %s, %m : tensor<4xf32>, tensor<4xf32>
    }
    ```
    Remarks: `fuse.reduces-merged` (passed); missed, between groups that read one buffer:
    `fuse.not-a-reduce`, `fuse.space-differs`, `fuse.axes-differ`, `fuse.nothing-shared`,
    `fuse.bijective-load-added`, `fuse.early-and-late`, `fuse.too-many-buffers`, `fuse.depends`,
    `fuse.closes-cycle`; and `fuse.merge-contested`.
    """

    name = "fuse-merge-reduces"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_with_groups(op):
            plan = Plan.read(function)
            footprints = footprints_of(plan)
            merges = _uncontested(plan, footprints)
            if remarks.wanted():
                report_neighbours(plan, footprints, REDUCE_RULE, merges)
            for cluster in merges:
                for other in cluster[1:]:
                    plan.graph.merge(cluster[0], other)
            plan.rewrite()


def _uncontested(plan: Plan, footprints: Sequence[Footprint]) -> list[list[int]]:
    """Sets of groups that can be merged, all of them, without excluding another merge."""
    clusters = list[list[int]]()
    for bucket in buckets(footprints).values():
        clusters.extend(_clusters(plan, footprints, bucket))
    clusters = [cluster for cluster in clusters if len(cluster) > 1]
    crossed = crossing(plan.graph, clusters)
    for position, cluster in enumerate(clusters):
        names = tuple(plan.graph.names[node] for node in cluster)
        if position in crossed:
            remarks.missed(
                "fuse.merge-contested",
                f"merging {', '.join(names)} excludes another merge",
                groups=names,
            )
            continue
        merged = _merged(footprints, cluster)
        saved = sum(bytes_read(footprints[node]) for node in cluster) - bytes_read(merged)
        remarks.passed(
            "fuse.reduces-merged", f"made {', '.join(names)} one kernel", groups=names, saved=saved
        )
    return [cluster for position, cluster in enumerate(clusters) if position not in crossed]


def _merged(footprints: Sequence[Footprint], cluster: Sequence[int]) -> Footprint:
    result = footprints[cluster[0]]
    for node in cluster[1:]:
        result = result.merged(footprints[node])
    return result


def _clusters(plan: Plan, footprints: Sequence[Footprint], bucket: Bucket) -> list[list[int]]:
    """The independent groups of every class with those that can join only that class."""
    joining = dict[object, list[int]]()
    for loads, targets in bucket.targets().items():
        if len(targets) == 1:
            joining.setdefault(targets[0], []).extend(bucket.members[loads])
    result = list[list[int]]()
    for loads, nodes in joining.items():
        first = [node for node in nodes if footprints[node].large == loads]
        rest = [node for node in nodes if footprints[node].large != loads]
        clusters = independent_clusters(plan.graph, [*sorted(first), *sorted(rest)])
        for cluster in clusters:
            result.extend(_fitting(footprints, cluster))
    return result


def _fitting(footprints: Sequence[Footprint], cluster: list[int]) -> list[list[int]]:
    """Splits a cluster where the whole rule does not hold between what is joined."""
    parts = list[tuple[Footprint, list[int]]]()
    for node in cluster:
        for place, (whole, part) in enumerate(parts):
            if check(REDUCE_RULE, whole, footprints[node]) and gain(whole, footprints[node]) > 0:
                parts[place] = (whole.merged(footprints[node]), [*part, node])
                break
        else:
            parts.append((footprints[node], [node]))
    return [part for _, part in parts]
