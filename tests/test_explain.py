"""``plait explain PROG A B``: why two kernels are not one."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.tools.cli import main

PROGRAM = """
import plait

def main():
    x = plait.empty(64, 16384, 2)
    y = plait.empty(16384, 2)
    rows = x.sum(2)
    return [(rows.unsqueeze(2) * y).sum(1), plait.empty(7, 3).exp()]
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_the_reason_the_path_the_saving_and_what_is_needed(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", program, "sum_0", "sum_1"]) == 0
    out = capsys.readouterr().out
    assert "path:   sum_0 -> sum_1\n" in out
    assert "reason: [fuse.row-too-long]" in out and "bytes: 65536\n" in out
    assert "saving: 8,388,608 bytes of memory traffic and one launch" in out
    assert "needed: shorter rows" in out


def test_kernels_that_share_nothing(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", program, "sum_0", "map_2"]) == 0
    out = capsys.readouterr().out
    assert "none: neither needs the other" in out and "[fuse.saves-nothing]" in out


def test_an_unknown_kernel_names_those_there_are(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", program, "sum_0", "sum_9"]) != 0
    err = capsys.readouterr().err
    assert err == "error: no kernel 'sum_9' in the plan: found sum_0, sum_1, map_2\n"


def test_merged_kernels_say_by_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "softmax.py"
    path.write_text("import plait\n\ndef main():\n    return plait.empty(64, 8).softmax(1)\n")
    assert main(["explain", str(path), "max_0", "sum_1"]) == 0
    assert "are one kernel" in capsys.readouterr().out
