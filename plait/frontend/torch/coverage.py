"""How much of a model plait computes, and what PyTorch does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plait.frontend.torch.api import torch
from plait.frontend.torch.backend import backend
from plait.frontend.torch.execute import CompiledGraph, Program
from plait.frontend.torch.phases import is_item


@dataclass
class Coverage:
    """Operators of the graphs of a model, by who computes them."""

    graphs: int = 0
    computed: Counter[str] = field(default_factory=Counter[str])
    """Operators in plans."""
    called: Counter[str] = field(default_factory=Counter[str])
    """Operators that PyTorch runs, with the reason."""
    plans: int = 0
    kernels: int = 0

    @property
    def fraction(self) -> float:
        """The part of all operators that is in plans."""
        inside, outside = self.computed.total(), self.called.total()
        return inside / (inside + outside) if inside + outside else 1.0

    def __str__(self) -> str:
        total = self.computed.total() + self.called.total()
        lines = [
            f"{self.graphs} graphs, {total} operators: {self.computed.total()} in {self.plans} "
            f"plans of {self.kernels} kernels ({self.fraction:.0%}), {self.called.total()} in "
            "PyTorch"
        ]
        lines += [f"  {count:4} {name}" for name, count in self.called.most_common()]
        return "\n".join(lines)


def coverage(model: Any, inputs: Sequence[Any], backward: bool = False) -> Coverage:
    """Compiles and runs ``model`` on ``inputs`` once, and its backward pass if asked for."""
    graphs: list[CompiledGraph] = []
    torch._dynamo.reset()
    made = torch.compile(model, backend=backend(graphs))(*inputs)
    if backward:
        leaves = [each for each in torch.utils._pytree.tree_leaves(made) if _has_gradient(each)]
        torch.autograd.backward([leaf.sum() for leaf in leaves])
    found = Coverage()
    for graph in graphs:
        found.graphs += len(graph.programs)
        found.called.update(f"a whole graph ({reason})" for reason in graph.reasons)
        for program in graph.programs.values():
            if program is not None:
                _add(found, program)
    return found


def _has_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and bool(value.requires_grad)


def _add(found: Coverage, program: Program) -> None:
    reasons = program.imported.reasons
    for node in program.nodes:
        if node.op != "call_function" or node in program.known or is_item(node):
            continue
        if node in reasons:
            found.called[f"{node.target} ({reasons[node]})"] += 1
        else:
            found.computed[str(node.target)] += 1
    for part in program.plans:
        found.plans += 1
        found.kernels += len(part.plan.kernels)
