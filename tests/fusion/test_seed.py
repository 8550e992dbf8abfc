"""The seed's specification (parallel reduces, crossing, convolutions, batch norm) in kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from build import Program, T, plan

from plait.passes.fuse_check_bijective_loads import FuseCheckBijectiveLoadsPass
from plait.passes.fuse_form_groups import FuseFormGroupsPass
from plait.passes.fuse_group_crossing_dag import FuseGroupCrossingDagPass
from plait.passes.fuse_merge_reduces import FuseMergeReducesPass

SEED = (
    FuseFormGroupsPass(),
    FuseCheckBijectiveLoadsPass(),
    FuseMergeReducesPass(),
    FuseGroupCrossingDagPass(),
)

Graph = Callable[[T, T, T, T, T], tuple[T, ...]]


def p14(x: T, y: T, z: T, a: T, b: T) -> tuple[T, ...]:
    s = (x + a).sum()
    return s, (x + s).sum()


def p15(x: T, y: T, z: T, a: T, b: T) -> tuple[T, ...]:
    s1, s2 = (x + a).sum(), (y + b).sum()
    return (y + s1).sum(), (x + s2).sum()


PARALLEL: dict[str, tuple[Graph, int]] = {
    "P1": (lambda x, y, z, a, b: ((x + a).sum(), (x + b).sum()), 1),
    "P2": (lambda x, y, z, a, b: ((x + y + a).sum(), (x + b).sum()), 1),
    "P3": (lambda x, y, z, a, b: ((x + y + a).sum(), (x + y + b).sum()), 1),
    "P4": (lambda x, y, z, a, b: ((x + y + a).sum(), (x + b).sum(), (y + b).sum()), 1),
    "P5": (lambda x, y, z, a, b: ((x + y + a).sum() * 2.0, (x + b).sum() * 3.0), 1),
    "P6": (lambda x, y, z, a, b: ((x.T + y + a).sum() * 2.0, (x.T + b).sum() * 3.0), 1),
    "P7": (lambda x, y, z, a, b: ((x + y).sum(), (x + z).sum()), 2),
    "P8": (lambda x, y, z, a, b: ((x + y).sum(), (x + z).sum(), (x + a).sum()), 2),
    "P9": (lambda x, y, z, a, b: ((x + a).sum(), (x.T + b).sum()), 2),
    "P10": (lambda x, y, z, a, b: ((x + a).sum(0), (x + b).sum(1)), 2),
    "P11": (lambda x, y, z, a, b: ((x + a).sum(0), (x + b).sum()), 2),
    "P12": (lambda x, y, z, a, b: (x.sum(0, keepdim=True) + a, (a + b).sum()), 2),
    "P13": (lambda x, y, z, a, b: (x.sum(), x + y), 2),
    "P14": (p14, 2),
    "P15": (p15, 3),
}


@pytest.mark.parametrize("row", PARALLEL)
@pytest.mark.parametrize("reverse", [False, True])
def test_parallel_reduces(row: str, reverse: bool) -> None:
    graph, kernels = PARALLEL[row]
    program = Program()
    x, y, z = (program.input(16, 16) for _ in range(3))
    a, b = (program.input(1, 16) for _ in range(2))
    outputs = graph(x, y, z, a, b)
    groups, _ = plan(program.module(*(outputs[::-1] if reverse else outputs)), *SEED)
    assert len(groups) == kernels


@pytest.mark.parametrize(("row", "kernels"), [("C1", 1), ("C2", 1), ("C3", 2)])
def test_elementwise_into_convolution(row: str, kernels: int) -> None:
    program = Program()
    x, y, z = (program.input(1, 16, 16, 16) for _ in range(3))
    a, w = program.input(1, 16, 1, 1), program.input(16, 16, 3, 3)
    value = {"C1": lambda: x + a, "C2": lambda: x + y + a, "C3": lambda: x + y + z}[row]()
    groups, _ = plan(program.module(value.conv(w)), *SEED)
    assert len(groups) == kernels


def batch_norm(program: Program) -> tuple[T, ...]:
    """Forward and backward in training mode, with the gradients written out."""
    x, w, b = program.input(2, 16, 8, 8), program.input(16), program.input(16)
    axes, count = (0, 2, 3), 128.0

    def wide(value: T) -> T:
        return value.reshape(1, 16, 1, 1).expand(2, 16, 8, 8)

    mean = x.sum(*axes) * (1 / count)
    centred = x - wide(mean)
    inverse = ((centred * centred).sum(*axes) * (1 / count) + 1e-5).rsqrt()
    forward = (centred * wide(w) * wide(inverse) + wide(b)).relu()
    g = forward.positive().materialize()
    grad_b = g.sum(*axes)
    grad_w = (g * centred * wide(inverse)).sum(*axes)
    scaled = g * wide(w)
    grad_inverse = (scaled * centred).sum(*axes)
    grad_var = grad_inverse * -0.5 * inverse * inverse * inverse
    grad_centred = scaled * wide(inverse) + centred * wide(grad_var * (2 / count))
    grad_mean = grad_centred.sum(*axes) * -1.0
    grad_x = grad_centred + wide(grad_mean * (1 / count))
    return grad_x, grad_w, grad_b, forward


def test_batch_norm() -> None:
    program = Program()
    baseline, _ = plan(program.module(*batch_norm(program)), FuseFormGroupsPass())
    assert len(baseline) <= 12
    program = Program()
    groups, _ = plan(program.module(*batch_norm(program)), *SEED)
    assert len(groups) <= 9
    assert len(groups) < len(baseline)
