"""The passes over ``lazy``, ``fuse`` and ``nest``, by name; each is loaded when it is first used.

One pass is one file: the pass ``fuse-merge-reduces`` is ``FuseMergeReducesPass`` in
``fuse_merge_reduces``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.passes import ModulePass

PassFactory = Callable[[], type[ModulePass]]

_PASSES = (
    "fuse-check-bijective-loads",
    "fuse-contraction-chains",
    "fuse-cross-axis-reduces",
    "fuse-elementwise-reduce",
    "fuse-form-groups",
    "fuse-group-crossing-dag",
    "fuse-horizontal",
    "fuse-optimal",
    "fuse-merge-reduces",
    "fuse-plan-memory",
    "fuse-sweeps",
    "lazy-simplify",
    "nest-schedule",
)


def factories(package: str, names: tuple[str, ...]) -> dict[str, PassFactory]:
    """A factory for each pass of a package, found by its name."""

    def factory(name: str) -> PassFactory:
        cls = "".join(word.capitalize() for word in name.split("-")) + "Pass"
        return lambda: getattr(import_module(f"{package}.{name.replace('-', '_')}"), cls)

    return {name: factory(name) for name in names}


def get_all_passes() -> dict[str, PassFactory]:
    """A factory for each pass."""
    return factories("plait.passes", _PASSES)
