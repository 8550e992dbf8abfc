"""Reduces that could be one kernel: sorted by space, reduced axes and large loads.

Two reduces over one space may merge if the large loads of one are among those of the other. So the
groups of one space fall into classes by their set of large loads, and a class can join any class
with a larger set. One that has a single largest set above it has nothing to choose; one with
several is contested.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from plait.passes.fusion.footprint import Footprint, Where
from plait.passes.fusion.graph import GroupGraph
from plait.passes.fusion.stores import MAX_OUTPUTS

LoadSet = frozenset[tuple[SSAValue, Where]]
Space = tuple[tuple[int, ...], tuple[int, ...]]

_TRIED_CLUSTERS = 8
"""Clusters of one class that a group is tried with; more only in long chains of dependent ones."""
_MAX_TARGETS = 16


@dataclass
class Bucket:
    """The groups with one iteration space and one set of reduced axes, by their large loads."""

    members: dict[LoadSet, list[int]] = field(default_factory=dict[LoadSet, list[int]])

    def targets(self) -> dict[LoadSet, list[LoadSet]]:
        """For every class, the classes with the largest sets that contain its own; itself if it
        is one of those. At most a few are listed."""
        holding = dict[tuple[SSAValue, Where], list[LoadSet]]()
        found = dict[LoadSet, list[LoadSet]]()
        for loads in sorted(self.members, key=len, reverse=True):
            rarest = min((holding.get(load, []) for load in loads), key=len)
            above = [other for other in rarest if loads < other][:_MAX_TARGETS]
            found[loads] = above or [loads]
            if not above:
                for load in loads:
                    holding.setdefault(load, []).append(loads)
        return found


def buckets(footprints: Sequence[Footprint]) -> dict[Space, Bucket]:
    """Sorts the reduces that have large loads; the numbers are positions in ``footprints``."""
    found = dict[Space, Bucket]()
    for number, footprint in enumerate(footprints):
        if footprint.space is not None and footprint.reduced and footprint.large:
            bucket = found.setdefault((footprint.space, footprint.reduced), Bucket())
            bucket.members.setdefault(footprint.large, []).append(number)
    return found


def independent_clusters(graph: GroupGraph, nodes: Iterable[int]) -> list[list[int]]:
    """Divides groups, first come first served, so that none in a part depends on another in it."""
    clusters = list[list[int]]()
    for node in nodes:
        for cluster in reversed(clusters[-_TRIED_CLUSTERS:]):
            if len(cluster) >= MAX_OUTPUTS:
                continue
            earlier = [other for other in cluster if graph.before(other, node)]
            later = [other for other in cluster if not graph.before(other, node)]
            if graph.depends_on_any(earlier, node) is None and all(
                graph.depends(node, other) is None for other in later
            ):
                cluster.append(node)
                break
        else:
            clusters.append([node])
    return clusters


def crossing(graph: GroupGraph, clusters: Sequence[Sequence[int]]) -> set[int]:
    """The clusters (by position) that cannot all be merged: together they close a cycle.

    Merging all of them contracts the graph; what lies in a cycle of the result are its strongly
    connected components of more than one node (Tarjan 1972, without recursion). Linear.
    """
    home = {node: k for k, cluster in enumerate(clusters) for node in cluster}
    offset = len(clusters)
    count = offset + len(graph.names)
    targets = [set[int]() for _ in range(count)]
    for node in graph.order():
        source = home.get(node, offset + node)
        for other in graph.successors[node]:
            target = home.get(other, offset + other)
            if target != source:
                targets[source].add(target)
    return {
        node
        for component in _components(targets)
        if len(component) > 1
        for node in component
        if node < offset
    }


def _components(targets: Sequence[Iterable[int]]) -> list[list[int]]:
    index = [-1] * len(targets)
    low = [0] * len(targets)
    on_stack = [False] * len(targets)
    stack, components = list[int](), list[list[int]]()
    counter = 0
    for start in range(len(targets)):
        if index[start] >= 0:
            continue
        index[start] = low[start] = counter
        counter += 1
        stack.append(start)
        on_stack[start] = True
        work = [(start, iter(targets[start]))]
        while work:
            node, rest = work[-1]
            for other in rest:
                if index[other] < 0:
                    index[other] = low[other] = counter
                    counter += 1
                    stack.append(other)
                    on_stack[other] = True
                    work.append((other, iter(targets[other])))
                    break
                if on_stack[other]:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = list[int]()
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack[component[-1]] = False
                    components.append(component)
    return components
