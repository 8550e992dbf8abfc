"""Mistakes in a user's program are one line that says where, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import plait
from plait.tools.cli import main
from plait.tools.opt import main as opt

HEAD = "import plait\n\ndef main():\n    "
CASES = {
    "return plait.empty(4, 8).sofmax()": "program.py:4: error: AttributeError: ",
    "return undefined": "program.py:4: error: NameError: name 'undefined' is not defined",
    "return plait.empty(4, 8) + plait.empty(3, 8)": "program.py:4: error: shapes ",
    "return plait.empty(1 // 0)": "program.py:4: error: ZeroDivisionError: ",
    "return None": "program.py:main: expected tensors as its result, found None",
}


@pytest.mark.parametrize("body", CASES)
@pytest.mark.parametrize("command", ["report", "run", "explain"])
def test_errors_in_a_program(
    body: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(HEAD + body + "\n")
    assert main([command, str(path)]) == 1
    err = capsys.readouterr().err
    assert CASES[body] in err and len(err.splitlines()) == 1


def test_a_program_of_another_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nest.mlir"
    path.write_text(
        "func.func @main(%x: memref<4xf32>) -> memref<4xf32> {\n  func.return %x : memref<4xf32>\n}"
    )
    assert main(["report", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ") and len(err.splitlines()) == 1


def test_text_that_is_no_ir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "heading.mlir"
    path.write_text("# a heading\n")
    assert main(["report", str(path)]) == 1
    assert opt([str(path)]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_cuda_text_of_a_tensor_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = lazy.exp %x : tensor<4xf32>\n  func.return %0 : tensor<4xf32>\n}"
    )
    assert opt([str(path), "-t", "cuda"]) == 1
    assert "run convert-fuse-to-nest" in capsys.readouterr().err


def test_an_unknown_target_is_refused_at_once() -> None:
    with pytest.raises(plait.PlaitError, match="unknown target 'cud'"):
        plait.schedule(plait.empty(2).exp(), target="cud")


FUNCTION = """func.func @NAME(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = lazy.exp %x : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("command", ["report --json", "run --check --backend numpy", "explain"])
def test_files_of_several_functions(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program is @main, or the only function; it is never unclear which."""
    path = tmp_path / "program.mlir"
    outputs: list[str] = []
    for names in (["main"], ["other"], ["other", "main"]):
        path.write_text("".join(FUNCTION.replace("NAME", name) for name in names))
        assert main([*command.split(), str(path)]) == 0
        outputs.append(re.sub(r"\d+\.\d+ m?s", "", capsys.readouterr().out))
    assert outputs[0] and outputs[0] == outputs[1] == outputs[2]
    for names in ([], ["f", "g"]):
        path.write_text("".join(FUNCTION.replace("NAME", name) for name in names))
        assert main([*command.split(), str(path)]) == 1
        found = ", ".join(f"@{name}" for name in names) or "none"
        expected = "expected a function @main, or a single one"
        assert capsys.readouterr().err == f"error: {path}: {expected}, found {found}\n"


def test_a_call_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.mlir"
    call = "%0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>"
    caller = FUNCTION.replace("NAME", "main").replace("%0 = lazy.exp %x : tensor<4xf32>", call)
    path.write_text(FUNCTION.replace("NAME", "f") + caller)
    assert main(["report", str(path)]) == 1
    assert capsys.readouterr().err == f"{path}:6:3: error: expected a function without calls\n"


def test_bench_without_its_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "conformance", "--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit, match="0"):
        main(["bench", "--help"])
    assert "exit status is 0" in capsys.readouterr().out
