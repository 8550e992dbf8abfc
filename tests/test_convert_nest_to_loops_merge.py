"""Sweeps of a kernel that become one, by meaning and by count."""

from __future__ import annotations

import numpy as np
import pytest
from test_convert_nest_to_loops import lower, normal, program, run

SWEEPS = """axes [%i = 20] {
  %a = nest.reduce [sum] over [%r = 100] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %r) : <x>
    nest.yield %v : f32
  } : f32
  %two = arith.constant 2.0 : f32
  %f = arith.addf OPERANDS : f32
  %b = nest.reduce [max] over [%q = EXTENT] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %q) : <x>
    %w = arith.mulf %v, %f : f32
    nest.store %w, %y[(d0, d1) -> (d0, d1)](%i, %q) : <y>
    nest.yield %w : f32
  } : f32
  nest.store %a, %s[(d0) -> (d0)](%i) : <s>
  nest.store %b, %m[(d0) -> (d0)](%i) : <m>
}"""
OUTPUTS = {"s": "memref<20xf32>", "m": "memref<20xf32>", "y": "memref<20x100xf32>"}


def sweeps(operands: str, extent: int = 100) -> str:
    return SWEEPS.replace("OPERANDS", operands).replace("EXTENT", str(extent))


@pytest.mark.parametrize("operands", ["%two, %two", "%two, %a"])
def test_sums_and_products_of_a_row(operands: str) -> None:
    x = normal(20, 100)
    s, m, y = run(sweeps(operands), {"x": ("f32", x)}, OUTPUTS)
    factor = 4 if operands == "%two, %two" else 2 + x.sum(1, keepdims=True)
    np.testing.assert_allclose(s, x.sum(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(y, factor * x, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(m, (factor * x).max(1), rtol=1e-3, atol=1e-4)


def sweeps_left(kernel: str) -> int:
    text = str(lower(program(kernel, {"x": "memref<20x100xf32>"}, OUTPUTS), 32))
    return text.count("plait.reduce")


def test_one_sweep_where_neither_needs_the_other() -> None:
    assert sweeps_left(sweeps("%two, %two")) == 1


def test_a_sweep_that_needs_the_result_of_another_stays() -> None:
    assert sweeps_left(sweeps("%two, %a")) == 2


def test_sweeps_of_other_lengths_stay() -> None:
    assert sweeps_left(sweeps("%two, %two", 64)) == 2


def test_sweeps_that_share_no_element_stay() -> None:
    flipped = sweeps("%two, %two").replace(
        "%x[(d0, d1) -> (d0, d1)](%i, %q)", "%x[(d0, d1) -> (d0, -d1 + 99)](%i, %q)"
    )
    assert sweeps_left(flipped) == 2


def test_sweeps_stay_in_order_where_a_buffer_is_updated() -> None:
    kernel = sweeps("%two, %two").replace("%y[(d0", "%x[(d0").replace(": <y>", ": <x>")
    assert sweeps_left(kernel) == 2
