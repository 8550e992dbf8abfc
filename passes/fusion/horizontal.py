"""Small kernels that have nothing to do with each other, side by side in one launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.func import FuncOp

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.passes import remarks
from plait.passes.analysis.targets import Target
from plait.passes.analysis.work import operations_of
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.engine import MAX_OPERATIONS
from plait.passes.fusion.legality import YES, Verdict, independent, within_launch
from plait.passes.fusion.plan import Plan

MOSTLY_LAUNCH = 4.0
"""A kernel is small if its modelled time is at most this many times that of its launch."""
_TRIED = 8
"""Clusters that a kernel is tried with, the latest first."""
_IDLE = 4
"""Instructions of a thread that finds that it has no element of a result."""


@dataclass
class Cluster:
    """Kernels that will be one."""

    node: int
    groups: list[GroupOp] = field(default_factory=list[GroupOp])

    @property
    def points(self) -> int:
        """Points of the space that the kernel runs over: those of its largest result."""
        return max(map(points_of, self.groups))

    @property
    def idle(self) -> int:
        """Points at which a kernel of the cluster has nothing to do, over all kernels."""
        most = self.points
        return sum(most - points_of(group) for group in self.groups)


def points_of(group: GroupOp) -> int:
    return max(prod(lazy.shape_of(value)) for value in group.outputs)


def merge_small_kernels(function: FuncOp, target: Target) -> None:
    """Puts independent small pointwise kernels of a function side by side."""
    plan = Plan.read(function)
    clusters = list[Cluster]()
    for number in plan.graph.order():
        group = plan.groups[number]
        if not _is_small(group, target):
            continue
        refused: Verdict = YES
        for cluster in reversed(clusters[-_TRIED:]):
            refused = _may_join(plan, cluster, number, target)
            if refused:
                _join(plan, cluster, number)
                break
        else:
            if not refused:
                name, other = plan.graph.names[number], plan.graph.names[clusters[-1].node]
                remarks.missed(
                    refused.reason,
                    f"'{other}' and '{name}' stay two kernels: {refused.message}",
                    groups=(other, name),
                    **refused.facts,
                )
            clusters.append(Cluster(number, [group]))
    plan.rewrite()


def runs_over_more(group: GroupOp) -> bool:
    """Whether a group walks more than the points of its results, or those in order."""
    more = lazy.ReduceOp | lazy.ArgReduceOp | lazy.ScanOp | lazy.ScatterOp
    return any(isinstance(op, more) for op in group.body_ops())


def _is_small(group: GroupOp, target: Target) -> bool:
    """Whether a kernel is pointwise and takes little longer than its launch."""
    if runs_over_more(group):
        return False
    moved = sum(map(bytes_of, (*group.inputs, *group.outputs)))
    time = target.time_us(moved, operations_of(group.body_ops()))
    return points_of(group) > 0 and time <= MOSTLY_LAUNCH * target.launch_us


def _may_join(plan: Plan, cluster: Cluster, number: int, target: Target) -> Verdict:
    graph, group = plan.graph, plan.groups[number]
    verdict = independent(graph, graph.find(cluster.node), number)
    if not verdict:
        return verdict
    together = [*cluster.groups, group]
    buffers = len({value for each in together for value in each.inputs})
    outputs = sum(len(each.outputs) for each in together)
    verdict = within_launch(buffers, outputs)
    if not verdict:
        return verdict
    count = _operations(together)
    if count > MAX_OPERATIONS:
        facts = {"operations": count, "limit": MAX_OPERATIONS}
        return Verdict("fuse.too-many-operations", "the kernel would be too long", dict(facts))
    idle = Cluster(cluster.node, together).idle - cluster.idle
    lost = target.time_us(0, _IDLE * max(idle, 0)) - target.launch_us
    if lost > target.launch_us:
        facts = {"lost_us": round(lost, 2), "launch_us": target.launch_us}
        return Verdict("fuse.sizes-differ", "most threads would have nothing to do", dict(facts))
    return YES


def _operations(groups: Iterable[GroupOp]) -> int:
    return sum(len(group.body_ops()) for group in groups)


def _join(plan: Plan, cluster: Cluster, number: int) -> None:
    names: Sequence[str] = (plan.graph.names[cluster.node], plan.graph.names[number])
    cluster.groups.append(plan.groups[number])
    cluster.node = plan.graph.merge(cluster.node, number)
    remarks.passed(
        "fuse.side-by-side", f"'{names[0]}' and '{names[1]}' share a launch", groups=tuple(names)
    )
