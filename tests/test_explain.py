"""``plait explain PROG A B``: why two kernels are not one."""

from __future__ import annotations

import re
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


CHAIN = """
import plait

def main():
    x = plait.empty(64, 512)
    y = (x.softmax(1) @ plait.empty(512, 512)).relu()
    return [y.sum(0), y.softmax(0), (y - y.mean()).var(), plait.empty(7, 3).exp(), x.sum(1)]
"""


@pytest.fixture
def chain(tmp_path: Path) -> str:
    path = tmp_path / "chain.py"
    path.write_text(CHAIN)
    return str(path)


def test_decisions_are_not_repeated_and_do_not_contradict_the_plan(
    chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", chain, "--kernels"]) == 0
    kernels = capsys.readouterr().out.split("bytes\n")[-1].splitlines()[1:]
    names = {line.split()[0] for line in kernels}
    assert main(["explain", chain, "--filter", "missed"]) == 0
    pairs = re.findall(r"'(\S+)' and '(\S+)' stay two kernels", capsys.readouterr().out)
    assert pairs and all(a != b and {a, b} <= names for a, b in pairs)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    for a, b in pairs:
        assert main(["explain", chain, a, b]) == 0
        out = capsys.readouterr().out
        assert "are two kernels" in out and out.count("stay two kernels") == 0


def test_one_kernel(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", program, "sum_1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and "kernel 'sum_1' stores a value" in lines[0]
    assert "'sum_0' and 'sum_1' stay two kernels" in lines[1]
    for wrong in ("sum", "sum_", "sum_1+7", "sum_9"):
        assert main(["explain", program, wrong]) == 1
        known = "found sum_0, sum_1, map_2"
        assert capsys.readouterr().err == f"error: no kernel '{wrong}' in the plan: {known}\n"


def test_a_kernel_under_an_earlier_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "softmax.py"
    path.write_text("import plait\n\ndef main():\n    return plait.empty(64, 8).softmax(1)\n")
    assert main(["explain", str(path), "sum_1"]) == 0
    assert "'sum_1' is part of 'max_0+" in capsys.readouterr().out
