"""Remarks: what a pass did, what it declined, and why.

A pass reports with :func:`passed`, :func:`missed` and :func:`analysis`; each remark has a stable id
(``fuse.load-not-bijective``) and the facts a reader needs. Nobody listening costs one lookup.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum


class RemarkKind(StrEnum):
    """The three kinds, as in LLVM's optimisation remarks."""

    PASSED = "passed"
    MISSED = "missed"
    ANALYSIS = "analysis"


Fact = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True)
class Remark:
    """One decision of one pass."""

    kind: RemarkKind
    id: str
    """Stable, dotted: ``<dialect>.<reason>``."""
    message: str
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    pass_name: str = ""
    """The pass that decided, where one was run by its name."""

    def __str__(self) -> str:
        facts = "".join(f", {key}: {_show(value)}" for key, value in self.facts.items())
        by = f", pass: {self.pass_name}" if self.pass_name else ""
        return f"remark: {self.kind}: [{self.id}] {self.message}{facts}{by}"


def _show(value: Fact) -> str:
    return " -> ".join(value) if isinstance(value, tuple) else str(value)


_collector: ContextVar[list[Remark] | None] = ContextVar("plait_remarks", default=None)
_pass: ContextVar[str] = ContextVar("plait_pass", default="")


def enter(name: str) -> None:
    """From here on remarks are of the pass called ``name``, or of none for the empty name."""
    _pass.set(name)


@contextmanager
def collect() -> Generator[list[Remark], None, None]:
    """Within the ``with`` block, remarks are appended to the list it yields."""
    found: list[Remark] = []
    token = _collector.set(found)
    try:
        yield found
    finally:
        _collector.reset(token)


def wanted() -> bool:
    """Whether anyone is collecting: lets a pass skip work that only a remark needs."""
    return _collector.get() is not None


def _emit(kind: RemarkKind, id: str, message: str, facts: dict[str, Fact]) -> None:
    collector = _collector.get()
    if collector is not None:
        collector.append(Remark(kind, id, message, facts, _pass.get()))


def passed(id: str, message: str, **facts: Fact) -> None:
    """Reports a transformation that was made."""
    _emit(RemarkKind.PASSED, id, message, facts)


def missed(id: str, message: str, **facts: Fact) -> None:
    """Reports a transformation that was declined, with the reason in ``id`` and ``facts``."""
    _emit(RemarkKind.MISSED, id, message, facts)


def analysis(id: str, message: str, **facts: Fact) -> None:
    """Reports a fact that was found, without a decision."""
    _emit(RemarkKind.ANALYSIS, id, message, facts)
