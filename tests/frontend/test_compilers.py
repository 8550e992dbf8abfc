"""What compilers say of level 4: nvcc of the CUDA text, mlir-opt of the IR."""

from __future__ import annotations

import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from functions import BINARY, FUNCTIONS, UNARY
from test_ladder import CASES, program
from xdsl.printer import Printer

from plait.lowering.target_cuda import HELPERS
from plait.runtime import driver

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
MLIR_OPT = shutil.which("mlir-opt-19") or shutil.which("mlir-opt")


def plan_of(name: str, dtype: str = "float32") -> driver.ModuleOp:
    module, _ = program(*CASES[name], dtype=dtype)
    return driver.planned(module, "default")


def renamed(text: str, number: int) -> str:
    """Kernels of one program under names of their own; helpers and headers are shared."""
    names = re.findall(r"^(\w+)\(", text, re.M)
    for name in names:
        text = re.sub(rf"\b{name}\b", f"p{number}_{name}", text)
    return text


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_nvcc_compiles_every_kernel(tmp_path: Path) -> None:
    """All functions and their gradients in one file, for every architecture; f16 and bf16 too."""
    texts: list[str] = []
    for number, name in enumerate(CASES):
        texts.append(renamed(driver.cuda_text(plan_of(name)), number))
    for number, (name, dtype) in enumerate(
        (name, dtype)
        for name in ("layer_norm", "gelu", "softmax", "linear", "max_pool2d", "cumsum")
        for dtype in ("float16", "bfloat16", "float64")
    ):
        texts.append(renamed(driver.cuda_text(plan_of(name, dtype)), 1000 + number))
    whole = "\n".join(texts)
    includes = sorted(set(re.findall(r"^#include .*$", whole, re.M)))
    body = re.sub(r"^#include .*$", "", whole, flags=re.M)
    for helper in HELPERS.values():
        body = body.replace(helper, "")
    file = tmp_path / "kernels.cu"
    file.write_text("\n".join([*includes, *HELPERS.values(), body]))
    command = ["nvcc", "-fatbin", "-o", str(tmp_path / "kernels.fatbin"), str(file), "-t", "2"]
    for arch in ARCHITECTURES:
        number = arch.removeprefix("sm_")
        command += ["-gencode", f"arch=compute_{number},code={arch}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    assert body.count("__global__") >= len(CASES)


def generic(module: driver.ModuleOp) -> str:
    text = StringIO()
    Printer(text, print_generic_format=True).print_op(module)
    return text.getvalue()


@pytest.mark.mlir
@pytest.mark.skipif(MLIR_OPT is None, reason="no mlir-opt")
@pytest.mark.parametrize("level", ["loops", "gpu"])
def test_mlir_opt_accepts_level_4(level: str) -> None:
    """Every function's level 4, in the generic form; pieces are separated for one run."""
    pieces: list[str] = []
    for name in (*UNARY, *BINARY, *FUNCTIONS):
        text = generic(driver.lowered(plan_of(name), level))
        if level == "gpu":
            # A gpu.module ends in an operation of its own up to MLIR 19, in nothing after that.
            head, start, rest = text.partition('"gpu.module"')
            body, end, tail = rest.partition("\n  }) : () -> ()")
            closing = '\n"gpu.module_end"() : () -> ()' if start else ""
            text = "".join((head, start, body, closing, end, tail))
        pieces.append(text)
    assert MLIR_OPT is not None
    done = subprocess.run(
        [MLIR_OPT, "--split-input-file", "-o", "/dev/null"],
        input="\n// -----\n".join(pieces),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]
