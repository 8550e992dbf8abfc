"""The dialects of plait, by name; each is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.ir import Dialect

_DIALECTS = {"lazy": "Lazy", "fuse": "Fuse", "nest": "Nest"}


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """A factory for each dialect."""

    def factory(name: str, attribute: str) -> Callable[[], Dialect]:
        return lambda: getattr(import_module(f"plait.dialects.{name}"), attribute)

    return {name: factory(name, attribute) for name, attribute in _DIALECTS.items()}
