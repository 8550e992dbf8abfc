"""What a plan is chosen by."""

from __future__ import annotations

from enum import StrEnum

from plait.errors import PlaitError


class Objective(StrEnum):
    """What a plan is to have least of."""

    TIME = "time"
    """Modelled time on the target."""
    BYTES = "bytes"
    """Modelled bytes, whatever the kernels cost otherwise."""


def objective(name: str) -> Objective:
    """The objective with a name; raises :class:`PlaitError` for another one."""
    if name not in list(Objective):
        raise PlaitError(f"unknown objective '{name}': expected {' or '.join(Objective)}")
    return Objective(name)
