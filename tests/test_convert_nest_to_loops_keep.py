"""Values that sweeps over a row keep for later ones, against the numpy level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait
from plait.frontend.schedule import Plan
from plait.frontend.trace import build_module

Program = Callable[..., Any]


def planned(program: Program, *shapes: tuple[int, ...]) -> Plan:
    inputs = [plait.empty(*shape) for shape in shapes]
    outputs = program(*inputs)
    return Plan(*build_module(outputs if isinstance(outputs, list) else [outputs], inputs))


def softmax_and_gradient(x: Any, g: Any) -> list[Any]:
    y = x.softmax(-1)
    return [y, *plait.grad(y, [x], g)]


def exponentials(plan: Plan) -> int:
    return plan.asm["loops"].count("math.exp ")


@pytest.mark.parametrize("columns", [1, 5, 16, 61, 1000])
def test_gradient_of_softmax(columns: int) -> None:
    plan = planned(softmax_and_gradient, (37, columns), (37, columns))
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 37, columns), dtype=np.float32)
    for found, wanted in zip(plan.run(x, g), plan.run(x, g, backend="numpy"), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-6)


def test_every_exponential_is_taken_once() -> None:
    plan = planned(softmax_and_gradient, (256, 1024), (256, 1024))
    assert exponentials(plan) == len(plan.kernels) == 1


def test_special_values_are_kept_as_they_are() -> None:
    plan = planned(lambda x: x.softmax(-1), (5, 64))
    x = np.zeros((5, 64), dtype=np.float32)
    x[0, 3], x[1, 5], x[2, 7] = np.nan, np.inf, -np.inf
    x[3] = -np.inf
    np.testing.assert_allclose(plan.run(x)[0], plan.run(x, backend="numpy")[0], atol=1e-6)


def test_a_row_too_long_for_the_cache_is_computed_again() -> None:
    plan = planned(lambda x: x.softmax(-1), (2, 1 << 20))
    x = np.random.default_rng(0).standard_normal((2, 1 << 20), dtype=np.float32)
    np.testing.assert_allclose(plan.run(x)[0], plan.run(x, backend="numpy")[0], rtol=1e-4)
    assert exponentials(plan) >= 2


def test_what_only_looks_alike_is_not_shared() -> None:
    def program(x: Any) -> Any:
        return x.exp().sum(-1, keepdim=True) * x.flip(-1).exp()

    plan = planned(program, (64, 200))
    x = np.random.default_rng(0).standard_normal((64, 200), dtype=np.float32)
    np.testing.assert_allclose(plan.run(x)[0], plan.run(x, backend="numpy")[0], rtol=1e-5)
