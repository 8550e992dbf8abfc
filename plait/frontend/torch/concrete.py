"""The shape and type of every value of a graph, for arguments of given shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from plait.frontend.torch.api import fx, torch

Values = Mapping[Any, Any]
"""Nodes of a graph, and what they are: fake tensors, numbers, tuples of them."""


def propagate(module: Any, args: Sequence[Any]) -> Values:
    """Runs ``module`` on tensors that have a shape but no data.

    Raises PyTorch's error for an operator whose shapes depend on data.
    """
    fake_tensors: Any = import_module("torch._subclasses.fake_tensor")
    mode: Any = fake_tensors.FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.no_grad():
        fakes = [_fake(mode, arg) for arg in args]
        interpreter = fx.Interpreter(module, garbage_collect_values=False)
        interpreter.run(*fakes)
    return interpreter.env


def _fake(mode: Any, arg: Any) -> Any:
    return mode.from_tensor(arg.detach()) if isinstance(arg, torch.Tensor) else arg


def key_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """What a specialisation depends on: shapes, strides and types of tensors, and numbers."""
    return tuple(
        (arg.dtype, tuple(arg.shape), arg.stride()) if isinstance(arg, torch.Tensor) else arg
        for arg in args
    )
