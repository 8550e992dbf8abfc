"""Chains of reduces in one kernel: what they compute, on every backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait
from plait import Tensor
from plait.dtypes import Array
from plait.frontend.trace import build_module
from plait.nn import functional as F
from plait.passes.analysis.counts import report
from plait.runtime import driver
from plait.runtime.interpret import run_module

Make = Callable[[], list[Tensor]]


def products(*sizes: int, dtype: str = "float32") -> list[Tensor]:
    x = plait.empty(sizes[0], sizes[1], dtype=dtype)
    for rows, columns in itertools.pairwise(sizes[1:]):
        x = x @ plait.empty(rows, columns, dtype=dtype)
    return [x]


def attention(length: int, size: int, causal: bool, dtype: str = "float32") -> list[Tensor]:
    q, k, v = (plait.empty(2, 3, length, size, dtype=dtype) for _ in range(3))
    return [F.scaled_dot_product_attention(q, k, v, is_causal=causal)]


def attention_gradients(length: int, size: int) -> list[Tensor]:
    q, k, v, seed = (plait.empty(2, 2, length, size) for _ in range(4))
    out = F.scaled_dot_product_attention(q, k, v)
    return [out, *plait.grad((out * seed).sum(), [q, k, v])]


def pairwise() -> list[Tensor]:
    a, b = plait.empty(33, 1, 5), plait.empty(1, 47, 5)
    distance = (a - b).square().sum(-1)
    return [distance.min(1), distance.argmin(1)]


def kept_and_stored() -> list[Tensor]:
    scores = plait.empty(40, 24) @ plait.empty(24, 17)
    return [scores, scores.softmax(1) @ plait.empty(17, 9)]


def both_gradients(rows: int, columns: int, dtype: str = "float32") -> list[Tensor]:
    x = plait.empty(8, columns, dtype=dtype)
    weight, seed = plait.empty(rows, columns, dtype=dtype), plait.empty(8, rows, dtype=dtype)
    loss = ((x @ weight.transpose(0, 1)) * seed).sum()
    to_input, to_weight = plait.grad(loss, [x, weight])
    return [to_input, weight - to_weight * 0.1]


def both_convolution_gradients(stride: int) -> list[Tensor]:
    x, weight = plait.empty(2, 32, 7, 7), plait.empty(48, 32, 3, 3)
    y = F.conv2d(x, weight, padding=1, stride=stride)
    to_input, to_weight = plait.grad((y * plait.empty(*y.shape)).sum(), [x, weight])
    return [to_input, weight - to_weight * 0.1]


CASES: dict[str, tuple[int, Make]] = {
    "two products": (1, lambda: products(64, 32, 16, 8)),
    "three products": (1, lambda: products(65, 7, 19, 3, 11)),
    "products f64": (1, lambda: products(40, 33, 17, 5, dtype="float64")),
    "products f16": (1, lambda: products(40, 33, 17, 5, dtype="float16")),
    "attention": (1, lambda: attention(33, 8, causal=False)),
    "causal attention": (1, lambda: attention(31, 16, causal=True)),
    "attention of one position": (1, lambda: attention(1, 4, causal=True)),
    "attention bf16": (1, lambda: attention(16, 8, causal=False, dtype="bfloat16")),
    "attention, backward": (1, lambda: attention_gradients(24, 5)),
    "nearest": (1, pairwise),
    "kept and stored": (1, kept_and_stored),
    "both gradients of a product": (1, lambda: both_gradients(80, 96)),
    "both gradients, odd sizes": (1, lambda: both_gradients(67, 97)),
    "both gradients f16": (1, lambda: both_gradients(96, 96, dtype="float16")),
    "both gradients of a convolution": (1, lambda: both_convolution_gradients(1)),
    "both gradients, strided": (1, lambda: both_convolution_gradients(2)),
}


def arguments(module: Any, random: np.random.Generator) -> list[Array]:
    from plait.tools.program import Program

    return Program("", module, []).arguments(int(random.integers(1 << 30)))


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_means_what_the_program_means(name: str) -> None:
    kernels, make = CASES[name]
    module, _ = build_module(make())
    plan = driver.planned(module, "default", "cuda:sm_80")
    assert report(plan)["kernels"] == kernels
    random = np.random.default_rng(7)
    arrays = arguments(module, random)
    want = run_module(module, arrays, float64="16" not in name)
    half = 4e-2 if "16" in name else 2e-5
    for backend in ("numpy", "cpu", "cuda-sim"):
        have = driver.compiled(plan, backend).run(*arrays)
        for one, other in zip(have, want, strict=True):
            if "bf16" in name:
                one, other = (widened(array) for array in (one, other))
            np.testing.assert_allclose(
                np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=half, atol=half
            )
    nest = driver.lowered(plan, "nest")
    for one, other in zip(
        run_module(nest, arrays), driver.compiled(plan, "numpy").run(*arrays), strict=True
    ):
        if "bf16" in name:
            one, other = (widened(array) for array in (one, other))
        np.testing.assert_allclose(
            np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=half, atol=half
        )


def widened(array: Array) -> Array:
    """The numbers of bfloat16 bit patterns."""
    return (array.astype(np.uint32) << 16).view(np.float32)
