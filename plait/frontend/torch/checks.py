"""Conditions that hold when a program is right: PyTorch raises where they do not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from plait.frontend.tensor import Tensor

_OPEN: ContextVar[list[Tensor] | None] = ContextVar("open checks", default=None)


@contextmanager
def collected() -> Generator[list[Tensor]]:
    """The conditions of what is imported meanwhile: booleans without axes."""
    conditions: list[Tensor] = []
    token = _OPEN.set(conditions)
    try:
        yield conditions
    finally:
        _OPEN.reset(token)


def within(index: Tensor, low: int, high: int) -> None:
    """Positions must be at least ``low`` and below ``high``; plans compute this beside results."""
    conditions = _OPEN.get()
    if conditions is not None and index.size:
        conditions.append(((index >= low) & (index < high)).all())
