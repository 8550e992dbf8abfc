"""Every operator of PyTorch that plait has a meaning for."""

from __future__ import annotations

from typing import Any

from plait.frontend.torch import (
    activations,
    attention,
    contractions,
    convolutions,
    creation,
    indexing,
    joins,
    norm_reductions,
    norms,
    pointwise_binary,
    pointwise_logic,
    pointwise_unary,
    pooling,
    reductions,
    views,
)
from plait.frontend.torch.table import TABLE, Rule

FAMILIES = (
    pointwise_unary,
    pointwise_binary,
    pointwise_logic,
    activations,
    reductions,
    views,
    joins,
    norm_reductions,
    norms,
    contractions,
    convolutions,
    attention,
    pooling,
    indexing,
    creation,
)
"""Modules that enter their operators into the table when they are imported."""


def rule(target: Any) -> Rule | None:
    """What an operator means, or None if PyTorch must run it."""
    try:
        return TABLE.get(target)
    except TypeError:
        return None
