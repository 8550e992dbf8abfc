"""plait: a multi-level IR on xDSL for seeing, steering and running kernel fusion.

The public API: tensors that build programs, their gradients, and plans of their kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait import nn, optim
    from plait.errors import PlaitError
    from plait.frontend.creation import (
        arange,
        assign,
        empty,
        eye,
        full,
        linspace,
        ones,
        rand,
        randint,
        randn,
        tensor,
        zeros,
    )
    from plait.frontend.grad import grad
    from plait.frontend.schedule import Plan, compile, schedule
    from plait.frontend.tensor import Tensor

_HOMES = {
    "PlaitError": "plait.errors",
    **dict.fromkeys(
        (
            "arange",
            "assign",
            "empty",
            "eye",
            "full",
            "linspace",
            "ones",
            "rand",
            "randint",
            "randn",
            "tensor",
            "zeros",
        ),
        "plait.frontend.creation",
    ),
    "grad": "plait.frontend.grad",
    **dict.fromkeys(("Plan", "compile", "schedule"), "plait.frontend.schedule"),
    "Tensor": "plait.frontend.tensor",
}

__all__ = [
    "PlaitError",
    "Plan",
    "Tensor",
    "arange",
    "assign",
    "compile",
    "empty",
    "eye",
    "full",
    "grad",
    "linspace",
    "nn",
    "ones",
    "optim",
    "rand",
    "randint",
    "randn",
    "schedule",
    "tensor",
    "zeros",
]


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used, so that the tools start fast."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("nn", "optim"):
        return import_module(f"plait.{name}")
    raise AttributeError(f"module 'plait' has no attribute '{name}'")
