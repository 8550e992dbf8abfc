"""The driver: options, diagnostics, plugins."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from filecheck_runner import run

ROOT = Path(__file__).parent.parent
PROGRAM = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = lazy.exp %x : tensor<4x8xf32>
  %s = lazy.reduce sum %y axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}
"""
WRONG = """
func.func @main(%x: tensor<4x8xf32>) {
  %y = lazy.reshape %x : tensor<4x8xf32> -> tensor<5xf32>
  return
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def test_passes_as_flags_run_in_order(file: Path) -> None:
    flags = run("plait-opt %s --fuse-form-groups --convert-fuse-to-nest", file)
    spec = run("plait-opt %s -p fuse-form-groups,convert-fuse-to-nest", file)
    assert flags.status == 0 and flags.out == spec.out
    assert "nest.kernel" in flags.out


def test_ir_between_passes_goes_to_stderr(file: Path) -> None:
    result = run("plait-opt %s --pipeline none --convert-fuse-to-nest --print-ir-after-all", file)
    assert result.err.count("IR after") == 2
    assert "IR after" not in result.out
    one = run("plait-opt %s --pipeline seed --print-ir-after fuse-merge-reduces", file)
    assert one.err.count("IR after") == 1


def test_timing_goes_to_stderr(file: Path) -> None:
    result = run("plait-opt %s --pipeline none --timing", file)
    assert "ms  fuse-form-groups" in result.err
    assert "ms" not in result.out


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_remarks_are_written(file: Path, suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"remarks.{suffix}"
    run(f"plait-opt %s --pipeline default --remarks-output-file={out}", file)
    text = out.read_text()
    assert "fuse.group-formed" in text
    if suffix == "json":
        assert {"kind", "pass", "id", "message", "facts"} <= set(json.loads(text)[0])


def test_every_remark_names_its_pass(file: Path) -> None:
    result = run("plait-opt %s --pipeline default --convert-fuse-to-nest --remarks", file)
    plan = run("plait explain %s", file)
    for text in (result.err, plan.out):
        found = [line.partition(", pass: ")[2] for line in text.splitlines()]
        assert "fuse-form-groups" in found and all(found)
    formed = next(line for line in result.err.splitlines() if "fuse.group-formed" in line)
    assert formed.endswith(", pass: fuse-form-groups")


def test_remarks_can_be_filtered(file: Path) -> None:
    every = run("plait-opt %s --pipeline none --remarks", file).err
    none = run("plait-opt %s --pipeline none --remarks=nothing", file).err
    assert "remark:" in every and "remark:" not in none


def test_output_is_whole_or_not_at_all(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mlir"
    out.write_text("before")
    file.write_text(WRONG)
    assert run(f"plait-opt %s -o {out}", file).status == 1
    assert out.read_text() == "before"
    file.write_text(PROGRAM)
    assert run(f"plait-opt %s -o {out}", file).status == 0
    assert "lazy.exp" in out.read_text()


def test_expected_errors_must_appear(file: Path) -> None:
    expected = WRONG.replace("  %y", "  // expected-error@below {{cannot reshape 4x8}}\n  %y")
    command = "plait-opt %s --verify-diagnostics"
    assert run(command, file, expected).status == 0
    for changed in (
        WRONG,
        expected.replace("cannot reshape", "something else"),
        expected.replace("@below", "@above"),
        PROGRAM.replace("  %y", "  // expected-error@below {{nothing}}\n  %y"),
    ):
        result = run(command, file, changed)
        assert result.status == 1
        assert "expected" in result.err


def test_errors_carry_place_and_caret(file: Path) -> None:
    result = run("plait-opt %s", file, WRONG)
    first, line, caret = result.err.splitlines()[:3]
    assert first.endswith(
        ":3:3: error: 'lazy.reshape': cannot reshape 4x8 (32 elements) to 5 (5 elements)"
    )
    assert line.strip().startswith("%y = lazy.reshape")
    assert caret == "  ^"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"", ""),
        (b"func.func @f(", "error:"),
        (b"%0 = other.op", "error:"),
    ],
)
def test_odd_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "odd.mlir"
    path.write_bytes(content)
    result = run("plait-opt %s", path)
    assert result.status == (1 if message else 0)
    assert message in result.err and "Traceback" not in result.err


def test_loading_a_broken_file_says_where(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("x = 1\nraise ValueError('no')\n")
    result = run(f"plait-opt %s --load {path}", file)
    assert f"{path}:2: error: ValueError: no" in result.err
    path.write_text("x = 1\n")
    assert "defines no pass" in run(f"plait-opt %s --load {path}", file).err


def installed(folder: Path) -> dict[str, str]:
    """An environment in which the example package is installed."""
    info = folder / "custom_pass-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: custom-pass\nVersion: 0.1.0\n")
    entry = "[xdsl.universe]\ncustom_pass = custom_pass:UNIVERSE\n"
    (info / "entry_points.txt").write_text(entry)
    paths = [str(folder), str(ROOT / "examples/custom_pass")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.parametrize("tool", ["plait-opt", "xdsl-opt"])
def test_installed_plugins_are_found(tool: str, tmp_path: Path, file: Path) -> None:
    command = [str(Path(sys.executable).parent / tool), str(file), "-p", "custom-store-activations"]
    environment = installed(tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "lazy.reduce" in done.stdout
    if tool == "plait-opt":
        listed = subprocess.run(
            [command[0], "--list-passes"], capture_output=True, text=True, env=environment
        )
        assert "custom-store-activations " in listed.stdout


def test_starts_fast() -> None:
    command = [str(Path(sys.executable).parent / "plait-opt"), "--help"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, capture_output=True, check=True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 1.0


BREAKS_EXP = """
from dataclasses import dataclass
from xdsl.passes import ModulePass
from plait.dialects import lazy

@dataclass(frozen=True)
class CustomBreakPass(ModulePass):
    '''Takes every exp for a log.'''

    name = "custom-break"

    def apply(self, ctx, op):
        for inner in [i for i in op.walk() if isinstance(i, lazy.ExpOp)]:
            wrong = lazy.Exp2Op(inner.operand)
            inner.parent.insert_op_before(wrong, inner)
            inner.result.replace_all_uses_with(wrong.result)
            inner.detach()
            inner.erase()
"""


def test_check_semantics(file: Path, tmp_path: Path) -> None:
    good = run("plait-opt %s --check-semantics --pipeline default --convert-fuse-to-nest", file)
    assert good.status == 0, good.err
    wrong = tmp_path / "wrong.py"
    wrong.write_text(BREAKS_EXP)
    command = f"plait-opt %s --load {wrong} --check-semantics -p lazy-simplify,custom-break"
    bad = run(f"{command},fuse-form-groups", file)
    assert bad.status == 1
    assert "pass 'custom-break' changed result 0 of @main: relative error" in bad.err


@pytest.mark.parametrize("attribute", ['"open', '"escape \\q"', '"end \\"', '"', '"break\n"'])
def test_a_broken_string_is_an_error_with_its_place(attribute: str, tmp_path: Path) -> None:
    path = tmp_path / "string.mlir"
    path.write_text(f'"a.b"() {{x = "fine \\" \\n \\4f", y = {attribute} {"c" * 5000}}} // note')
    for tool in ("plait-opt", "plait report"):
        result = run(f"{tool} %s", path)
        assert result.status == 1
        assert f"{path}:1:36: error: expected a string that is closed" in result.err


def test_marks_in_comments_and_closed_strings_are_no_errors(tmp_path: Path) -> None:
    path = tmp_path / "string.mlir"
    path.write_text('// "a comment\n"a.b"() {x = "// no comment", y = "\\\\"} : () -> () // "\n')
    result = run("plait-opt %s --allow-unregistered-dialect", path)
    assert (result.status, result.err) == (0, "")


FAILS = """
from xdsl.passes import ModulePass

class CustomFailPass(ModulePass):
    '''Fails.'''

    name = "custom-fail"

    def apply(self, ctx, op):
        return {}["kernel"]
"""


def test_a_loaded_pass_is_listed_and_its_failure_names_it(file: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "fails.py"
    plugin.write_text(FAILS)
    listed = run(f"plait-opt --list-passes --load {plugin}", file)
    assert "custom-fail                      Fails.\n" in listed.out
    failed = run(f"plait-opt %s --load {plugin} -p fuse-form-groups,custom-fail", file)
    assert failed.status == 1
    assert failed.err == (
        f"{file}: error: pass 'custom-fail' failed: KeyError: 'kernel' at {plugin}:10; "
        "--debug shows the traceback\n"
    )
    with pytest.raises(KeyError):
        run(f"plait-opt %s --load {plugin} -p custom-fail --debug", file)


USAGE = {
    "plait-opt %s '--remarks=['": "error: --remarks: '[' is no regular expression",
    "plait-opt %s --print-ir-after fuse-sweep": "unknown pass 'fuse-sweep'; did you mean 'fuse-s",
    "plait-opt %s --print-ir-after fuse-sweeps": "pass 'fuse-sweeps' is not among those that run",
    "plait-opt %s --remark": "plait-opt: error: ",
    "plait-opt %s --timings": "did you mean '--timing'?; see 'plait-opt --help'",
    "plait-opt %s -p fuse-sweep": "unknown pass 'fuse-sweep'; did you mean 'fuse-sweeps'?",
    "plait-opt %s -p 'fuse-sweeps{'": "--passes 'fuse-sweeps{', column 13: Expected argument name",
    "plait-opt %s -p 'fuse-sweeps{x=1}'": "pass 'fuse-sweeps': Provided arguments [\"x\"]",
    "plait-opt %s -t cud": "invalid choice: 'cud'",
    "plait-opt %s -t 'cuda{'": "--target 'cuda{', column 6: Expected argument name",
    "plait-opt %s -t 'cuda{x=1}'": "target 'cuda': Provided arguments",
    "plait-opt %s -o": "expected one argument; see 'plait-opt --help'",
    "plait-opt %s --load": "option --load needs a value",
    "plait-opt %s --pipeline best": "unknown pipeline 'best': expected one of none",
    "plait-opt %s more": "unrecognized arguments: more",
    "plait": "plait: error: the following arguments are required: COMMAND; see 'plait --help'",
    "plait reprot %s": "plait: error: argument COMMAND: invalid choice: 'reprot'",
    "plait report": "plait report: error: the following arguments are required: PROG; see",
    "plait report %s --jsn": "plait report: error: unrecognized arguments: --jsn; did you mean '--",
    "plait run %s --backend tpu": "invalid choice: 'tpu'",
    "plait run %s --seed x": "expected a number from 0 on, found 'x'",
    "plait bench speed": "invalid choice: 'speed'",
}


@pytest.mark.parametrize("command", USAGE)
def test_usage_errors_are_one_line(command: str, file: Path) -> None:
    result = run(command, file)
    assert (result.status, result.out) == (2, "")
    assert USAGE[command] in result.err and result.err.count("\n") == 1


@pytest.mark.parametrize("command", ["plait --debug report {}", "plait report {} --debug"])
def test_debug_shows_the_traceback_wherever_it_stands(command: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("def main():\n    return 1\n")
    from plait.errors import PlaitError

    with pytest.raises(PlaitError):
        run(command.format("%s"), path)
    assert run("plait report %s", path).status == 1


@pytest.mark.parametrize("tool", ["plait-opt", "plait"])
def test_version(tool: str, file: Path) -> None:
    assert run(f"{tool} --version", file).out.startswith("plait 0.")


WRONG_LEVEL = {
    "fuse-sweeps": "works on 'fuse' operations, found only 'lazy': run fuse-form-groups before it",
    "nest-schedule": "found only 'lazy': run fuse-form-groups, convert-fuse-to-nest before it",
    "convert-nest-to-gpu": "run fuse-form-groups, convert-fuse-to-nest before it",
    "fuse-form-groups,convert-nest-to-loops": "run convert-fuse-to-nest before it",
    "fuse-form-groups,convert-fuse-to-nest,fuse-sweeps": "found only 'nest': it comes before them",
    "fuse-form-groups,convert-fuse-to-nest,lazy-simplify": "found only 'nest': it comes before",
}


@pytest.mark.parametrize("passes", WRONG_LEVEL)
def test_a_pass_at_the_wrong_level_says_so(passes: str, file: Path) -> None:
    result = run(f"plait-opt %s -p {passes}", file)
    assert result.status == 0
    assert f"{file}: warning: pass '{passes.split(',')[-1]}' has nothing to do: " in result.err
    assert WRONG_LEVEL[passes] in result.err and result.err.count("\n") == 1
    empty = run(f"plait-opt %s -p {passes}", file, "func.func private @f()")
    assert (empty.status, empty.err) == (0, "")


@pytest.mark.parametrize("name", ["llvm", "plait-llvm"])
def test_the_llvm_target_has_one_meaning_under_both_names(name: str, file: Path) -> None:
    passes = "fuse-form-groups,convert-fuse-to-nest,convert-nest-to-loops"
    result = run(f"plait-opt %s -p {passes} -t {name}", file)
    assert result.status == 0 and "define void @" in result.out
