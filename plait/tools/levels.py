"""Notices passes that have nothing to work on, as the program is at another level."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

WORKS_ON = {
    "lazy": ("lazy",),
    "fuse": ("fuse",),
    "nest": ("nest",),
    "fuse-form-groups": ("lazy", "fuse"),
    "convert-nest-to-loops": ("nest",),
    "convert-nest-to-gpu": ("nest",),
}
"""The dialects that a pass works on, by its name or the first word of it. What is not here says
itself what it expects."""

_BEFORE = {"lazy": "fuse-form-groups", "fuse": "convert-fuse-to-nest"}
"""The pass that leaves a level for the next."""
_ORDER = ("lazy", "fuse", "nest")


def complaint(name: str, module: ModuleOp) -> str | None:
    """Why a pass has nothing to do in a module: it holds other levels than the pass works on."""
    wanted = WORKS_ON.get(name) or WORKS_ON.get(name.split("-")[0])
    if wanted is None:
        return None
    found = {op.name.split(".")[0] for op in module.walk()} & set(_ORDER)
    if not found or found & set(wanted):
        return None
    if "lazy" in wanted or max(map(_ORDER.index, found)) > _ORDER.index(wanted[0]):
        advice = "it comes before them"
    else:
        last = max(map(_ORDER.index, found))
        steps = [_BEFORE[level] for level in _ORDER[last : _ORDER.index(wanted[0])]]
        advice = f"run {', '.join(steps)} before it"
    have = ", ".join(sorted(f"'{level}'" for level in found))
    return (
        f"pass '{name}' has nothing to do: it works on '{wanted[0]}' operations, found only "
        f"{have}: {advice}"
    )
