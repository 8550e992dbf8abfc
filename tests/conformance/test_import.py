"""Every recorded graph becomes ``lazy`` IR that verifies, and the small ones mean the same."""

from __future__ import annotations

import numpy as np
import pytest
from evaluate import buffers, evaluate
from graphs import Graph, cases, large

from plait.dtypes import numpy_dtype
from plait.errors import PlaitError
from plait.frontend.uop_graph import import_graph

EVALUATED_ELEMENTS = 3_000_000
"""Graphs whose largest value, as written, has more elements are not evaluated."""


def name(graph: Graph) -> str:
    return graph.id


def assert_close(result: np.ndarray, want: np.ndarray) -> None:
    """Equal up to the rounding of literals, which are float32 in plait: 1 - 0.999 is 1e-5 off."""
    assert result.shape == want.shape
    finite = want[np.isfinite(want)] if want.dtype.kind == "f" else want
    scale = float(np.abs(finite).max(initial=1))
    np.testing.assert_allclose(result / scale, want / scale, rtol=1e-4, atol=1e-4)


SMALL = [graph for graph in cases() + large() if graph.largest <= EVALUATED_ELEMENTS]


@pytest.mark.parametrize("graph", cases() + large(), ids=name)
def test_imports(graph: Graph) -> None:
    imported = import_graph(graph.nodes, graph.outputs)
    imported.module.verify()
    assert imported.outputs == len(graph.outputs)


@pytest.mark.parametrize("graph", SMALL, ids=name)
def test_means_what_numpy_says(graph: Graph) -> None:
    from plait.runtime.interpret import run_module

    imported = import_graph(graph.nodes, graph.outputs)
    contents = buffers(graph.nodes)
    outputs, final = evaluate(graph.nodes, graph.outputs, contents)
    expected = [*outputs, *(final[i] for i in imported.inputs if i in final)]
    arguments = [contents[i] for i in imported.inputs]
    function = next(iter(imported.module.ops))
    types = function.body.block.args  # pyright: ignore
    arrays = [
        argument.astype(numpy_dtype(arg.type.element_type))
        for argument, arg in zip(arguments, types, strict=True)
    ]
    results = run_module(imported.module, arrays, float64=True)
    for result, want in zip(results, expected, strict=True):
        assert_close(result, want)


def test_names_the_node_it_cannot_import() -> None:
    nodes = [
        {"op": "input", "dt": "f32", "sh": [4]},
        {"op": "warp", "dt": "f32", "sh": [4], "in": [0]},
    ]
    with pytest.raises(PlaitError, match="'warp'"):
        import_graph(nodes, [1])


def test_sources_must_come_first() -> None:
    nodes = [
        {"op": "sqrt", "dt": "f32", "sh": [4], "in": [1]},
        {"op": "input", "dt": "f32", "sh": [4]},
    ]
    with pytest.raises(PlaitError, match="node 0"):
        import_graph(nodes, [0])
