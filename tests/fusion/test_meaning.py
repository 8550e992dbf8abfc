"""Every planning pass keeps the meaning of programs, on data with NaN, infinities and zeros."""

from __future__ import annotations

import pytest
from build import check_meaning
from programs import PROGRAMS, module
from xdsl.context import Context

from plait.passes.fuse_elementwise_reduce import FuseElementwiseReducePass
from plait.passes.fuse_form_groups import FuseFormGroupsPass
from plait.passes.fuse_group_crossing_dag import FuseGroupCrossingDagPass
from plait.passes.fuse_merge_reduces import FuseMergeReducesPass
from plait.passes.fuse_sweeps import FuseSweepsPass
from plait.passes.lazy_simplify import LazySimplifyPass

ALL = (
    LazySimplifyPass(),
    FuseFormGroupsPass(),
    FuseMergeReducesPass(),
    FuseGroupCrossingDagPass(),
    FuseElementwiseReducePass(),
    FuseSweepsPass(),
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_meaning(name: str) -> None:
    check_meaning(module(name), *ALL)


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_alone_keep_meaning(name: str) -> None:
    for step in ALL[2:]:
        check_meaning(module(name), FuseFormGroupsPass(), step)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_second_run_changes_nothing(name: str) -> None:
    program = module(name)
    for step in ALL:
        step.apply(Context(), program)
        once = str(program)
        step.apply(Context(), program)
        assert str(program) == once, step.name
