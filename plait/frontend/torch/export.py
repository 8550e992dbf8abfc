"""A model of PyTorch as a tensor program in MLIR text."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from plait.errors import PlaitError
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import torch
from plait.frontend.torch.decompose import decompositions
from plait.frontend.torch.importer import Importer
from plait.frontend.torch.segment import Segment
from plait.frontend.trace import build_module


class _Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any):
        torch.nn.Module.__init__(self)
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def program(model: Any, inputs: Sequence[Any]) -> tuple[Any, list[str]]:
    """The forward pass as a module of ``lazy`` operations, and the names of its arguments.

    Arguments are parameters, buffers and constants, then ``inputs``; results are what the model
    changes in its buffers, then what it returns. Raises :class:`PlaitError` that lists the
    operators without a meaning here.
    """
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's about itself
        exported = torch.export.export(module, tuple(inputs)).run_decompositions(decompositions())
    nodes = list(exported.graph.nodes)
    fakes = {node: node.meta.get("val") for node in nodes}
    imported = Importer(fakes).run(nodes)
    if imported.reasons:
        lines = sorted({f"{node.target}: {why}" for node, why in imported.reasons.items()})
        raise PlaitError("the model has operators without a meaning in plait: " + "; ".join(lines))
    segment = imported.segments.get(0, Segment())
    importer = Importer(fakes)
    importer.result = imported
    placeholders = [node for node in nodes if node.op == "placeholder"]
    arguments: list[Tensor] = []
    for node in placeholders:
        if isinstance(fakes[node], torch.Tensor):
            arguments.append(segment.input(node, fakes[node]))
    results = [importer.operand(node, segment) for node in nodes[-1].args[0] if node is not None]
    names = [node.name for node in placeholders if isinstance(fakes[node], torch.Tensor)]
    made, _ = build_module(results, arguments)
    made.verify()
    return made, names


def to_mlir(model: Any, inputs: Sequence[Any]) -> str:
    """The text of :func:`program`."""
    return str(program(model, inputs)[0]) + "\n"
