"""The exact search: it finds what trying every plan finds, its plans run, and `default` is near."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

import plait
from plait import Tensor
from plait.frontend.trace import build_module
from plait.nn import functional as F
from plait.passes.analysis import targets
from plait.passes.analysis.counts import report
from plait.passes.fusion.optimal import Search
from plait.passes.fusion.plan import Plan, functions_with_groups
from plait.runtime import driver
from plait.runtime.interpret import run_module

TARGET = "cuda:sm_80"
Make = Callable[[], list[Tensor]]


def crossing() -> list[Tensor]:
    """Two pairs of reduces, of which only one pair can be merged."""
    x, y = plait.empty(64, 256), plait.empty(64, 256)
    a, b = x.sum(1), y.sum(1)
    c = (y * a.reshape(64, 1)).max(1)
    d = (x * b.reshape(64, 1)).max(1)
    return [c, d]


def statistics() -> list[Tensor]:
    x = plait.empty(128, 512)
    return [x.mean(1), x.var(1), x.max(1), x * 2 + x.min()]


def attention() -> list[Tensor]:
    q, k, v, seed = (plait.empty(2, 3, 16, 8) for _ in range(4))
    out = F.scaled_dot_product_attention(q, k, v)
    return [out, *plait.grad((out * seed).sum(), [q, k, v])]


def two_layers() -> list[Tensor]:
    x, first, second = plait.empty(32, 24), plait.empty(16, 24), plait.empty(8, 16)
    hidden = (x @ first.transpose(0, 1)).relu()
    out = hidden @ second.transpose(0, 1)
    return [out, *plait.grad((out * out).sum(), [first, second])]


PROGRAMS: dict[str, Make] = {
    "crossing": crossing,
    "statistics": statistics,
    "attention": attention,
    "two layers": two_layers,
}


def search(outputs: Sequence[Tensor], limit_s: float = 20.0) -> Search:
    module, _ = build_module(list(outputs))
    driver.apply(module, ("lazy-simplify", "fuse-form-groups"))
    [function] = functions_with_groups(module)
    return Search(Plan.read(function), targets.get(TARGET), limit_s)


def orders(found: Search, done: int = 0) -> Iterator[list[int]]:
    """Every plan, as the sets of groups that run one after another."""
    everything = (1 << len(found.plan.groups)) - 1
    if done == everything:
        yield []
        return
    left = everything & ~done
    part = left
    while part:
        inside = [k for k in range(len(found.plan.groups)) if part >> k & 1]
        ready = not any(found.before[k] & ~(done | part) for k in inside)
        if ready and found.keeps(part) is not None:
            for rest in orders(found, done | part):
                yield [part, *rest]
        part = (part - 1) & left


@pytest.mark.parametrize("name", ["crossing", "statistics"])
def test_no_plan_moves_less(name: str) -> None:
    found = search(PROGRAMS[name]())
    assert len(found.plan.groups) <= 7
    best = found.run()
    assert best.proven
    assert best.bytes == min(sum(map(found.bytes, plan)) for plan in orders(found))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_best_plan_means_what_the_program_means(name: str) -> None:
    module, inputs = build_module(PROGRAMS[name]())
    plan = driver.planned(module, "optimal", TARGET)
    other = driver.planned(module, "default", TARGET)
    assert report(plan, TARGET)["bytes"] <= report(other, TARGET)["bytes"]
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(tensor.shape, dtype=np.float32) for tensor in inputs]
    want = run_module(module, arrays, float64=True)
    for backend in ("cpu", "cuda-sim"):
        for one, other in zip(driver.compiled(plan, backend).run(*arrays), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


def test_a_search_that_is_cut_short_gives_a_plan_and_a_bound() -> None:
    found = search(attention(), limit_s=0.0)
    best = found.run()
    assert sorted(k for kernel in best.kernels for k in kernel) == list(
        range(len(found.plan.groups))
    )
    assert 0 < best.bound <= best.bytes
    assert best.bound <= search(attention()).run().bytes
