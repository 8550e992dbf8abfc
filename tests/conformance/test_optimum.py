"""How far the default plan is from the plan of fewest bytes, on every small graph."""

from __future__ import annotations

from graphs import cases

from plait.frontend.uop_graph import import_graph
from plait.passes.analysis import targets
from plait.passes.analysis.counts import report
from plait.passes.fusion.optimal import Search
from plait.passes.fusion.plan import Plan, functions_with_groups
from plait.runtime import driver

TARGET = "cuda:sm_80"
NEAR = 1.05
FAR = {"test_conv2d_half#1", "test_sgd_4convs_fuse#1"}
"""Graphs whose default plan moves more than that; `docs/fusion.md` says why."""


def test_default_is_near_the_optimum() -> None:
    far = set[str]()
    for graph in cases():
        module = import_graph(graph.nodes, graph.outputs).module
        moved = report(driver.planned(module, "default", TARGET), TARGET)["bytes"]
        driver.apply(module, ("lazy-simplify", "fuse-form-groups"))
        searches = [
            Search(Plan.read(function), targets.get(TARGET), limit_s=5.0)
            for function in functions_with_groups(module)
        ]
        if moved > NEAR * sum(search.run().bound for search in searches):
            far.add(graph.id.split("::")[-1])
    assert far == FAR
