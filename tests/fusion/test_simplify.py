"""``lazy-simplify``: what collapses, and that values stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from build import Program, T, check_meaning
from xdsl.context import Context
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    f16,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

import plait
from plait.dialects import lazy
from plait.frontend.trace import build_module
from plait.passes.lazy_simplify import LazySimplifyPass
from plait.passes.simplify.builder import splat_attribute
from plait.runtime import driver
from plait.runtime.interpret import run_module


def ops(module: ModuleOp) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("lazy.")]


def simplified(module: ModuleOp) -> list[str]:
    check_meaning(module, LazySimplifyPass(), special=False)
    return ops(module)


def triangle(p: Program, count: int, value: float, type: Attribute = f32) -> T:
    """A vector of one value, padded and reshaped so that row ``i`` has ``i + 1`` of them."""
    ones = p.add(lazy.ConstantOp(splat_attribute(value, TensorType(type, (count,)))))
    length = 2 * count - 1
    zero = IntegerAttr(0, i32) if type == i32 else FloatAttr(0.0, f32)
    padded = (
        p.add(lazy.PadOp(ones.value, [count - 1], [0], [0], zero))
        .reshape(1, length)
        .expand(count + 1, length)
    )
    flat = padded.reshape((count + 1) * length).slice([0], [count * 2 * count])
    return flat.reshape(count, 2 * count).slice([0, 0], [count, count])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("type", [f32, i32])
def test_counting_needs_no_reduce(count: int, axis: int, type: Attribute) -> None:
    p = Program()
    assert "lazy.reduce" not in simplified(p.module(triangle(p, count, 3, type).sum(axis)))


def test_a_huge_count_is_never_made() -> None:
    p = Program()
    module = p.module(triangle(p, 60_000, 1, i32).sum(1))
    LazySimplifyPass().apply(Context(), module)
    assert "lazy.reduce" not in ops(module)
    (result,) = run_module(module, [])
    np.testing.assert_array_equal(result, np.arange(60_000) + 1)


def test_one_hot_sum_is_a_gather_also_out_of_range() -> None:
    p = Program()
    table, indices = p.input(9, 4), p.input(6, type=i32)
    count = p.add(lazy.IotaOp(1, TensorType(i32, (6, 9, 4))))
    wanted = indices.reshape(6, 1, 1).expand(6, 9, 4)
    same = lazy.CompareOp(
        lazy.ComparePredicate.EQ, count.value, wanted.value, TensorType(i1, (6, 9, 4))
    )
    rows = table.reshape(1, 9, 4).expand(6, 9, 4)
    chosen = lazy.SelectOp(p.add(same).value, rows.value, p.splat(0.0, 6, 9, 4).value)
    module = p.module(p.add(chosen).sum(1))
    values = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    at = np.array([0, 8, 3, -1, 9, 100], dtype=np.int32)
    (before,) = run_module(module, [values, at])
    LazySimplifyPass().apply(Context(), module)
    module.verify()
    (after,) = run_module(module, [values, at])
    np.testing.assert_array_equal(before, after)
    assert "lazy.gather" in ops(module)
    assert "lazy.reduce" not in ops(module)


def test_sum_of_copies_in_half_precision() -> None:
    p = Program()
    x = p.input(4, type=f16)
    module = p.module(x.reshape(4, 1).expand(4, 100_000).sum(1))
    small = np.full(4, 1e-3, np.float16)
    LazySimplifyPass().apply(Context(), module)
    (result,) = run_module(module, [small])
    np.testing.assert_allclose(result.astype(np.float64), 100.0, rtol=2e-3)
    assert "lazy.reduce" not in ops(module)


def test_reduces_in_a_row_through_views() -> None:
    p = Program()
    x = p.input(4, 3, 5, 2)
    module = p.module(
        x.sum(1, keepdim=True).permute(3, 0, 1, 2).sum(1),
        x.max(3).reshape(4, 15).max(1),
        x.sum(0).reshape(3, 10).sum(1),
    )
    assert simplified(module).count("lazy.reduce") == 3


def test_a_reduce_that_is_used_twice_stays() -> None:
    p = Program()
    s = p.input(4, 8).sum(1)
    assert simplified(p.module(s, s.sum())).count("lazy.reduce") == 2


def test_centred_sums_vanish() -> None:
    p = Program()
    x, c, y = p.input(4, 8), p.input(4, 1), p.input(4, 8)
    centred = x - x.mean(1, keepdim=True)
    module = p.module((centred * c.expand(4, 8)).sum(1), (y - centred * c).sum(1), centred.sum(0))
    assert simplified(module).count("lazy.reduce") == 3


def test_views_that_undo_each_other() -> None:
    p = Program()
    x = p.input(4, 6)
    padded = x.pad([1, 2], [0, 1]).slice([1, 2], [5, 8])
    assert simplified(p.module(padded, x.T.reshape(3, 8).reshape(6, 4).T)) == []


def test_integers_reassociate_and_floats_do_not() -> None:
    p = Program()
    x, n = p.input(4), p.input(4, type=i32)
    one = p.add(lazy.ConstantOp(splat_attribute(1, TensorType(i32, (4,)))))
    module = p.module(n + one + one, x + 1.0 + 1.0)
    assert ops(module).count("lazy.add") == 4
    assert simplified(module).count("lazy.add") == 3


def test_mixed_mask_is_not_a_splat() -> None:
    """A constant mask that is neither all true nor all false chooses element by element."""
    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i1

    from plait.dialects import lazy
    from plait.passes.simplify.builder import splat_value

    mask = DenseIntOrFPElementsAttr.from_list(TensorType(i1, [4]), [False, True, False, False])
    assert splat_value(lazy.ConstantOp(mask).result) is None


def test_slices_of_values_that_share_operands_stay_in_order() -> None:
    inner = plait.empty(4, 8).exp()
    module, _ = build_module([(inner.log() - inner)[1:3]])
    plan = driver.planned(module, "default")
    array = np.random.default_rng(0).random((4, 8), dtype=np.float32)
    [have], [want] = run_module(plan, [array]), run_module(module, [array])
    np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", list(lazy.ScatterKind))
@pytest.mark.parametrize("type", [i32, i64])
def test_one_update_a_line_is_a_selection(kind: lazy.ScatterKind, type: Attribute) -> None:
    p = Program()
    at, updates = p.input(7, 1, type=type), p.input(7, 1)
    start = p.splat(3.0, 7, 5)
    scatter = lazy.ScatterOp(kind, start.value, at.value, updates.value, 1)
    module = p.module(p.add(scatter))
    numpy = np.int32 if type == i32 else np.int64
    places = np.array([[0], [4], [2], [-1], [5], [3], [1]], dtype=numpy)
    if type == i64:
        places[4] = (1 << 32) + 1  # 1, if it were cut to 32 bits
    values = np.array([[1.5], [np.nan], [np.inf], [2], [4], [-7], [-0.0]], dtype=np.float32)
    (before,) = run_module(module, [places, values])
    LazySimplifyPass().apply(Context(), module)
    (after,) = run_module(module, [places, values])
    np.testing.assert_array_equal(before, after)
    assert "lazy.scatter" not in ops(module)
