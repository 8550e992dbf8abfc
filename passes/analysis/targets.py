"""Target descriptions: what planning assumes of a machine. The numbers are in ``targets.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type
from xdsl.ir import Attribute

from plait.errors import PlaitError

DEFAULT = "cpu"
_ALIASES = {"cuda": "cuda:sm_80", "llvm": "cpu"}


@dataclass(frozen=True)
class Target:
    """A machine. Times in microseconds, sizes in bytes, rates in 10^9 a second."""

    name: str
    bandwidth_gbs: float
    """Bytes between memory and the chip."""
    peak_gflops: Mapping[str, float]
    """Scalar operations, by element type: ``f64``, ``f32`` (also integers), ``f16`` (also bf16)."""
    matrix_gflops: Mapping[str, float]
    """Operations of matrix products, with what hardware there is for them."""
    launch_us: float
    """What one more kernel costs."""
    on_chip_bytes: int
    """What one block can keep on chip: shared memory, or a core's share of private cache."""
    shared_bytes_per_core: int
    registers_per_core: int
    """32-bit registers that the threads of a core share."""
    cores: int
    """Streaming multiprocessors, or processor cores."""
    cache_bytes: int
    """The last cache that all cores share."""
    argument_bytes: int
    """What the arguments of one launch may take."""

    @property
    def max_operands(self) -> int:
        """How many buffers a kernel may have: a pointer each, with room for a few scalars."""
        return (self.argument_bytes - 64) // 8

    def time_us(
        self, bytes: int, operations: float, type: Attribute | None = None, matrix: bool = False
    ) -> float:
        """Modelled time of one kernel: the launch, then memory and arithmetic overlapped."""
        rates = self.matrix_gflops if matrix else self.peak_gflops
        moving = bytes / self.bandwidth_gbs * 1e-3
        computing = operations / rates[_rate(type)] * 1e-3
        return self.launch_us + max(moving, computing)


def _rate(type: Attribute | None) -> str:
    if isinstance(type, Float64Type):
        return "f64"
    return "f16" if isinstance(type, Float16Type | BFloat16Type) else "f32"


@cache
def _all() -> dict[str, Target]:
    text = files("plait.passes.analysis").joinpath("targets.toml").read_text()
    entries: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {name: Target(name, **entry) for name, entry in entries.items()}


def names() -> tuple[str, ...]:
    """The targets that are described."""
    return tuple(_all())


def get(name: str) -> Target:
    """The target called ``name``; ``cuda`` alone is ``cuda:sm_80``. Raises :class:`PlaitError` for
    an unknown one."""
    target = _all().get(_ALIASES.get(name, name))
    if target is None:
        known = [*_all(), *_ALIASES]
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f": did you mean '{close[0]}'?" if close else f": expected one of {', '.join(known)}"
        raise PlaitError(f"unknown target '{name}'{hint}")
    return target
