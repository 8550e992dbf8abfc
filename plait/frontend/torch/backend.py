"""``torch.compile(model, backend="plait")``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from plait.frontend.torch.decompose import decompositions
from plait.frontend.torch.execute import CompiledGraph


def compile_graph(module: Any, example: Sequence[Any]) -> Callable[..., Any]:
    """A compiled graph of ``aten`` operators: what AOTAutograd asks a compiler for."""
    module.graph.eliminate_dead_code()
    made = CompiledGraph(module)
    boxed: Any = import_module("functorch.compile").make_boxed_func
    return boxed(made)


def plait_backend(module: Any, example: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """The backend: forward and backward graphs on plait's ``cpu`` backend."""
    common: Any = import_module("torch._dynamo.backends.common")
    compiler = common.aot_autograd(
        fw_compiler=compile_graph, bw_compiler=compile_graph, decompositions=decompositions()
    )
    return compiler(module, example)
