"""The generated documentation is up to date, and its examples are programs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from filecheck_runner import run

from plait.lowering import get_all_passes as lowerings
from plait.passes import get_all_passes as passes

ROOT = Path(__file__).parent.parent
PASSES = {**passes(), **lowerings()}


def test_catalogue_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "passes.md").read_text() == module.catalogue()


def programs(name: str) -> tuple[str, str | None]:
    """The example of a pass before it, and after it where the docstring shows all of that."""
    text = PASSES[name]().__doc__ or ""
    before, _, after = text.partition("After")
    blocks = [re.search(r"```mlir\n(.*?)```", part, re.S) for part in (before, after)]
    whole = [block.group(1) if block is not None else "" for block in blocks]
    is_whole = after.startswith(":") and "..." not in whole[1]
    return whole[0], whole[1] if is_whole and is_program(whole[1]) else None


def is_program(text: str) -> bool:
    return text.strip().startswith(("func.func", "nest.kernel"))


WHOLE = sorted(name for name in PASSES if is_program(programs(name)[0]))


def test_every_pass_shows_an_example() -> None:
    assert all("```mlir" in (PASSES[name]().__doc__ or "") for name in PASSES)
    assert len(WHOLE) >= 3


@pytest.mark.parametrize("name", WHOLE)
def test_example_runs(name: str, tmp_path: Path) -> None:
    before, after = programs(name)
    file = tmp_path / "before.mlir"
    file.write_text(before)
    result = run(f"plait-opt %s -p {name}", file)
    assert result.status == 0, result.err
    if after is not None:
        file.write_text(after)
        want = run("plait-opt %s", file)
        assert want.status == 0, want.err
        assert result.out == want.out
