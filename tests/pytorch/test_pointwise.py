"""Element-wise operators: promotion, special numbers, integers and booleans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from compare import same, whole

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-8, 3e4, -7.0, math.inf, -math.inf, math.nan]
UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "nan_to_num",
    "neg",
    "positive",
    "rad2deg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "atan2",
    "copysign",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "fmax",
    "fmin",
    "fmod",
    "floor_divide",
    "hypot",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "remainder",
    "heaviside",
    "xlogy",
]


def tensor(dtype: Any) -> Any:
    return torch.tensor(SPECIAL, dtype=dtype)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_unary_on_special_numbers(name: str, dtype: Any) -> None:
    if name in ("sin", "cos", "tan"):
        same(getattr(torch, name), tensor(dtype)[:7])
    else:
        same(getattr(torch, name), tensor(dtype))


@pytest.mark.parametrize("name", BINARY)
def test_binary_on_all_pairs_of_special_numbers(name: str) -> None:
    x = tensor(torch.float32)
    same(getattr(torch, name), x[:, None], x[None, :])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "atan2"])
def test_half_precision_is_rounded_once_for_each_operator(name: str, dtype: Any) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 50).to(dtype)
    same(lambda a, b: getattr(torch, name)(getattr(torch, name)(a, b), b), x, y, rtol=0, atol=0)


@pytest.mark.parametrize("left", [torch.bool, torch.uint8, torch.int32, torch.float16], ids=str)
@pytest.mark.parametrize("right", [torch.bool, torch.int8, torch.int64, torch.float32], ids=str)
def test_types_are_promoted_as_in_pytorch(left: Any, right: Any) -> None:
    x, y = torch.tensor([0, 1, 3]).to(left), torch.tensor([1, 0, 2]).to(right)
    for function in (torch.add, torch.mul, torch.div, torch.eq, torch.maximum):
        same(function, x, y)


def test_tensors_without_axes_and_numbers_only_change_the_kind() -> None:
    half, whole_number = torch.ones(3, dtype=torch.float16), torch.arange(3, dtype=torch.int32)
    same(torch.add, half, torch.tensor(2.5))
    same(torch.add, whole_number, torch.tensor(2, dtype=torch.int64))
    same(torch.add, whole_number, torch.tensor(2.5, dtype=torch.float64))
    same(lambda x: x + 2.5, whole_number)
    same(lambda x: x * 2, torch.tensor([True, False]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x // 3,
        lambda x: x % 3,
        lambda x: x // -3,
        lambda x: x % -3,
        lambda x: torch.fmod(x, 3),
        lambda x: torch.div(x, 3, rounding_mode="trunc"),
        lambda x: torch.div(x, -3, rounding_mode="trunc"),
        lambda x: x**3,
        lambda x: x << 2,
        lambda x: x >> 1,
        lambda x: ~x & 5 | 2 ^ x,
        lambda x: x.clamp(-3, 4),
        lambda x: torch.where(x > 0, x, 0),
        lambda x: x.to(torch.float32).to(torch.bool),
    ],
)
def test_integers(function: Callable[..., Any]) -> None:
    for dtype in (torch.int8, torch.int32, torch.int64):
        same(function, torch.arange(-9, 9, dtype=dtype))


@pytest.mark.parametrize(
    "function",
    [torch.floor_divide, torch.remainder, torch.fmod, torch.pow],
    ids=lambda function: function.__name__,
)
def test_integers_that_may_fail_are_left_to_pytorch(function: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match="integers"):
        whole(function, torch.arange(4), torch.arange(1, 5))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32], ids=str)
def test_conversions_to_integers_truncate_and_wrap(dtype: Any) -> None:
    same(lambda x: x.to(dtype), torch.tensor([-300.7, -1.5, -0.5, 0.0, 1.9, 255.0, 70000.0]))


def test_large_and_negative_arguments() -> None:
    x = torch.tensor([3e4, 1e6, -1e9, 88.5, -89.0, 1e-30, 1e30, 2e38, -1e-42])
    for function in (torch.sin, torch.sinh, torch.cosh, torch.asinh, torch.acosh, torch.log1p):
        same(function, x)


@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5])
def test_powers_of_special_numbers(exponent: float) -> None:
    same(lambda x: x**exponent, tensor(torch.float32), rtol=1e-5)
