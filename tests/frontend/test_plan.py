"""Plans as people use them: reports, text at every level, results, compiled functions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import plait
from plait import Tensor
from plait.nn import functional as F

X = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)


def test_report_has_the_documented_keys() -> None:
    plan = plait.schedule(F.softmax(plait.empty(6, 40)))
    report = plan.report()
    keys = "kernels bytes_read bytes_written bytes lower_bound_bytes large_passes modelled_us"
    assert {*keys.split(), "detail"} <= set(report)
    assert len(plan.kernels) == report["kernels"] == 1
    assert report["bytes"] == report["lower_bound_bytes"] == 2 * X.nbytes
    detail = {"name", "kind", "space", "reads", "writes", "bytes"}
    assert detail <= set(plan.kernels[0])


@pytest.mark.parametrize(
    ("level", "word"),
    [
        ("lazy", "lazy.exp"),
        ("fuse", "fuse.group"),
        ("nest", "nest.kernel"),
        ("loops", "scf.for"),
        ("gpu", "gpu.func"),
        ("cuda", "__global__"),
        ("llvm", "define"),
    ],
)
def test_text_at_every_level(level: str, word: str) -> None:
    plan = plait.schedule(F.softmax(plait.empty(6, 40)))
    assert word in plan.asm[level]
    assert plan.asm[level] == plan.asm[level]


def test_a_kernel_is_one_launch() -> None:
    """Large reductions of few results too, though many blocks share each."""
    x = plait.empty(64, 4096)
    plan = plait.schedule(x.sum(), (x * x).max(1), x.exp().mean())
    text = plan.asm["cuda"]
    assert text.count("__global__") == len(plan.kernels)
    assert "atomicAdd" in text
    assert plan.asm["gpu"].count('"gpu.launch_func"') == len(plan.kernels)


def test_unknown_level() -> None:
    with pytest.raises(plait.PlaitError, match="unknown level 'ptx'"):
        plait.schedule(plait.empty(2).exp()).asm["ptx"]


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_run(backend: str) -> None:
    weight = plait.tensor(np.full(40, 2, np.float32))
    x = plait.empty(6, 40)
    [result] = plait.schedule(x * weight).run(X, backend=backend)
    np.testing.assert_allclose(result, X * 2)


def test_missing_arrays_are_counted() -> None:
    plan = plait.schedule(plait.empty(2) + plait.empty(2))
    with pytest.raises(plait.PlaitError, match="2 inputs without data"):
        plan.run(np.zeros(2, np.float32))


def test_results_are_in_the_order_of_the_outputs() -> None:
    x, w = plait.empty(2, 3, name="x"), plait.empty(3, 4)
    plan = plait.schedule(w * 2, x @ w, x, w * 2, w)
    a, b = np.arange(6, dtype="f").reshape(2, 3), np.arange(12, dtype="f").reshape(3, 4)
    wanted = [b * 2, a @ b, a, b * 2, b]
    assert [tensor.shape for tensor in plan.inputs] == [(3, 4), (2, 3)]
    for backend in ("cpu", "numpy"):
        ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            ((b, a), {}),
            ((b,), {"x": a}),
            ((a,), {"input0": b}),
            ((), {"x": a, "input0": b}),
            ((b.tolist(), a.tolist()), {}),
        ]
        for arrays, named in ways:
            results = plan.run(*arrays, backend=backend, **named)
            for result, want in zip(results, wanted, strict=True):
                np.testing.assert_array_equal(result, want)


def test_data_can_be_replaced_by_name() -> None:
    weight = plait.tensor(np.full(40, 2, np.float32), name="weight")
    plan = plait.schedule(plait.empty(6, 40) * weight)
    [result] = plan.run(X, weight=np.full(40, 3, np.float32))
    np.testing.assert_array_equal(result, X * 3)
    np.testing.assert_array_equal(plan.run(X)[0], X * 2)


F4 = np.zeros(4, np.float32)
WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "2 inputs without data: expected as many arrays, found 0: x float32 (4,), input1 int"),
    ((F4,), {}, "2 inputs without data"),
    ((F4, F4, F4), {}, "found 3"),
    ((F4,), {"y": F4}, "no input is called 'y': the inputs are x float32 (4,), input1 int64 (3,)"),
    ((F4,), {"x": F4[:2]}, "input 'x': expected shape (4,), found (2,)"),
    ((F4, F4), {}, "input 'input1': expected shape (3,), found (4,)"),
    ((np.zeros(4), 0), {}, "input 'x': expected dtype float32, found float64: convert it with .as"),
    ((["a", "b", "c", "d"], 0), {}, "input 'x': expected an array of real numbers"),
    (([[1], [1, 2]], 0), {}, "input 'x': expected an array of real numbers"),
    ((None, 0), {}, "input 'x': expected an array of real numbers"),
    ((plait.zeros(4), 0), {}, "input 'x': expected an array, found a tensor"),
]


@pytest.mark.parametrize(("arrays", "named", "message"), WRONG)
def test_arrays_that_do_not_fit(
    arrays: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    x, y = plait.empty(4, name="x"), plait.empty(3, dtype="int64")
    plan = plait.schedule(x.exp(), y + 1)
    with pytest.raises(plait.PlaitError, match=re.escape(message)) as caught:
        plan.run(*arrays, **named)
    assert "\n" not in str(caught.value)


def test_two_inputs_of_one_name() -> None:
    plan = plait.schedule(plait.empty(2, name="x") + plait.empty(2, name="x"))
    with pytest.raises(plait.PlaitError, match="several inputs are called 'x'"):
        plan.run(F4[:2], x=F4[:2])
    np.testing.assert_array_equal(plan.run(F4[:2], F4[:2])[0], F4[:2])


def test_bfloat16_is_converted_from_numbers() -> None:
    plan = plait.schedule(plait.empty(2, dtype="bfloat16").float())
    np.testing.assert_array_equal(plan.run([1.5, -2.0])[0], np.array([1.5, -2], np.float32))
    from_data = plait.tensor([1.5, -2.0], dtype="bfloat16").float()
    np.testing.assert_array_equal(from_data.numpy(), np.array([1.5, -2], np.float32))


def test_explain_names_kernels() -> None:
    x = plait.empty(8, 8)
    plan = plait.schedule(x.sum(0), x.sum(1))
    assert plan.explain()
    assert "are one kernel" in plan.explain("sum_0", "sum_1")[0]


def test_compile_specialises_on_shapes() -> None:
    calls: list[tuple[int, ...]] = []

    def function(x: Tensor) -> Tensor:
        calls.append(x.shape)
        return x.softmax()

    compiled = plait.compile(function)
    for shape in ((6, 40), (3, 5), (6, 40)):
        x = np.ones(shape, np.float32)
        np.testing.assert_allclose(compiled(x), np.full(shape, 1 / shape[1]), rtol=1e-6)
    assert calls == [(6, 40), (3, 5)]


def test_assign_updates_in_place() -> None:
    weight = plait.empty(40, donated=True)
    new = plait.assign(weight, weight - 0.5)
    array = np.ones(40, np.float32)
    plait.schedule(new).run(array)
    np.testing.assert_array_equal(array, np.full(40, 0.5, np.float32))


def test_numpy_of_a_tensor() -> None:
    np.testing.assert_allclose(plait.tensor(X).sum(1).numpy(), X.sum(1), rtol=1e-5, atol=1e-5)


def test_random_numbers_depend_on_the_key_alone() -> None:
    first, again, other = (plait.rand(1000, key=key).numpy() for key in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.min() >= 0 and first.max() < 1 and abs(first.mean() - 0.5) < 0.05


def test_unknown_pipeline_and_backend() -> None:
    with pytest.raises(plait.PlaitError, match="unknown pipeline 'best'"):
        plait.schedule(plait.empty(2).exp(), pipeline="best")
    with pytest.raises(plait.PlaitError, match="unknown backend 'tpu'"):
        plait.schedule(plait.empty(2).exp()).run(np.ones(2, np.float32), backend="tpu")
