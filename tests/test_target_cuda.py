"""The CUDA C text: names, literals, index widths, and what it refuses."""

from __future__ import annotations

import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from gpu_kernels import extremes, parse, program
from test_convert_nest_to_gpu import CUT
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    ModuleOp,
)
from xdsl.ir import Attribute
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException

from plait.lowering.convert_nest_to_gpu import ConvertNestToGpuPass
from plait.lowering.cuda_types import literal
from plait.lowering.target_cuda import print_module
from plait.runtime.cuda_sim import CompiledPlan

MLIR_OPT = shutil.which("mlir-opt-19") or shutil.which("mlir-opt")

COPY = """axes [%i = 4] {
  %v = nest.load %x[(d0) -> (d0)](%i) : <x>
  nest.store %v, %o[(d0) -> (d0)](%i) : <o>
}"""
SUM = """axes [] {
  %s = nest.reduce [sum] over [%i = ROWS, %j = COLUMNS] {
    %p = nest.index (d0, d1) -> (d0 * COLUMNS + d1) (%i, %j)
    %n = arith.index_cast %p : index to i64
    nest.yield %n : i64
  } : i64
  nest.store %s, %o[() -> ()]() : <o>
}"""
SCATTER = """axes [] {
  nest.sequential over [%j = 3] {
    %n = nest.load %x[(d0) -> (d0)](%j) : <x>
    %p = arith.index_cast %n : i64 to index
    nest.store %n, %o[(d0) -> (d0)](%p) where (d0) : (d0 >= 0, 7 - d0 >= 0) : <o>
  }
}"""


def cuda(kernel: str, inputs: dict[str, str], outputs: dict[str, str], name: str = "k") -> str:
    text = program(kernel, inputs, outputs).replace("@k", f"@{name}")
    module, ctx = parse(text)
    ConvertNestToGpuPass().apply(ctx, module)
    return print_module(module)


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (0.1, Float32Type(), "0.1f"),
        (1.0, Float32Type(), "1.0f"),
        (-0.0, Float32Type(), "-0.0f"),
        (16777217.0, Float64Type(), "16777217.0"),
        (1e22, Float64Type(), "1e+22"),
        (float(np.float32(1e-45)), Float32Type(), "1e-45f"),
        (float("-inf"), Float32Type(), "-INFINITY"),
        (float("nan"), Float64Type(), "(double)NAN"),
        (1.5, Float16Type(), "__float2half_rn(1.5f)"),
        (1.5, BFloat16Type(), "__float2bfloat16_rn(1.5f)"),
        (-1, IntegerType(1), "true"),
        (-(2**31), IntegerType(32), "(-2147483647 - 1)"),
        (-(2**63), IntegerType(64), "(-9223372036854775807LL - 1)"),
        (-128, IntegerType(8), "-128"),
    ],
)
def test_literals(value: float, type: Attribute, text: str) -> None:
    assert literal(value, type) == text


def test_float_literals_read_back() -> None:
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**31, 500).astype(np.uint32)
    for value in bits.view(np.float32):
        if np.isfinite(value):
            text = literal(float(value), Float32Type())
            assert np.float32(text.removesuffix("f")) == value


def test_text_is_the_same_each_time() -> None:
    texts = {cuda(COPY, {"x": "memref<4xf32>"}, {"o": "memref<4xf32>"}) for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize("name", ["signed", "exp", "threadIdx"])
def test_words_of_the_language_are_no_names(name: str) -> None:
    kernel = COPY.replace("%x", f"%{name}").replace("<x>", f"<{name}>")
    kernel = kernel.replace("nest.store %v", "%e = math.exp %v : f64\n nest.store %e")
    text = cuda(kernel, {name: "memref<4xf64>"}, {"o": "memref<4xf64>"})
    assert f"const double* __restrict__ {name}0," in text
    assert "= exp(" in text


@pytest.mark.parametrize("name", ["double", "exp", '"a.b"'])
def test_kernels_with_names_that_cannot_be(name: str) -> None:
    with pytest.raises(DiagnosticException, match="cannot be called"):
        cuda(COPY, {"x": "memref<4xf32>"}, {"o": "memref<4xf32>"}, name)


@pytest.mark.parametrize(("rows", "wide"), [(2**15 - 2, False), (2**16, True)])
def test_indices_are_as_wide_as_the_space(rows: int, wide: bool) -> None:
    kernel = SUM.replace("ROWS", str(rows)).replace("COLUMNS", str(2**16))
    text = cuda(kernel, {}, {"o": "memref<i64>"})
    assert ("long long thread" in text) == wide


def test_indices_are_as_wide_as_the_buffers() -> None:
    kernel = COPY.replace("(d0) -> (d0)](%i) : <x>", "(d0) -> (d0, 70000)](%i) : <x>")
    for rows, wide in ((4, False), (2**15, True)):
        text = cuda(kernel, {"x": f"memref<{rows}x{2**17}xf32>"}, {"o": "memref<4xf32>"})
        assert ("long long thread" in text) == wide


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_position_beyond_32_bits_is_not_one_within() -> None:
    module, ctx = parse(program(SCATTER, {"x": "memref<3xi64>"}, {"o": "memref<8xi64>"}))
    ConvertNestToGpuPass().apply(ctx, module)
    [found] = CompiledPlan(module).run(np.array([2**32 + 5, 3, -(2**32) + 1]))
    np.testing.assert_array_equal(found, [0, 0, 0, 3, 0, 0, 0, 0])


def test_kernels_of_an_earlier_level() -> None:
    module, _ = parse(program(COPY, {"x": "memref<4xf32>"}, {"o": "memref<4xf32>"}))
    with pytest.raises(DiagnosticException, match="convert-nest-to-gpu first"):
        print_module(module)


def level_4(reduction: str) -> ModuleOp:
    """Several reductions, cut over blocks or not, with values that nothing reads."""
    schedule = f'attributes {{schedule = #nest.schedule<"cuda:sm_80", {reduction}>}}'
    kernel = CUT.replace("POINTS", "3").replace("SCHEDULE", schedule)
    outputs = {"o": "memref<3x30x20xf32>", "q": "memref<3xi32>"}
    module, ctx = parse(program(kernel, {"x": "memref<3x30x20xf32>"}, outputs))
    ConvertNestToGpuPass().apply(ctx, module)
    module.verify()
    return module


REDUCTIONS = ["serial, []", "warp, []", "block, []", "block, [j = 6 : grid, j = 5 : serial]"]


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nvcc_has_nothing_to_say(reduction: str, tmp_path: Path) -> None:
    nvcc_accepts(print_module(level_4(reduction)), tmp_path)


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("type", ["f64", "i8", "i64"])
def test_nvcc_moves_values_of_every_type(type: str, tmp_path: Path) -> None:
    schedule = 'attributes {schedule = #nest.schedule<"cuda:sm_80", block, []>}'
    kernel = extremes(type, 3, 1000).replace("SCHEDULE", schedule)
    outputs = {"o": f"memref<3x{type}>", "q": f"memref<3x{type}>", "r": "memref<3xi64>"}
    text = cuda(kernel, {"x": f"memref<3x1000x{type}>"}, outputs)
    assert "__shfl_down_sync(" in text
    nvcc_accepts(text, tmp_path)


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("type", ["f32", "f16", "bf16", "f64", "i8"])
def test_nvcc_moves_16_bytes(type: str, tmp_path: Path) -> None:
    text = cuda(*wide_copy(type))
    nvcc_accepts(text, tmp_path)
    file = tmp_path / "kernels.cu"
    command = ["nvcc", "-ptx", "-arch=sm_80", "-o", "-", str(file)]
    ptx = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"ld\.global\S*\.v[24]\.[fub](?:32|64)", ptx)
    assert re.findall(r"st\.global\S*\.v[24]\.[fub](?:32|64)", ptx)
    assert ".local" not in ptx


def wide_copy(type: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """A copy of many elements, whose schedule is the default."""
    kernel = """axes [%i = 1024, %j = 1024] {
      %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
      nest.store %v, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }"""
    return kernel, {"x": f"memref<1024x1024x{type}>"}, {"o": f"memref<1024x1024x{type}>"}


@pytest.mark.mlir
@pytest.mark.skipif(MLIR_OPT is None, reason="no mlir-opt")
@pytest.mark.parametrize("type", ["f32", "f16", "bf16", "f64", "i8"])
def test_mlir_opt_accepts_vectors(type: str) -> None:
    module, ctx = parse(program(*wide_copy(type)))
    ConvertNestToGpuPass().apply(ctx, module)
    mlir_opt_accepts(module)


def nvcc_accepts(text: str, tmp_path: Path) -> None:
    """For every architecture, without a warning."""
    file = tmp_path / "kernels.cu"
    file.write_text(text)
    command = ["nvcc", "-fatbin", "-Werror", "all-warnings", str(file)]
    for arch in (75, 80, 90, 100):
        command += ["-gencode", f"arch=compute_{arch},code=sm_{arch}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.mlir
@pytest.mark.skipif(MLIR_OPT is None, reason="no mlir-opt")
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_mlir_opt_accepts_it(reduction: str) -> None:
    mlir_opt_accepts(level_4(reduction))


def mlir_opt_accepts(module: ModuleOp) -> None:
    text = StringIO()
    Printer(text, print_generic_format=True).print_op(module)
    # A gpu.module ends in an operation of its own up to MLIR 19, in nothing after that.
    head, start, rest = text.getvalue().partition('"gpu.module"')
    body, end, tail = rest.partition("\n  }) : () -> ()")
    ending = '\n"gpu.module_end"() : () -> ()'
    assert MLIR_OPT is not None
    done = subprocess.run(
        [MLIR_OPT, "-o", "/dev/null"],
        input="".join((head, start, body, ending, end, tail)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]
