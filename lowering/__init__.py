"""The lowerings, level to level and to text, by name; each is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.utils.target import Target

from plait.passes import PassFactory, factories

_PASSES = ("convert-fuse-to-nest", "convert-nest-to-gpu", "convert-nest-to-loops")
_TARGETS = {
    "cuda": ("target_cuda", "CudaTarget"),
    "llvm": ("target_llvm", "LLVMTarget"),
    "plait-llvm": ("target_llvm", "PlaitLLVMTarget"),
}
"""By name, where they are; xDSL has a target ``llvm`` too, and outside of plait-opt it is meant."""


def get_all_passes() -> dict[str, PassFactory]:
    """A factory for each lowering pass."""
    return factories("plait.lowering", _PASSES)


def get_all_targets() -> dict[str, Callable[[], type[Target]]]:
    """A factory for each target."""

    def factory(module: str, cls: str) -> Callable[[], type[Target]]:
        return lambda: getattr(import_module(f"plait.lowering.{module}"), cls)

    return {name: factory(*home) for name, home in _TARGETS.items()}
