"""How many kernels the baseline plan has, and what it leaves to views."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from build import Program, T, plan
from programs import module
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.cf import Cf
from xdsl.dialects.func import Func, FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dialects.lazy import Lazy
from plait.passes.fuse_form_groups import FuseFormGroupsPass


def kernels(program: ModuleOp) -> int:
    return len(plan(program, FuseFormGroupsPass())[0])


def built(build: Callable[[Program], list[T]]) -> ModuleOp:
    program = Program()
    return program.module(*build(program))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("softmax", 3),
        ("layer_norm", 3),
        ("matmul_relu_matmul", 2),
        ("conv_twice", 2),
        ("diamond_epilogue", 1),
        ("materialized", 3),
        ("empty", 1),
    ],
)
def test_kernels(name: str, count: int) -> None:
    assert kernels(module(name)) == count


def test_epilogue_joins_the_reduce() -> None:
    assert kernels(built(lambda p: [p.input(4, 8).sum(1) * 2.0 + 1.0])) == 1


def test_two_reduces_in_a_row_are_two_kernels() -> None:
    assert kernels(built(lambda p: [p.input(4, 8).max(1).sum()])) == 2


def test_cheap_shared_work_is_repeated() -> None:
    def build(p: Program) -> list[T]:
        x = p.input(16, 16)
        y = x.relu()
        return [y.sum(0), y.sum(1)]

    assert kernels(built(build)) == 2


def test_shared_work_over_many_inputs_is_stored() -> None:
    def build(p: Program) -> list[T]:
        total = p.input(16, 16) + p.input(16, 16) + p.input(16, 16) + p.input(16, 16)
        return [total.sum(0), total.sum(1), total.max()]

    assert kernels(built(build)) == 4


def test_costly_values_are_stored_before_a_contraction() -> None:
    assert kernels(built(lambda p: [p.input(8, 8).exp().matmul(p.input(8, 8))])) == 2
    assert kernels(built(lambda p: [p.input(8, 8).relu().matmul(p.input(8, 8))])) == 1


def test_views_and_arguments_cost_nothing() -> None:
    def build(p: Program) -> list[T]:
        x = p.input(4, 6)
        return [x, x.T, x.reshape(24), x.slice([1, 0], [3, 6]), p.splat(1.0, 3), x.materialize()]

    program = built(build)
    assert kernels(program) == 0
    function = program.body.block.first_op
    assert isinstance(function, FuncOp)
    left = [op.name for op in function.body.block.ops]
    assert "lazy.materialize" not in left


def test_a_view_that_strides_cannot_say_is_a_kernel() -> None:
    assert kernels(built(lambda p: [p.input(4, 6).T.reshape(24)])) == 1
    assert kernels(built(lambda p: [p.input(4, 6).pad([1, 0], [0, 0])])) == 1


def test_only_the_slice_is_stored() -> None:
    groups, _ = plan(
        built(lambda p: [(p.input(100, 4) + 1.0).slice([0, 0], [2, 4])]), FuseFormGroupsPass()
    )
    (group,) = groups
    assert lazy.shape_of(group.outputs[0]) == (2, 4)


def test_many_inputs_are_split() -> None:
    def build(p: Program) -> list[T]:
        total = p.input(4, 4)
        for _ in range(200):
            total = total + p.input(4, 4)
        return [total]

    groups, _ = plan(built(build), FuseFormGroupsPass())
    assert 1 < len(groups) < 8
    assert all(len(group.inputs) <= 64 for group in groups)


def test_groups_name_their_reason() -> None:
    _, remarks = plan(module("softmax"), FuseFormGroupsPass())
    reasons = [x.facts["reason"] for x in remarks if x.id == "fuse.group-formed"]
    assert reasons == ["reduce", "reduce", "result"]


def test_a_deep_program_needs_no_recursion() -> None:
    def build(p: Program) -> list[T]:
        x = p.input(4)
        for _ in range(3000):
            x = x + 1.0
        return [x]

    (group,) = plan(built(build), FuseFormGroupsPass())[0]
    assert isinstance(group, GroupOp)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "func.func @f(%x: index) -> index {\nfunc.return %x : index\n}",
            "found a value of type index",
        ),
        (
            "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "%y = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tensor<4xf32>\n"
            "func.return %y : tensor<4xf32>\n}",
            "found 'builtin.unrealized_conversion_cast'",
        ),
        (
            "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            '"cf.br"() [^bb1] : () -> ()\n^bb1:\nfunc.return %x : tensor<4xf32>\n}',
            "functions of one block: '@f' has 2",
        ),
    ],
)
def test_what_it_cannot_plan_is_a_diagnostic(body: str, message: str) -> None:
    context = Context()
    for dialect in (Builtin, Func, Cf, Lazy):
        context.load_dialect(dialect)
    program = Parser(context, body).parse_module()
    with pytest.raises(DiagnosticException, match=message):
        FuseFormGroupsPass().apply(context, program)
