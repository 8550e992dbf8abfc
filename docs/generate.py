"""Writes ``docs/passes.md`` from the docstrings of the passes: ``python docs/generate.py``."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

from plait.lowering import get_all_passes as lowerings
from plait.passes import get_all_passes as passes
from plait.passes.pipelines import PIPELINES

TARGET = Path(__file__).parent / "passes.md"


def catalogue() -> str:
    """The text of the catalogue."""
    lines = [
        "# Passes",
        "",
        "Generated from the docstrings of the passes by `python docs/generate.py`.",
        "",
        "## Pipelines",
        "",
    ]
    lines += [
        f"- `{name}`: {', '.join(f'`{p}`' for p in list_)}" for name, list_ in PIPELINES.items()
    ]
    for name, factory in sorted({**passes(), **lowerings()}.items()):
        cls = factory()
        lines += ["", f"## `{name}`", "", inspect.cleandoc(cls.__doc__ or "")]
        fields = [f for f in dataclasses.fields(cls) if f.name != "name"]
        if fields:
            lines += ["", "Options:", ""]
            lines += [f"- `{f.name.replace('_', '-')}` (default `{f.default}`)" for f in fields]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(catalogue())
