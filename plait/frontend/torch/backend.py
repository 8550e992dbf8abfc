"""``torch.compile(model, backend="plait")``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from plait.frontend.torch.execute import CompiledGraph
from plait.frontend.torch.table import TABLE

_NATIVE = (
    "convolution_backward",
    "native_dropout",
    "rand_like",
    "randn_like",
    "randint_like",
    "uniform",
    "normal",
    "bernoulli",
)
"""Operators that stay whole although PyTorch would take them apart: plait has a meaning for them,
or their random numbers must be those of eager PyTorch."""


def decompositions() -> dict[Any, Any]:
    """How operators that are not in the table are taken apart."""
    made: dict[Any, Any] = dict(import_module("torch._decomp").core_aten_decompositions())
    kept = {overload for overload in made if overload in TABLE or _packet(overload) in _NATIVE}
    return {overload: function for overload, function in made.items() if overload not in kept}


def _packet(overload: Any) -> str:
    return str(getattr(overload, "__name__", "")).split(".")[0]


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
