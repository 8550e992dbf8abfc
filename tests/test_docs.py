"""The generated documentation is up to date, and its examples are programs."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from filecheck_runner import run

from plait.lowering import get_all_passes as lowerings
from plait.passes import get_all_passes as passes

ROOT = Path(__file__).parent.parent
PASSES = {**passes(), **lowerings()}


def loaded(path: str) -> Any:
    """A script of the repository as a module."""
    sys.path.insert(0, str((ROOT / path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


def test_catalogue_is_up_to_date() -> None:
    assert (ROOT / "docs" / "passes.md").read_text() == loaded("docs/generate.py").catalogue()


def test_the_table_of_the_readme_is_what_was_measured() -> None:
    measured = json.loads((ROOT / "benchmarks" / "results" / "cpu.json").read_text())
    assert loaded("benchmarks/peers.py").table(measured) in (ROOT / "README.md").read_text()


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


PAGES = ["README.md", "docs/fusion.md", "docs/torch.md", "examples/custom_pass/README.md"]
SLOW = ("bench conformance", "sweep.py")
"""Commands of more than ten seconds."""
ELSEWHERE = ("make ", "pip install")
"""Commands that make the environment that the tests run in."""
TORCH = ("model.mlir", "model.py", "sweep.py")
"""Commands that need PyTorch."""
MODEL = """
import torch

def make():
    return torch.nn.Linear(4, 3), torch.randn(2, 4)
"""


def commands(page: str) -> list[str]:
    """The commands of a page: lines of an indented or a console block that start with a program."""
    text = (ROOT / page).read_text()
    fenced = re.findall(r"^```(?:console|sh|bash)\n(.*?)^```", text, re.S | re.M)
    indented = re.findall(r"^    (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    lines = "\n".join([*"".join(fenced).splitlines(), *indented]).replace("\\\n", " ").splitlines()
    plain = [re.sub(r"\s+", " ", re.split(r"\s#\s", line)[0]).strip() for line in lines]
    program = r"(\$ )?(\.venv/bin/)?(plait|plait-opt|python|pip|make)\s"
    return [line.removeprefix("$ ") for line in plain if re.match(program, line)]


def shown() -> list[Any]:
    """Every command of every page, each with the marks it needs."""
    found: list[Any] = []
    for page in PAGES:
        assert commands(page), page
        for command in commands(page):
            if command.startswith(ELSEWHERE):
                continue
            marks = [pytest.mark.slow] if any(word in command for word in SLOW) else []
            if any(word in command for word in TORCH):
                marks.append(pytest.mark.torch)
            found.append(pytest.param(page, command, marks=marks, id=command))
    return found


@pytest.mark.parametrize(("page", "command"), shown())
def test_commands_run_as_written(page: str, command: str, tmp_path: Path) -> None:
    """Each runs in a copy of the folder that its page is about, with the programs installed."""
    if any(word in command for word in TORCH):
        pytest.importorskip("expecttest" if "sweep.py" in command else "torch")
    folder = ROOT / page if page.startswith("examples") else ROOT / "README.md"
    for entry in folder.parent.iterdir():
        if entry.name not in (".venv", "out"):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "model.py").write_text(MODEL)
    programs = Path(sys.executable).parent
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(programs)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    earlier = [each for each in commands(page) if "-o model.mlir" in each and each != command]
    script = " && ".join([*(earlier if "report model.mlir" in command else []), command])
    done = subprocess.run(
        script, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr and (done.stdout or "-o " in command)


def test_python_blocks_of_the_readme_run() -> None:
    """Those that need no PyTorch; what they print is not looked at."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M)
    plain = [block for block in blocks if "torch" not in block]
    assert plain
    for block in plain:
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(block, "README.md", "exec"), {})
        assert out.getvalue()
