"""``torch.compile(model, backend="plait")``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from plait.frontend.torch.decompose import decompositions
from plait.frontend.torch.execute import CompiledGraph

Compiler = Callable[[Any, Sequence[Any]], Callable[..., Any]]
"""From a graph and examples of its arguments to a function that does the same."""


def graph_compiler(made: list[CompiledGraph] | None = None) -> Compiler:
    """What AOTAutograd asks a compiler for; compiled graphs are appended to ``made``."""
    boxed: Any = import_module("functorch.compile").make_boxed_func

    def compile_graph(module: Any, example: Sequence[Any]) -> Callable[..., Any]:
        module.graph.eliminate_dead_code()
        compiled = CompiledGraph(module)
        if made is not None:
            made.append(compiled)
        return boxed(compiled)

    return compile_graph


def backend(made: list[CompiledGraph] | None = None) -> Callable[..., Any]:
    """A backend of ``torch.compile``: forward and backward graphs on plait's ``cpu`` backend."""
    common: Any = import_module("torch._dynamo.backends.common")
    compiler = graph_compiler(made)
    return common.aot_autograd(
        fw_compiler=compiler, bw_compiler=compiler, decompositions=decompositions()
    )


def plait_backend(module: Any, example: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """The backend that is called ``plait``."""
    return backend()(module, example)
