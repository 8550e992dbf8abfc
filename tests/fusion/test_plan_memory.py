"""Results that are written over arguments: nothing reads what is gone, and nothing is copied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from overwritten import overwritten_reads

import plait
from plait import Tensor
from plait.dialects.fuse import GroupOp
from plait.frontend.trace import build_module
from plait.optim import adam, sgd
from plait.runtime import driver
from plait.runtime.interpret import run_module


def donated(*shape: int) -> Tensor:
    return plait.empty(*shape, donated=True)


def test_an_optimiser_step_is_in_place() -> None:
    shapes = [(7, 5), (33,), (2, 3, 4)]
    params, first, second = ([donated(*s) for s in shapes] for _ in range(3))
    grads = [plait.empty(*s) for s in shapes]
    new = adam(params, grads, first, second, plait.empty(1))
    pairs = zip([*params, *first, *second], [t for group in new for t in group], strict=True)
    outputs = [plait.assign(old, value) for old, value in pairs]
    module, inputs = build_module(outputs)
    plan = driver.planned(module, "default")
    assert not overwritten_reads(plan)
    updated = sum(len(op.updates) for op in plan.walk() if isinstance(op, GroupOp))
    assert updated == len(outputs)
    random = np.random.default_rng(0)
    arrays = [random.random(tensor.shape, dtype=np.float32) + 0.5 for tensor in inputs]
    want = driver.compiled(plan, "numpy").run(*[array.copy() for array in arrays])
    for backend in ("cuda-sim", "cpu"):
        given = [array.copy() for array in arrays]
        have = driver.compiled(plan, backend).run(*given)
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        targets = [output.alias_of for output in outputs]
        for one, target in zip(have, targets, strict=True):
            position = next(k for k, tensor in enumerate(inputs) if tensor is target)
            assert np.shares_memory(one, given[position]) or backend == "cuda-sim"


@pytest.mark.parametrize("backend", ["cpu", "cuda-sim"])
def test_a_slice_is_assigned_in_place(backend: str) -> None:
    cache, rows = donated(6, 4), plait.empty(2, 4)
    new = cache[:1].cat(rows, cache[3:])
    module, _ = build_module([plait.assign(cache, new)])
    plan = driver.planned(module, "default")
    [group] = [op for op in plan.walk() if isinstance(op, GroupOp)]
    assert group.updates == {0: 0}
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    want = array.copy()
    want[1:3] = -1
    driver.compiled(plan, backend).run(array, np.full((2, 4), -1, np.float32))
    np.testing.assert_array_equal(array, want)


def test_a_weight_is_updated_by_the_kernel_that_keeps_its_rows() -> None:
    weight, x, seed = donated(80, 96), plait.empty(8, 96), plait.empty(8, 80)
    product = x @ weight.transpose(0, 1)
    to_input, to_weight = plait.grad((product * seed).sum(), [x, weight])
    outputs = [to_input, plait.assign(weight, weight - to_weight * 0.1)]
    module, inputs = build_module(outputs)
    plan = driver.planned(module, "default", "cuda:sm_80")
    [group] = [op for op in plan.walk() if isinstance(op, GroupOp)]
    assert len(group.updates) == 1
    random = np.random.default_rng(0)
    arrays = [random.random(tensor.shape, dtype=np.float32) for tensor in inputs]
    want = driver.compiled(plan, "numpy").run(*[array.copy() for array in arrays])
    for backend in ("cuda-sim", "cpu"):
        have = driver.compiled(plan, backend).run(*[array.copy() for array in arrays])
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_rows_that_lie_elsewhere_in_the_result_are_not_written_over() -> None:
    weight, x, seed = donated(96, 96), plait.empty(8, 96), plait.empty(8, 96)
    to_input = seed @ weight
    turned = weight.transpose(0, 1) - (x.transpose(0, 1) @ seed) * 0.1
    module, inputs = build_module([to_input, plait.assign(weight, turned)])
    plan = driver.planned(module, "default", "cuda:sm_80")
    assert not overwritten_reads(plan)
    random = np.random.default_rng(0)
    arrays = [random.random(tensor.shape, dtype=np.float32) for tensor in inputs]
    want = run_module(module, [array.copy() for array in arrays])
    for backend in ("cuda-sim", "cpu"):
        have = driver.compiled(plan, backend).run(*[array.copy() for array in arrays])
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def overwritten_without_being_read() -> list[Tensor]:
    x, y = donated(40, 30), plait.empty(40, 30)
    return [plait.assign(x, y * 3), x * 2 + y]


def read_again_after_a_reduce() -> list[Tensor]:
    x, y = donated(40, 30), plait.empty(40, 30)
    return [plait.assign(x, x + y), x * y.sum(1, keepdim=True)]


def read_in_another_loop_of_the_row() -> list[Tensor]:
    x, y = donated(40, 40), plait.empty(40, 40)
    scores = y.softmax(1)
    return [plait.assign(x, x + scores), x * scores.exp(), scores @ y]


@pytest.mark.parametrize("backend", ["cpu", "cuda-sim"])
@pytest.mark.parametrize(
    "make",
    [overwritten_without_being_read, read_again_after_a_reduce, read_in_another_loop_of_the_row],
)
def test_results_beside_an_update_see_what_was_there(
    make: Callable[[], list[Tensor]], backend: str
) -> None:
    module, inputs = build_module(make())
    random = np.random.default_rng(1)
    arrays = [random.random(tensor.shape, dtype=np.float32) for tensor in inputs]
    want = run_module(module, [array.copy() for array in arrays])
    for pipeline in ("default", "fewest-bytes", "optimal"):
        plan = driver.planned(module, pipeline, "cuda:sm_80")
        have = driver.compiled(plan, backend).run(*[array.copy() for array in arrays])
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_what_others_read_is_copied() -> None:
    weight, gradient, x = donated(8, 8), plait.empty(8, 8), plait.empty(8, 8)
    new, _ = sgd([weight], [gradient], lr=0.1)
    module, _ = build_module([plait.assign(weight, new[0]), x @ weight])
    plan = driver.planned(module, "default")
    assert not overwritten_reads(plan)
