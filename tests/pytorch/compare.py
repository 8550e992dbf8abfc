"""Compares what plait computes with eager PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from plait.frontend.torch.decompose import decompositions
from plait.frontend.torch.execute import CompiledGraph


def whole(function: Callable[..., Any], *tensors: Any) -> Any:
    """The result of a function traced and computed by plait alone."""
    module = make_fx(function, decomposition_table=decompositions())(*tensors)
    graph = CompiledGraph(module)
    made = graph(*tensors)
    program = graph.program(tensors)
    assert program is not None
    assert not program.imported.reasons, program.imported.reasons
    return made


def same(function: Callable[..., Any], *tensors: Any, rtol: float = 1e-5, atol: float = 1e-6):
    """plait alone agrees with PyTorch in type, shape, strides and numbers."""
    torch.testing.assert_close(
        whole(function, *tensors),
        function(*tensors),
        rtol=rtol,
        atol=atol,
        equal_nan=True,
        check_stride=True,
    )


def doubled(value: Any) -> Any:
    """A tensor in float64 that gradients are taken by where they were."""
    if not value.is_floating_point():
        return value
    return value.detach().double().requires_grad_(value.requires_grad)


def trains(model: Any, inputs: Sequence[Any], steps: int = 2, rtol: float = 1e-4) -> Any:
    """Training steps by plait agree with eager float64: results, gradients and buffers."""
    reference = copy.deepcopy(model).double()
    compiled = torch.compile(model, backend="plait")
    weights: Any = None
    for _ in range(steps):
        made = compiled(*inputs)
        expected = reference(*[doubled(value) for value in inputs])
        near(made, expected, rtol)
        weights = torch.randn(made.shape) if weights is None else weights
        (made * weights).sum().backward()
        (expected * weights.double()).sum().backward()
        for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
            near(ours.grad, theirs.grad, rtol)
            ours.data.sub_(ours.grad, alpha=0.01)
            theirs.data.sub_(theirs.grad, alpha=0.01)
            ours.grad = theirs.grad = None
        for ours, theirs in zip(model.buffers(), reference.buffers(), strict=True):
            near(ours, theirs, rtol)
    return compiled


def near(made: Any, expected: Any, rtol: float) -> None:
    """The error is small beside the largest element."""
    error = (made.double() - expected.double()).abs().max()
    scale = expected.double().abs().max().clamp_min(1.0)
    assert made.shape == expected.shape
    assert error <= rtol * scale, f"error {error:.3g} beside {scale:.3g}"
