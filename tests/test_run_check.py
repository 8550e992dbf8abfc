"""What ``plait run --check`` accepts and refuses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i32
from xdsl.ir import Attribute

from plait.dtypes import f32_to_bf16, numpy_dtype
from plait.tools.run import errors

NAN, INF = float("nan"), float("inf")


def held(value: float, element: Attribute) -> np.ndarray:
    array = np.array([1.0, value])
    if element == bf16:
        return f32_to_bf16(array.astype(np.float32))
    return array.astype(numpy_dtype(element))


@pytest.mark.parametrize("element", [f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize(("have", "want"), list(product([NAN, INF, -INF, 2.0], repeat=2)))
def test_each_special_value_equals_itself_alone(
    have: float, want: float, element: Attribute
) -> None:
    found = errors(held(have, element), np.array([1.0, want]), element)
    same = have == want or (np.isnan(have) and np.isnan(want))
    assert found == ((0.0, 0.0) if same else (INF, INF))


def test_errors_are_relative_to_the_largest_finite_element() -> None:
    have = np.array([1.0, 4.5, INF], np.float32)
    assert errors(have, np.array([1.0, 4.0, INF]), f32) == (0.5, 0.125)


def test_integers_must_be_equal() -> None:
    want = np.array([1, 2], np.int32)
    assert errors(want, want, i32) == (0.0, 0.0)
    assert errors(want + 1, want, i32) == (INF, INF)
