"""``plait compare tinygrad``: bytes of tinygrad's kernels, held against enumeration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_programs import PROGRAMS
from tinygrad import Tensor

from plait.tools import cli
from plait.tools.loading import import_file
from plait.tools.tinygrad_kernels import schedule_of, scheduled, to_compute

ENUMERATED = [
    "elementwise",
    "broadcasting",
    "kept_in_memory",
    "padding",
    "joins",
    "sums",
    "matrix_product",
    "convolution",
    "pooling",
    "softmax",
    "layer_norm",
    "scans",
    "assigned_in_part",
]
ROOT = Path(__file__).parent.parent.parent


def value(uop: Any, at: dict[Any, int]) -> Any:
    """An index expression at one point; None where a mask says that nothing is read."""
    if uop.op.name == "RANGE":
        return at[uop]
    if uop.op.name == "CONST":
        return uop.arg if isinstance(uop.arg, int) else None
    sources = [value(source, at) for source in uop.src]
    match uop.op.name:
        case "ADD":
            return sources[0] + sources[1]
        case "MUL":
            return sources[0] * sources[1]
        case "FLOORDIV":
            return sources[0] // sources[1]
        case "FLOORMOD":
            return sources[0] % sources[1]
        case "CMPLT":
            return sources[0] < sources[1]
        case "CMPNE":
            return sources[0] != sources[1]
        case "CMPEQ":
            return sources[0] == sources[1]
        case "AND":
            return sources[0] and sources[1]
        case "OR":
            return sources[0] or sources[1]
        case "CAST":
            return sources[0]
        case "WHERE":
            return sources[1] if sources[0] else sources[2]
        case name:
            raise AssertionError(name)


def points(ranges: list[Any]) -> Iterator[dict[Any, int]]:
    extents = [range(uop.src[0].arg) for uop in ranges]
    assert prod(map(len, extents)) < 200_000
    for indices in product(*extents):
        yield dict(zip(ranges, indices, strict=True))


def enumerated(call: Any) -> tuple[int, int]:
    """Bytes that a kernel reads and writes, by listing all its indices."""
    uops = list(call.src[0].toposort())
    stores = {uop.src[0] for uop in uops if uop.op.name == "STORE"}
    touched: tuple[set[Any], set[Any]] = (set(), set())
    for access in (uop for uop in uops if uop.op.name == "INDEX"):
        buffer = call.src[1 + access.src[0].arg.slot]
        ranges = [uop for uop in access.src[1].toposort() if uop.op.name == "RANGE"]
        for at in points(ranges):
            position = value(access.src[1], at)
            if position is not None:
                touched[access in stores].add((buffer, position, access.dtype.itemsize))
    read, written = (sum(size for _, _, size in found) for found in touched)
    return read, written


@pytest.mark.parametrize("name", ENUMERATED)
def test_bytes_are_those_of_the_elements_touched(name: str) -> None:
    made = PROGRAMS[name]()
    linear, seconds = scheduled(to_compute(made if isinstance(made, tuple) else (made,)))
    calls = [call for call in linear.src if call.src[0].op.name == "SINK"]
    schedule = schedule_of(linear)
    assert len(schedule.kernels) == len(calls) > 0 and seconds > 0
    for call, kernel in zip(calls, schedule.kernels, strict=True):
        read, written = enumerated(call)
        assert kernel.written == written
        assert kernel.read == read
        assert kernel.exact


def test_known_counts() -> None:
    linear, _ = scheduled([Tensor.empty(64, 64).softmax()])
    schedule = schedule_of(linear)
    matrix, column = 64 * 64 * 4, 64 * 4
    assert len(schedule.kernels) == 3 and schedule.exact
    assert schedule.read == 3 * matrix + 3 * column
    assert schedule.written == matrix + 2 * column


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    file = ROOT / "examples" / "tinygrad_block.py"
    assert cli.main(["compare", "tinygrad", f"{file}:softmax", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plait"]["kernels"] < found["tinygrad"]["kernels"]
    assert found["plait"]["bytes"] == found["lower_bound_bytes"] < found["tinygrad"]["bytes"]
    assert cli.main(["compare", "tinygrad", f"{file}:softmax"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:2] == ["plait", "1"] and lines[3].split()[:2] == ["tinygrad", "3"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "no function 'main': expected one that returns tensors"),
        ("def main(): return 3", "expected tinygrad tensors, found 3"),
        (
            "from tinygrad import Tensor\ndef main(): return Tensor.empty(3)",
            "nothing to compare: tinygrad holds these tensors already",
        ),
    ],
)
def test_mistakes_are_one_line(
    source: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "program.py"
    file.write_text(source)
    assert cli.main(["compare", "tinygrad", str(file)]) != 0
    error = capsys.readouterr().err.strip()
    assert message in error and "\n" not in error


def test_documented_program_runs() -> None:
    text = (ROOT / "docs" / "tinygrad.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", text, re.S)
    scope: dict[str, Any] = {}
    exec(code, scope)
    np.testing.assert_allclose(scope["result"], np.full((4, 8), 1 / 8), rtol=1e-6)


def test_every_documented_command_is_there() -> None:
    text = (ROOT / "docs" / "tinygrad.md").read_text()
    files = re.findall(r"(?:examples|benchmarks)/\w+\.py", text)
    assert len(files) >= 4 and all((ROOT / file).is_file() for file in files)


def test_schedule_time(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = import_file(str(ROOT / "benchmarks" / "schedule_time.py"))
    program = f"{ROOT / 'examples' / 'tinygrad_block.py'}:softmax"
    monkeypatch.setattr("sys.argv", ["schedule_time.py", program, "--runs", "2", "--json"])
    assert benchmark.main() == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["plan_seconds"]) == len(result["schedule_seconds"]) == 2
    assert result["ratio"] > 0
    assert result["kernels"] == {"plait": 1, "tinygrad": 3}
