"""``plait run``: trace, plan, report, emit, run, check."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import Attribute

from plait.dtypes import Array, bf16_to_f32, is_float, name_of_type
from plait.errors import PlaitError
from plait.runtime import driver
from plait.tools import tables
from plait.tools.output import reason, write_text
from plait.tools.program import Program, load_program

TOLERANCES = {"float64": 1e-9, "float32": 1e-3, "float16": 2e-2, "bfloat16": 8e-2}
"""Largest error that passes, relative to the largest element of the output."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("program", metavar="PROG", help="FILE.mlir or FILE.py[:function]")
    add("--backend", default="cpu", choices=driver.BACKENDS, help="where to run (default: cpu)")
    add("--pipeline", default="default", help="how to plan (default: default)")
    add("--target", help="the machine to plan for, such as cuda:sm_80")
    add("--check", action="store_true", help="compare with the numpy level in float64")
    add("--seed", type=seed, default=0, help="decides the random inputs")
    add("--emit-cuda", metavar="DIR", help="write the CUDA C to DIR/kernels.cu")


def say(text: str) -> None:
    """Progress, for people who wait at a terminal."""
    if sys.stderr.isatty():
        print(f"plait: {text} ...", file=sys.stderr)


def seed(text: str) -> int:
    """A seed of random numbers."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, found '{text}'")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from plait.passes.analysis.counts import report

    driver.pipeline_passes(args.pipeline)
    say("tracing")
    program = load_program(args.program)
    operations = sum(1 for _ in program.module.walk()) - 3
    say("planning")
    plans = {
        name: driver.planned(program.module, name, args.target)
        for name in dict.fromkeys(("none", args.pipeline))
    }
    plan = plans[args.pipeline]
    target = {"target": args.target} if args.target else {}
    print(f"{program.name}: {operations} operations")
    print(tables.plans({name: report(module, **target) for name, module in plans.items()}))
    emit(plan, args)
    say("compiling")
    started = time.perf_counter()
    compiled = driver.compiled(plan, args.backend, args.target)
    ready = time.perf_counter() - started
    arrays = program.arguments(args.seed)
    given = [array.copy() for array in arrays]
    say("running")
    results = compiled.run(*given)
    started = time.perf_counter()
    compiled.run(*[array.copy() for array in arrays])
    taken = time.perf_counter() - started
    print(f"{args.backend}: compiled in {ready:.2f} s, ran in {taken * 1e3:.2f} ms")
    return check(program, arrays, results) if args.check else 0


def emit(plan: driver.ModuleOp, args: argparse.Namespace) -> None:
    """Emits CUDA C: to a file, or to say that it can be."""
    target = args.target if args.target and args.target.startswith("cuda") else "cuda:sm_80"
    text = driver.cuda_text(plan, target)
    kernels = text.count("__global__")
    where = "--emit-cuda DIR writes it"
    if args.emit_cuda:
        folder = Path(args.emit_cuda)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlaitError(f"{folder}: cannot create: {reason(error)}") from None
        write_text(folder / "kernels.cu", text)
        where = f"written to {folder / 'kernels.cu'}"
    print(f"cuda: {kernels} kernels, {text.count(chr(10))} lines of CUDA C ({where})")


def check(program: Program, arrays: Sequence[Array], results: Sequence[Array]) -> int:
    """Compares results with the numpy level in float64; 0 if all are within tolerance."""
    from plait.runtime.interpret import element_of, find_function, run_module

    say("checking against numpy in float64")
    expected = run_module(program.module, arrays, float64=True)
    types = find_function(program.module, "main").function_type.outputs
    rows = [["output", "type", "largest error", "relative", "limit", ""]]
    failed = False
    worst = 0.0
    for number, (type, result, want) in enumerate(zip(types, results, expected, strict=True)):
        element = element_of(type)
        absolute, relative = errors(result, want, element)
        limit = TOLERANCES.get(name_of_type(element), 0.0)
        good = relative <= limit
        failed = failed or not good
        worst = max(worst, relative)
        shape = "x".join(map(str, np.shape(want)))
        rows.append(
            [
                str(number),
                f"{name_of_type(element)} {shape}",
                f"{absolute:.3g}",
                f"{relative:.3g}",
                f"{limit:g}",
                "ok" if good else "FAILED",
            ]
        )
    print(tables.aligned(rows, left=2))
    verdict = "FAILED" if failed else "passed"
    print(f"check {verdict}: {len(results)} outputs, largest relative error {worst:.3g}")
    return int(failed)


def errors(result: Array, want: Array, element: Attribute) -> tuple[float, float]:
    """Largest absolute error, and that over the largest expected element (1 at least for
    integers). NaN and each infinity must be where they are expected."""
    if isinstance(element, BFloat16Type):
        result = bf16_to_f32(result).reshape(result.shape)
    if result.shape != want.shape:
        return float("inf"), float("inf")
    if not is_float(element):
        return (0.0, 0.0) if np.array_equal(result, want) else (float("inf"), float("inf"))
    have = result.astype(np.float64)
    finite = np.isfinite(want)
    special = np.where(np.isfinite(have), 0, have)
    if not np.array_equal(special, np.where(finite, 0, want), equal_nan=True):
        return float("inf"), float("inf")
    if not finite.any():
        return 0.0, 0.0
    absolute = float(np.abs(have[finite] - want[finite]).max())
    scale = float(np.abs(want[finite]).max())
    return absolute, absolute / scale if scale else absolute
