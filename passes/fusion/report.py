"""Remarks on what was not merged: neighbours in the plan that read one buffer, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from plait.passes import remarks
from plait.passes.fusion.cost import gain
from plait.passes.fusion.footprint import Footprint
from plait.passes.fusion.legality import Predicate, Verdict, check, independent
from plait.passes.fusion.plan import Plan


def report_neighbours(
    plan: Plan,
    footprints: Sequence[Footprint],
    rule: tuple[Predicate, ...],
    merged: Sequence[Sequence[int]],
) -> None:
    """For every buffer, takes the groups that read it pairwise in order; linear in the plan."""
    cluster_of = {node: place for place, cluster in enumerate(merged) for node in cluster}
    seen = set[tuple[int, int]]()
    for readers in plan.readers().values():
        for a, b in pairwise(readers):
            together = a in cluster_of and cluster_of[a] == cluster_of.get(b)
            if together or (a, b) in seen:
                continue
            seen.add((a, b))
            verdict = check(rule, footprints[a], footprints[b]) and independent(plan.graph, a, b)
            if not verdict:
                report_refusal(plan, footprints, a, b, verdict)


def report_refusal(
    plan: Plan, footprints: Sequence[Footprint], a: int, b: int, verdict: Verdict
) -> None:
    """One remark: which two groups, why not, and the bytes it would have saved."""
    names = plan.graph.names
    space = footprints[a].space is not None and footprints[a].space == footprints[b].space
    saved = {"forgone": gain(footprints[a], footprints[b])} if space else {}
    remarks.missed(
        verdict.reason,
        f"'{names[a]}' and '{names[b]}' stay two kernels: {verdict.message}",
        groups=(names[a], names[b]),
        **verdict.facts,
        **saved,
    )
