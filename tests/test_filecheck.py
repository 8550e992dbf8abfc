"""Every FileCheck test, in this process; and a check of the checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from filecheck_runner import run, run_lines

ROOT = Path(__file__).parent.parent
FILES = sorted([*(ROOT / "filecheck").rglob("*.mlir"), *(ROOT / "examples").rglob("*.mlir")])
CASES = [(path, line) for path in FILES for line in run_lines(path)]


def name(value: object) -> str:
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else ""


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(("path", "line"), CASES, ids=name)
def test_filecheck(path: Path, line: str) -> None:
    result = run(line, path)
    assert result.status == 0, f"{line}\n{result.err or result.out}"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_file_checks_something(path: Path) -> None:
    lines = run_lines(path)
    assert lines, "a test without a RUN line"
    checks = re.search(r"^\s*//\s*[A-Z][A-Z0-9_-]*: ", path.read_text().replace("RUN:", ""), re.M)
    reads = any("filecheck" in line for line in lines)
    assert bool(checks) == reads, "checks that nothing reads, or nothing to check"
    assert reads or any("--verify-diagnostics" in line for line in lines), "checks nothing"


@pytest.mark.parametrize(
    ("path", "line"), [c for c in CASES if "--verify-diagnostics" in c[1]], ids=name
)
def test_diagnostics_are_needed(path: Path, line: str) -> None:
    """Without its expectations a test of diagnostics fails."""
    source = re.sub(r"//\s*expected-\w+.*", "", path.read_text())
    assert run(line, path, source).status != 0
