"""Reverse-mode differentiation of tensor programs: gradients are tensors like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from plait.dialects import lazy
from plait.dtypes import is_float
from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.node import Node
from plait.frontend.tensor import Tensor
from plait.frontend.trace import topological
from plait.frontend.vjp_elementwise import ELEMENTWISE, Rule
from plait.frontend.vjp_structure import STRUCTURE

RULES: dict[type[lazy.LazyOp], Rule] = {**ELEMENTWISE, **STRUCTURE}
"""Operations without a rule (comparisons, counts, random bits) have no gradient."""


def grad(
    output: Tensor, inputs: Tensor | Sequence[Tensor], grad_output: Tensor | None = None
) -> list[Tensor]:
    """Gradients of ``output`` with respect to ``inputs``, each of its input's shape; a list of one
    for a single tensor.

    ``output`` is a scalar, or ``grad_output`` (of its shape) is the gradient that arrives at it.
    An input that the output does not depend on has a gradient of zeros. Raises
    :class:`PlaitError` for an output with axes and no ``grad_output``, or one that is not a float.
    """
    if not is_float(output.element):
        raise PlaitError(f"cannot differentiate a result of {output.dtype}: expected a float")
    if grad_output is None:
        if output.size != 1:
            raise PlaitError(
                f"the gradient of a result of shape {output.shape} needs grad_output: only a "
                "single element has a gradient by itself"
            )
        grad_output = output.full_like(1.0)
    if grad_output.shape != output.shape:
        raise PlaitError(
            f"grad_output of shape {grad_output.shape} does not fit a result of {output.shape}"
        )
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    return _Reverse(output, given).run(grad_output.cast(output.element))


class _Reverse:
    """One walk from an output back to inputs."""

    def __init__(self, output: Tensor, inputs: Sequence[Tensor]):
        self.output, self.inputs = output, inputs
        self.order = topological([output])
        self.gradients: dict[int, Tensor] = {}
        wanted = {id(tensor) for tensor in inputs}
        self.active: set[int] = set()
        for node in self.order:
            sources = node.vjp_sources if node.vjp is not None else node.sources
            if id(node) in wanted or any(id(source) in self.active for source in sources):
                self.active.add(id(node))

    def run(self, arriving: Tensor) -> list[Tensor]:
        self.gradients[id(self.output)] = arriving
        wanted = {id(tensor) for tensor in self.inputs}
        for node in reversed(self.order):
            gradient = self.gradients.get(id(node))
            if gradient is None or id(node) not in self.active:
                continue
            if id(node) not in wanted:
                del self.gradients[id(node)]
            self.pass_on(cast(Tensor, node), gradient)
        return [self.gradients.get(id(tensor), tensor.full_like(0.0)) for tensor in self.inputs]

    def pass_on(self, node: Tensor, gradient: Tensor) -> None:
        """Adds the gradients of what a node was made of."""
        if node.vjp is not None:
            sources: Sequence[Node] = node.vjp_sources
            gradients: Sequence[Tensor | None] = node.vjp(gradient)
        elif node.op is not None and node.op in RULES:
            sources = node.sources
            gradients = RULES[node.op](node, cast(Sequence[Tensor], node.sources), gradient)
        else:
            return
        for source, part in zip(sources, gradients, strict=True):
            if part is None or id(source) not in self.active:
                continue
            part = part.cast(source.element)
            known = self.gradients.get(id(source))
            self.gradients[id(source)] = part if known is None else known + part


make_public(globals())
