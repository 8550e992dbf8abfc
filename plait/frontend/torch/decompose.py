"""How operators that are not in the table are taken apart."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from plait.frontend.torch.api import aten, torch
from plait.frontend.torch.table import TABLE, overload

_KEPT = (
    "bernoulli",
    "bernoulli.p",
    "convolution_backward",
    "rand_like",
    "randn_like",
    "randint_like",
    "uniform",
    "normal_functional",
)
"""Packets that stay whole although PyTorch would take them apart: their random numbers must be
those of eager PyTorch."""

_MORE = (
    "_native_batch_norm_legit.no_stats",
    "_native_batch_norm_legit_functional",
    "native_group_norm",
    "native_layer_norm",
)
"""Overloads to take apart beyond PyTorch's core set."""


def decompositions() -> dict[Any, Any]:
    """A function for each overload that is taken apart; operators in the table never are."""
    found: Any = import_module("torch._decomp")
    made: dict[Any, Any] = dict(found.core_aten_decompositions())
    more = [overload(name) for name in _MORE]
    made.update(found.get_decompositions([each for each in more if each is not None]))
    kept = {key for key in made if key in TABLE or _packet(key) in _KEPT}
    return {key: each for key, each in made.items() if key not in kept} | {
        aten.native_dropout.default: native_dropout
    }


def _packet(key: Any) -> str:
    return str(getattr(key, "__name__", "")).removesuffix(".default")


def native_dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """With the random numbers that eager PyTorch draws on the CPU."""
    if not train or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    kept = torch.bernoulli(x, p=1 - p)
    return x * (kept / (1 - p)), kept.to(torch.bool)
