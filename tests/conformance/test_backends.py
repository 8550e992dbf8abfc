"""The recorded graphs on the backends: the default plan on cpu and cuda-sim against the oracle,
in-place stores included."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from evaluate import buffers, evaluate
from graphs import Graph, cases, large

from plait.dtypes import numpy_dtype
from plait.frontend.uop_graph import import_graph
from plait.runtime import driver

CPU_ELEMENTS = 3_000_000
SIMULATED_ELEMENTS = 60_000
GRAPHS = cases() + large()


def name(graph: Graph) -> str:
    return graph.id


def run_and_compare(graph: Graph, backend: str) -> None:
    imported = import_graph(graph.nodes, graph.outputs)
    contents = buffers(graph.nodes)
    outputs, final = evaluate(graph.nodes, graph.outputs, contents)
    written = [i for i in imported.inputs if i in final]
    function: Any = next(iter(imported.module.ops))
    types = [argument.type.element_type for argument in function.body.block.args]
    arrays = [
        contents[i].astype(numpy_dtype(type))
        for i, type in zip(imported.inputs, types, strict=True)
    ]
    plan = driver.planned(imported.module, "default")
    results = driver.compiled(plan, backend).run(*arrays)
    for result, want in zip(results, [*outputs, *(final[i] for i in written)], strict=True):
        close(result, want)
    for position, array in zip(imported.inputs, arrays, strict=True):
        if position in written:
            close(array, final[position])
        else:
            np.testing.assert_array_equal(array, contents[position].astype(array.dtype))


def close(result: np.ndarray, want: np.ndarray) -> None:
    assert result.shape == want.shape
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(result, want.astype(result.dtype))
        return
    limit = 2e-2 if result.dtype == np.float16 else 2e-4
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    np.testing.assert_allclose(
        result.astype(np.float64) / scale, want / scale, rtol=limit, atol=limit
    )


@pytest.mark.parametrize("graph", [g for g in GRAPHS if g.largest <= CPU_ELEMENTS], ids=name)
def test_cpu(graph: Graph) -> None:
    run_and_compare(graph, "cpu")


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("graph", [g for g in GRAPHS if g.largest <= SIMULATED_ELEMENTS], ids=name)
def test_cuda_sim(graph: Graph) -> None:
    run_and_compare(graph, "cuda-sim")
