"""Programs some of whose tensors have no elements, and kernel plans with groups nobody reads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser

import plait
from plait.dialects.fuse import Fuse, GroupOp
from plait.dialects.lazy import Lazy
from plait.passes import get_all_passes
from plait.passes.pipelines import PIPELINES

X = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)

PROGRAMS: dict[str, tuple[Callable[[plait.Tensor], plait.Tensor], Callable[[], np.ndarray]]] = {
    "softmax": (lambda x: x.softmax(-1)[0:0], lambda: X[0:0]),
    "matmul": (lambda x: (x @ x.permute(1, 0))[:, 2:2], lambda: (X @ X.T)[:, 2:2]),
    "statistics": (lambda x: (x.var(1) - x.mean(1))[4:], lambda: X.mean(1)[4:]),
    "sum of nothing": (lambda x: x.softmax(-1)[0:0].sum(0), lambda: np.zeros(8, np.float32)),
    "added to nothing": (
        lambda x: x.softmax(-1)[0:0].sum(0) + x.sum(0),
        lambda: X.sum(0),
    ),
    "joined to nothing": (lambda x: x.exp()[0:0].cat(x.relu()), lambda: np.maximum(X, 0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_results(name: str, pipeline: str, backend: str) -> None:
    build, want = PROGRAMS[name]
    plan = plait.schedule(build(plait.empty(4, 8)), pipeline=pipeline)
    [have] = plan.run(X, backend=backend)
    np.testing.assert_allclose(have, want(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_nothing_is_computed_for_a_result_without_elements(pipeline: str) -> None:
    x = plait.empty(4, 8)
    assert not plait.schedule(x.softmax(-1)[0:0], pipeline=pipeline).kernels
    both = plait.schedule(x.softmax(-1)[0:0], x.sum(1), pipeline=pipeline)
    assert len(both.kernels) == 1


DEAD = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = fuse.group "a" (%1 = %x : tensor<4x8xf32>) -> tensor<4xf32> {
    %2 = lazy.reduce sum %1 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %2 : tensor<4xf32>
  }
  %b = fuse.group "b" (%1 = %x : tensor<4x8xf32>, %s = %a : tensor<4xf32>) -> tensor<4xf32> {
    %2 = lazy.reduce max %1 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    %3 = lazy.add %2, %s : tensor<4xf32>
    fuse.yield %3 : tensor<4xf32>
  }
  %c = fuse.group "c" (%1 = %x : tensor<4x8xf32>) -> tensor<4x8xf32> {
    %2 = lazy.neg %1 : tensor<4x8xf32>
    fuse.yield %2 : tensor<4x8xf32>
  }
  func.return %c : tensor<4x8xf32>
}"""


@pytest.mark.parametrize("name", ["sweeps", "merge-reduces", "contraction-chains", "horizontal"])
def test_groups_that_nobody_reads_are_dropped(name: str) -> None:
    context = Context()
    for dialect in (Builtin, Func, Lazy, Fuse):
        context.load_dialect(dialect)
    module = Parser(context, DEAD).parse_module()
    get_all_passes()[f"fuse-{name}"]()().apply(context, module)
    module.verify()
    assert len([op for op in module.walk() if isinstance(op, GroupOp)]) == 1
