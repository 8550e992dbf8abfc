"""The ladder of meanings: numpy, cpu and cuda-sim agree on every function of the front end, and on
its gradient, for the baseline plan and the default one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from functions import BINARY, FUNCTIONS, UNARY

import plait
from plait import Tensor
from plait.frontend.trace import build_module
from plait.runtime import driver
from plait.runtime.interpret import run_module

RNG = np.random.default_rng(3)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")

CASES: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    **{name: (function, [(2, 4, 4)]) for name, function in UNARY.items()},
    **{name: (function, [(3, 4), (4,)]) for name, function in BINARY.items()},
    **FUNCTIONS,
}


def program(
    function: Callable[..., Tensor], shapes: Sequence[tuple[int, ...]], dtype: str
) -> tuple[driver.ModuleOp, list[np.ndarray]]:
    """A function and its gradient, and arguments."""
    inputs = [plait.empty(shape, dtype=dtype) for shape in shapes]
    output = function(*inputs)
    module, order = build_module([output, *plait.grad(output.sum(), inputs)])
    given = {id(t): RNG.uniform(0.3, 1.4, t.shape).astype(np.float32) for t in inputs}
    arrays = [given[id(t)] if t.array is None else t.array for t in order]
    return module, arrays


def agree(result: np.ndarray, want: np.ndarray, limit: float) -> None:
    assert result.shape == want.shape
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    np.testing.assert_allclose(result / scale, want / scale, rtol=limit, atol=limit)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pipeline", ["none", "default"])
def test_cpu(name: str, pipeline: str) -> None:
    module, arrays = program(*CASES[name], dtype="float32")
    expected = run_module(module, arrays, float64=True)
    plan = driver.planned(module, pipeline)
    for result, want in zip(driver.compiled(plan, "cpu").run(*arrays), expected, strict=True):
        agree(result, want, 5e-5)


@pytest.mark.parametrize("name", CASES)
def test_levels_of_the_interpreter(name: str) -> None:
    module, arrays = program(*CASES[name], dtype="float32")
    expected = run_module(module, arrays, float64=True)
    nest = driver.lowered(driver.planned(module, "default"), "nest")
    for result, want in zip(run_module(nest, arrays, float64=True), expected, strict=True):
        agree(result, want, 1e-6)


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_cuda_sim(name: str) -> None:
    module, arrays = program(*CASES[name], dtype="float32")
    expected = run_module(module, arrays, float64=True)
    plan = driver.planned(module, "default")
    results = driver.compiled(plan, "cuda-sim").run(*arrays)
    for result, want in zip(results, expected, strict=True):
        agree(result, want, 5e-5)
