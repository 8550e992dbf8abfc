"""Plans of the recorded graphs mean what the graphs mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import Graph
from numpy.typing import NDArray
from overwritten import overwritten_reads
from test_import import SMALL, name
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from plait.dialects import lazy
from plait.dtypes import numpy_dtype
from plait.frontend.uop_graph import import_graph
from plait.runtime import driver
from plait.runtime.interpret import run_module


def planned(graph: Graph, pipeline: str) -> ModuleOp:
    return driver.planned(import_graph(graph.nodes, graph.outputs).module, pipeline)


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
        plan = planned(graph, pipeline)
        assert not overwritten_reads(plan)
        after = run_module(plan, arrays, float64=True)
    for have, want in zip(after, before, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)
