"""Contractions whose factors are packed, against the numpy level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import plait
from plait.frontend.schedule import Plan
from plait.frontend.trace import build_module
from plait.nn import functional
from plait.runtime import driver
from plait.runtime.cpu import CompiledPlan

Shape = tuple[int, ...]
Program = Callable[..., Any]


def planned(program: Program, shapes: Sequence[Shape], dtype: str = "float32") -> Plan:
    inputs = [plait.empty(*shape, dtype=dtype) for shape in shapes]
    outputs = program(*inputs)
    listed = list(outputs) if isinstance(outputs, list) else [outputs]
    return Plan(*build_module(listed, inputs))


def conv_grad(**options: Any) -> Program:
    def program(x: Any, w: Any, g: Any) -> list[Any]:
        y = functional.conv2d(x, w, **options)
        return [y, *plait.grad(y, [x, w], g)]

    return program


PROGRAMS: dict[str, tuple[Program, list[Shape]]] = {
    "rows": (lambda a, b: a @ b, [(64, 128), (128, 96)]),
    "no multiple of the lanes": (lambda a, b: a @ b, [(61, 77), (77, 99)]),
    "both transposed": (lambda a, b: a.transpose() @ b.transpose(), [(96, 61), (99, 96)]),
    "prologue and epilogue": (
        lambda a, b, c: (a.exp() @ b.tanh() + c).relu(),
        [(48, 64), (64, 100), (100,)],
    ),
    "batch": (lambda a, b: a @ b.mT, [(3, 2, 40, 32), (3, 2, 50, 32)]),
    "two products of one factor": (
        lambda a, b, c: (a @ b) * (a @ c),
        [(40, 64), (64, 40), (64, 40)],
    ),
    "few columns": (lambda a, b: a @ b, [(512, 64), (64, 5)]),
    "long sum": (lambda a, b: a.transpose() @ b, [(8192, 32), (8192, 24)]),
    "padded": (conv_grad(padding=1), [(2, 8, 16, 20), (12, 8, 3, 3), (2, 12, 16, 20)]),
    "strided": (conv_grad(padding=1, stride=2), [(2, 8, 32, 32), (8, 8, 3, 3), (2, 8, 16, 16)]),
    "dilated": (conv_grad(padding=2, dilation=2), [(2, 4, 32, 30), (8, 4, 3, 3), (2, 8, 32, 30)]),
    "window wider than the step": (
        conv_grad(stride=3),
        [(2, 8, 32, 32), (8, 8, 2, 2), (2, 8, 11, 11)],
    ),
    "grouped": (
        conv_grad(padding=1, groups=2),
        [(2, 16, 16, 16), (16, 8, 3, 3), (2, 16, 16, 16)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results(name: str, dtype: str) -> None:
    program, shapes = PROGRAMS[name]
    plan = planned(program, shapes, dtype)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    found, wanted = plan.run(*arrays), plan.run(*arrays, backend="numpy")
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


@pytest.mark.parametrize("name", ["no multiple of the lanes", "long sum", "padded"])
def test_results_are_the_same_for_any_number_of_threads(name: str) -> None:
    program, shapes = PROGRAMS[name]
    plan = planned(program, shapes)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    loops = driver.lowered(plan.module, "loops")
    runs = [CompiledPlan(loops, threads=threads) for threads in (1, 2, 2)]
    one, *others = [[array.copy() for array in run.run(*arrays)] for run in runs]
    for other in others:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_stay_where_they_belong(special: float) -> None:
    plan = planned(lambda a, b: a @ b, [(61, 77), (77, 99)])
    rng = np.random.default_rng(0)
    a = rng.standard_normal((61, 77)).astype(np.float32)
    b = rng.standard_normal((77, 99)).astype(np.float32)
    a[5, 3] = special
    b[7, 98] = special
    np.testing.assert_array_equal(
        np.isfinite(plan.run(a, b)[0]), np.isfinite(plan.run(a, b, backend="numpy")[0])
    )


def functions(plan: Plan) -> list[str]:
    text = plan.asm["loops"]
    return [line.split("@")[1].split("(")[0] for line in text.splitlines() if "func.func @" in line]


def test_what_lies_well_is_read_in_place() -> None:
    plan = planned(lambda a, b: a @ b, [(64, 48), (48, 32)])
    assert [name for name in functions(plan) if "pack" in name] == []


def test_far_rows_are_packed() -> None:
    plan = planned(lambda a, b: a @ b, [(64, 48), (48, 1024)])
    assert len([name for name in functions(plan) if "pack" in name]) == 1


def test_an_outer_product_is_left_alone() -> None:
    plan = planned(lambda a, b: (a * b).sum(), [(512, 1), (1, 512)])
    assert [name for name in functions(plan) if "pack" in name] == []
