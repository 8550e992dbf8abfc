"""Casts round once, the same at every level."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import plait

INTEGERS = [2**24 + 1, 2**25 + 3, 2**53 + 1, 2**62 + 1, 2**54 + 2**30 + 1]
FLOATS = [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8, 3 + 2**-9, 3.4e38, 1e-41, np.inf]
DIGITS = {"float32": 24, "bfloat16": 8, "float16": 11}


def rounded(value: float | int, digits: int) -> float:
    """A number to as many binary digits, ties to even, from its exact value."""
    exact = Fraction(value)
    power = Fraction(2) ** (abs(exact.numerator).bit_length() - exact.denominator.bit_length())
    power = power if power <= abs(exact) else power / 2
    return float(round(exact / power * 2 ** (digits - 1)) * power / 2 ** (digits - 1))


@pytest.mark.parametrize("backend", ["numpy", "cpu", "cuda-sim"])
@pytest.mark.parametrize("want", ["float32", "bfloat16"])
def test_large_integers_round_once(want: str, backend: str) -> None:
    values = np.array([*INTEGERS, *(-v for v in INTEGERS)], np.int64)
    plan = plait.schedule(plait.empty(len(values), dtype="int64").cast(want).cast("float64"))
    [found] = plan.run(values, backend=backend)
    assert found.tolist() == [rounded(int(v), DIGITS[want]) for v in values]


@pytest.mark.parametrize("backend", ["numpy", "cpu", "cuda-sim"])
@pytest.mark.parametrize("want", ["float32", "bfloat16", "float16"])
def test_doubles_round_once(want: str, backend: str) -> None:
    values = np.array([v for v in FLOATS if 1e-3 < v < 10], np.float64)
    plan = plait.schedule(plait.empty(len(values), dtype="float64").cast(want).cast("float64"))
    [found] = plan.run(values, backend=backend)
    assert found.tolist() == [rounded(float(v), DIGITS[want]) for v in values]


def test_extremes_as_bfloat16_agree() -> None:
    values = np.array(FLOATS, np.float64)
    plan = plait.schedule(plait.empty(len(values), dtype="float64").cast("bfloat16"))
    numpy, cpu = (plan.run(values, backend=backend)[0] for backend in ("numpy", "cpu"))
    assert numpy.tolist() == cpu.tolist()


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("backend", ["numpy", "cpu", "cuda-sim"])
def test_arrays_in_the_other_byte_order_are_refused(dtype: str, backend: str) -> None:
    plan = plait.schedule(plait.empty(3, dtype=dtype, name="x") + 1)
    swapped = np.arange(3, dtype=np.dtype(dtype).newbyteorder())
    with pytest.raises(plait.errors.PlaitError, match=r"input .x.: expected dtype .* found"):
        plan.run(swapped, backend=backend)
