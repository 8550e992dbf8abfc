"""Merges: what fires, what is refused and why, and that the order of the program is no matter."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from build import Program, T, plan
from programs import module
from test_seed import PARALLEL, SEED
from xdsl.dialects.builtin import ModuleOp

from plait.passes.fuse_elementwise_reduce import FuseElementwiseReducePass
from plait.passes.fuse_form_groups import FuseFormGroupsPass
from plait.passes.fuse_group_crossing_dag import FuseGroupCrossingDagPass
from plait.passes.fuse_merge_reduces import FuseMergeReducesPass
from plait.passes.fuse_sweeps import FuseSweepsPass
from plait.passes.fusion.cost import bytes_moved
from plait.passes.fusion.footprints import footprint_of
from plait.passes.lazy_simplify import LazySimplifyPass

DEFAULT = (LazySimplifyPass(), *SEED, FuseSweepsPass(), FuseElementwiseReducePass())


def row(name: str) -> ModuleOp:
    program = Program()
    x, y, z = (program.input(16, 16) for _ in range(3))
    a, b = (program.input(1, 16) for _ in range(2))
    return program.module(*PARALLEL[name][0](x, y, z, a, b))


def built(build: Callable[[Program], list[T]]) -> ModuleOp:
    program = Program()
    return program.module(*build(program))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("P7", "fuse.bijective-load-added"),
        ("P9", "fuse.nothing-shared"),
        ("P10", "fuse.axes-differ"),
        ("P12", "fuse.space-differs"),
        ("P13", "fuse.not-a-reduce"),
        ("P14", "fuse.depends"),
    ],
)
def test_refusals_say_why(name: str, reason: str) -> None:
    _, remarks = plan(row(name), *SEED)
    assert reason in {x.id for x in remarks if x.kind == "missed"}


def test_crossing_refusal_has_the_path() -> None:
    _, remarks = plan(row("P15"), *SEED)
    (refusal,) = [x for x in remarks if x.id == "fuse.closes-cycle"]
    path = refusal.facts["path"]
    assert isinstance(path, tuple)
    assert len(path) == 3
    assert set(path) >= set(refusal.facts["groups"])  # pyright: ignore


def test_contested_merges_wait_for_the_choice() -> None:
    groups, remarks = plan(row("P15"), FuseFormGroupsPass(), FuseMergeReducesPass())
    assert len(groups) == 4
    assert any(x.id == "fuse.merge-contested" for x in remarks)
    assert len(plan(row("P8"), FuseFormGroupsPass(), FuseMergeReducesPass())[0]) == 3
    assert len(plan(row("P8"), FuseFormGroupsPass(), FuseGroupCrossingDagPass())[0]) == 2


def test_the_better_diagonal_wins() -> None:
    def build(p: Program, large_first: bool) -> list[T]:
        x, y = p.input(64, 64), p.input(64, 64)
        extra = p.input(1, 64)
        if not large_first:
            x, y = y, x
        s1, s2 = (x + extra).sum(), (y * 2.0).sum()
        return [(y + s1).sum(), (x * extra + s2).sum()]

    for large_first in (True, False):
        groups, _ = plan(built(lambda p, first=large_first: build(p, first)), *SEED)
        assert len(groups) == 3
        merged = [group for group in groups if len(group.outputs) == 2]
        assert [len(group.inputs) for group in merged] == [3]


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_a_program_does_not_change_its_bytes(seed: int) -> None:
    def build(p: Program, order: list[int]) -> list[T]:
        inputs = [p.input(32, 32) for _ in range(3)] + [p.input(1, 32) for _ in range(2)]
        rng = random.Random(seed)
        terms = [rng.sample(range(5), rng.randint(1, 3)) for _ in range(6)]
        results = dict[int, T]()
        for number in order:
            total = inputs[terms[number][0]].expand(32, 32)
            for other in terms[number][1:]:
                total = total + inputs[other]
            results[number] = total.sum(1)
        return [results[number] for number in sorted(results)]

    found = set[tuple[int, int]]()
    for shuffle in range(4):
        order = list(range(6))
        random.Random(shuffle).shuffle(order)
        groups, _ = plan(built(lambda p, order=order: build(p, order)), *SEED)
        found.add((len(groups), sum(bytes_moved(footprint_of([group])) for group in groups)))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("name", "count"),
    [("softmax", 1), ("layer_norm", 1), ("two_norms_in_a_row", 2), ("shared_value", 3)],
)
def test_default_kernels(name: str, count: int) -> None:
    assert len(plan(module(name), *DEFAULT)[0]) == count


def test_siblings_and_rows_of_one_reduce() -> None:
    def build(p: Program) -> list[T]:
        x, b = p.input(64, 8), p.input(64)
        s = x.sum(1)
        return [s + b, s * 2.0, x.exp(), x.exp().max(1)]

    groups, _ = plan(built(build), FuseFormGroupsPass(), FuseElementwiseReducePass())
    assert len(groups) == 1


def test_long_rows_stay_two_kernels() -> None:
    def build(p: Program) -> list[T]:
        x = p.input(64, 1 << 16)
        return [x - x.max(1, keepdim=True)]

    groups, remarks = plan(built(build), FuseFormGroupsPass(), FuseSweepsPass())
    assert len(groups) == 2
    assert any(x.id == "fuse.row-too-long" for x in remarks)


def test_few_rows_stay_two_kernels() -> None:
    def build(p: Program) -> list[T]:
        x = p.input(1 << 18)
        return [x.sum(), x * 2.0]

    groups, remarks = plan(built(build), FuseFormGroupsPass(), FuseElementwiseReducePass())
    assert len(groups) == 2
    assert any(x.id == "fuse.too-few-rows" for x in remarks)


def test_a_transposed_use_is_another_kernel() -> None:
    def build(p: Program) -> list[T]:
        x = p.input(64, 64)
        y = (x + 1.0).materialize()
        return [y, y.T.exp().materialize()]

    groups, remarks = plan(built(build), FuseFormGroupsPass(), FuseElementwiseReducePass())
    assert len(groups) == 2
    assert any(x.id == "fuse.points-differ" for x in remarks)
