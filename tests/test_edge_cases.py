"""The corners of the lazy dialect's meaning, the same at every level and on every backend."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser

import plait
from plait.dialects.fuse import Fuse
from plait.dialects.lazy import Lazy
from plait.runtime import driver
from plait.runtime.interpret import run_module

NAN, INF = float("nan"), float("inf")
I32_MIN, I32_MAX = -(2**31), 2**31 - 1


def unary(op: str, have: str, want: str | None = None) -> str:
    arrow = f"{have} -> {want}" if want else have
    want = want or have
    return (
        f"func.func @main(%x: {have}) -> {want} {{\n  %y = lazy.{op} %x : {arrow}\n"
        f"  return %y : {want}\n}}"
    )


def binary(op: str, type: str) -> str:
    return (
        f"func.func @main(%x: {type}, %z: {type}) -> {type} {{\n"
        f"  %y = lazy.{op} %x, %z : {type}\n  return %y : {type}\n}}"
    )


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


GATHER = """
func.func @main(%x: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %y = lazy.gather %x, %i axis = 0 : tensor<4xf32>, tensor<4xi64> -> tensor<4xf32>
  return %y : tensor<4xf32>
}"""
SCATTER = """
func.func @main(%x: tensor<4xf32>, %i: tensor<5xi64>, %u: tensor<5xf32>) -> tensor<4xf32> {
  %y = lazy.scatter KIND %x, %i, %u axis = 0
     : tensor<4xf32>, tensor<5xi64>, tensor<5xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}"""
AT = np.array([1, 1, -1, 4, 2], np.int64)
UPDATES = f32(1, 2, 3, 4, 5)

CASES = {
    "cast saturates": (
        unary("cast", "tensor<6xf32>", "tensor<6xi32>"),
        [f32(NAN, INF, -INF, 3e9, -1.9, 2.9)],
        i32(0, I32_MAX, I32_MIN, I32_MAX, -1, 2),
    ),
    "cast to unsigned saturates": (
        unary("cast", "tensor<4xf32>", "tensor<4xui8>"),
        [f32(-3, 300, 255.9, NAN)],
        np.array([0, 255, 255, 0], np.uint8),
    ),
    "cast to bool is not zero": (
        unary("cast", "tensor<4xf32>", "tensor<4xi1>"),
        [f32(0, -0.0, NAN, 0.1)],
        np.array([False, False, True, True]),
    ),
    "division by zero": (
        binary("div", "tensor<4xi32>"),
        [i32(7, -7, I32_MIN, -7), i32(0, 2, -1, -2)],
        i32(0, -3, I32_MIN, 3),
    ),
    "remainder": (
        binary("rem", "tensor<4xi32>"),
        [i32(7, -7, I32_MIN, 7), i32(0, 2, -1, -2)],
        i32(0, -1, 0, 1),
    ),
    "remainder of floats": (
        binary("rem", "tensor<6xf32>"),
        [f32(7.5, -7.5, 1e8, 3, INF, 5), f32(2, 2, 0.1, INF, 2, 0)],
        np.fmod(f32(7.5, -7.5, 1e8, 3, INF, 5), f32(2, 2, 0.1, INF, 2, 0)),
    ),
    "additions wrap": (
        binary("add", "tensor<2xi32>"),
        [i32(I32_MAX, 5), i32(1, 6)],
        i32(I32_MIN, 11),
    ),
    "shifts": (
        binary("shl", "tensor<4xi32>"),
        [i32(1, 1, 1, -1), i32(31, 32, -1, 4)],
        i32(I32_MIN, 0, 0, -16),
    ),
    "arithmetic shifts": (
        binary("shr", "tensor<4xi32>"),
        [i32(-8, -8, 8, 8), i32(1, 99, 99, -1)],
        i32(-4, -1, 0, 0),
    ),
    "powers": (
        binary("pow", "tensor<6xi32>"),
        [i32(3, 2, -1, 2, 0, 7), i32(4, 31, -3, -1, 0, 1)],
        i32(81, I32_MIN, -1, 0, 1, 7),
    ),
    "maximum keeps NaN": (
        binary("max", "tensor<3xf32>"),
        [f32(NAN, 1, 2), f32(1, NAN, 3)],
        f32(NAN, NAN, 3),
    ),
    "sums of nothing": (
        unary("reduce sum", "tensor<0x2xf32>", "tensor<2xf32>").replace("%x :", "%x axes = [0] :"),
        [np.zeros((0, 2), np.float32)],
        f32(0, 0),
    ),
    "maxima of nothing": (
        unary("reduce max", "tensor<0x2xf32>", "tensor<2xf32>").replace("%x :", "%x axes = [0] :"),
        [np.zeros((0, 2), np.float32)],
        f32(-INF, -INF),
    ),
    "first of the largest": (
        unary("argmax", "tensor<5xf32>", "tensor<i64>").replace("%x :", "%x axis = 0 :"),
        [f32(1, 9, 3, 9, 2)],
        np.int64(1),
    ),
    "NaN is the largest": (
        unary("argmax", "tensor<5xf32>", "tensor<i64>").replace("%x :", "%x axis = 0 :"),
        [f32(1, INF, NAN, 9, NAN)],
        np.int64(2),
    ),
    "unsigned maximum": (
        unary("reduce max", "tensor<3xui8>", "tensor<ui8>").replace("%x :", "%x axes = [0] :"),
        [np.array([1, 200, 100], np.uint8)],
        np.uint8(200),
    ),
    "gathers clamp": (
        GATHER,
        [f32(1, 2, 3, 4), np.array([-7, 9, 2, 2**40], np.int64)],
        f32(1, 4, 3, 4),
    ),
    "scatter sets the last": (
        SCATTER.replace("KIND", "set"),
        [f32(9, 9, 9, 9), AT, UPDATES],
        f32(9, 2, 5, 9),
    ),
    "scatter adds": (
        SCATTER.replace("KIND", "add"),
        [f32(9, 9, 9, 9), AT, UPDATES],
        f32(9, 12, 14, 9),
    ),
    "random bits": (
        unary("rng_bits", "tensor<2xui32>", "tensor<1xui32>"),
        [np.array([0, 0], np.uint32)],
        np.array([0x6B200159], np.uint32),
    ),
    "rounding to even": (
        unary("round", "tensor<4xf32>"),
        [f32(0.5, 1.5, -2.5, 2.4)],
        f32(0, 2, -2, 2),
    ),
    "half precision rounds to even": (
        unary("cast", "tensor<4xf32>", "tensor<4xf16>"),
        [f32(2049, 2051, 65520, 1e-8)],
        np.array([2048, 2052, INF, 0], np.float16),
    ),
    "bfloat16 rounds to even": (
        unary("cast", "tensor<3xf32>", "tensor<3xbf16>"),
        [f32(257, 259, NAN)],
        np.array([0x4380, 0x4382, 0x7FC0], np.uint16),
    ),
    "constants keep the sign of zero": (
        """
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %c = lazy.constant dense<[0.0, -0.0]> : tensor<2xf32>
          %y = lazy.div %x, %c : tensor<2xf32>
          return %y : tensor<2xf32>
        }""",
        [f32(1, 1)],
        f32(INF, -INF),
    ),
    "taking away minus zero is no identity": (
        """
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %c = lazy.constant dense<[0.0, -0.0]> : tensor<2xf32>
          %one = lazy.constant dense<1.0> : tensor<2xf32>
          %y = lazy.sub %x, %c : tensor<2xf32>
          %z = lazy.div %one, %y : tensor<2xf32>
          return %z : tensor<2xf32>
        }""",
        [f32(-0.0, -0.0)],
        f32(-INF, INF),
    ),
    "sigmoid does not overflow": (
        unary("sigmoid", "tensor<3xf32>"),
        [f32(-1000, 0, 1000)],
        f32(0, 0.5, 1),
    ),
}


def module_of(text: str) -> driver.ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, Lazy, Fuse):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def check(result: np.ndarray, want: np.ndarray) -> None:
    assert result.dtype == np.asarray(want).dtype
    np.testing.assert_allclose(result, want, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_numpy(name: str) -> None:
    text, arrays, want = CASES[name]
    [result] = run_module(module_of(text), arrays)
    check(result, want)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pipeline", ["none", "default"])
def test_levels_and_cpu(name: str, pipeline: str) -> None:
    text, arrays, want = CASES[name]
    plan = driver.planned(module_of(text), pipeline)
    for result in (
        run_module(plan, arrays)[0],
        run_module(driver.lowered(plan, "nest"), arrays)[0],
        driver.compiled(plan, "cpu").run(*arrays)[0],
    ):
        check(result, want)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", CASES)
def test_cuda_sim(name: str) -> None:
    text, arrays, want = CASES[name]
    plan = driver.planned(module_of(text), "default")
    check(driver.compiled(plan, "cuda-sim").run(*arrays)[0], want)


@pytest.mark.parametrize("backend", ["numpy", "cpu", "cuda-sim"])
def test_sums_over_a_slice_under_another_shape(backend: str) -> None:
    array = np.arange(28, dtype=np.float32).reshape(4, 7)
    output = plait.empty(4, 7)[:, :6].reshape(2, 3, 4).sum([1, 2])
    [have] = [plait.schedule(output).run(array, backend=backend)[0]]
    np.testing.assert_array_equal(have, array[:, :6].reshape(2, 3, 4).sum((1, 2)))
