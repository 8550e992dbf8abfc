"""Plans of the recorded graphs: kernels beside those of the system they came from, and meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import Graph, cases, large
from numpy.typing import NDArray
from test_import import SMALL, name
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dtypes import numpy_dtype
from plait.frontend.uop_graph import import_graph
from plait.passes.fuse_check_bijective_loads import FuseCheckBijectiveLoadsPass
from plait.passes.fuse_elementwise_reduce import FuseElementwiseReducePass
from plait.passes.fuse_form_groups import FuseFormGroupsPass
from plait.passes.fuse_group_crossing_dag import FuseGroupCrossingDagPass
from plait.passes.fuse_merge_reduces import FuseMergeReducesPass
from plait.passes.fuse_sweeps import FuseSweepsPass
from plait.passes.lazy_simplify import LazySimplifyPass
from plait.passes.pipelines import PIPELINES
from plait.runtime.interpret import run_module

PASSES: dict[str, ModulePass] = {
    step.name: step
    for step in (
        LazySimplifyPass(),
        FuseFormGroupsPass(),
        FuseCheckBijectiveLoadsPass(),
        FuseMergeReducesPass(),
        FuseGroupCrossingDagPass(),
        FuseSweepsPass(),
        FuseElementwiseReducePass(),
    )
}

MORE = {
    "test_cast_const_view#1": 1,
    "test_cast_const_view#2": 1,
    "test_conv2d_half#1": 5,
    "test_dont_parallelize_different_n#1": 2,
    "test_example_matmul_same#1": 2,
    "test_fancy_reshape_fusion#1": 2,
    "test_fuse_arange_pad_replicate_mode#1": 3,
    "test_multistage_reduce#1": 2,
    "test_push_shrink_chase#1": 2,
}
"""Graphs on which the default plan still has more kernels than the recorded one, and how many."""


def planned(graph: Graph, pipeline: str) -> ModuleOp:
    module = import_graph(graph.nodes, graph.outputs).module
    for step in PIPELINES[pipeline]:
        PASSES[step].apply(Context(), module)
    module.verify()
    return module


def kernels(module: ModuleOp) -> int:
    return sum(isinstance(op, GroupOp) for op in module.walk())


@pytest.mark.parametrize("graph", cases(), ids=name)
def test_no_more_kernels(graph: Graph) -> None:
    allowed = max(graph.kernels, MORE.get(graph.id.rsplit("::", 1)[-1], 0))
    assert kernels(planned(graph, "default")) <= allowed


@pytest.mark.parametrize("graph", [g for g in large() if len(g.nodes) < 2000], ids=name)
def test_fewer_kernels_on_large_graphs(graph: Graph) -> None:
    assert kernels(planned(graph, "default")) < graph.kernels


@pytest.mark.slow
@pytest.mark.parametrize("graph", [g for g in large() if len(g.nodes) >= 2000], ids=name)
def test_plans_a_training_step(graph: Graph) -> None:
    assert kernels(planned(graph, "default")) < graph.kernels / 2


@pytest.mark.parametrize("pipeline", ["seed", "default"])
@pytest.mark.parametrize("graph", SMALL, ids=name)
def test_plans_keep_the_meaning(graph: Graph, pipeline: str) -> None:
    program = import_graph(graph.nodes, graph.outputs).module
    function = program.body.block.first_op
    assert isinstance(function, FuncOp)
    random = np.random.default_rng(0)
    arrays = list[NDArray[Any]]()
    for argument in function.body.block.args:
        shape = lazy.shape_of(argument)
        values = random.integers(0, 3, shape) + random.random(shape)
        arrays.append(values.astype(numpy_dtype(lazy.element_type_of(argument))))
    with np.errstate(all="ignore"):
        before = run_module(program, arrays, float64=True)
        after = run_module(planned(graph, pipeline), arrays, float64=True)
    for have, want in zip(after, before, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)
