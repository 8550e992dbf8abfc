"""Any group means the same as one kernel: random programs against the tensor level, and the cases
that are easy to get wrong."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from nest_groups import check, kernel_of, lowered
from nest_random import STEPS, program
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from plait.dialects import nest
from plait.dialects.lazy import Lazy


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Data with NaN and infinities makes numpy warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", STEPS)
def test_each_operation_alone(name: str) -> None:
    for seed in range(12):
        check(program(seed, 1, name), seed)


@pytest.mark.parametrize("steps", [2, 4, 8, 16])
@pytest.mark.parametrize("block", range(4))
def test_random_groups(steps: int, block: int) -> None:
    for seed in range(1000 * steps + 12 * block, 1000 * steps + 12 * (block + 1)):
        check(program(seed, steps), seed)


def parse(signature: str, body: str, results: str) -> ModuleOp:
    """A program of ``lazy`` operations that returns ``%r``, or what ``body`` returns."""
    context = Context()
    for dialect in (Builtin, Func, Lazy):
        context.load_dialect(dialect)
    end = "" if "return" in body else f"return %r : {results}"
    text = f"func.func @main({signature}) -> ({results}) {{\n{body}\n{end}\n}}"
    module = Parser(context, text).parse_module()
    module.verify()
    return module


SOFTMAX = parse(
    "%x: tensor<4x8xf32>",
    """%m = lazy.reduce max %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    %m1 = lazy.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
    %m2 = lazy.expand %m1 : tensor<4x1xf32> -> tensor<4x8xf32>
    %c = lazy.sub %x, %m2 : tensor<4x8xf32>
    %e = lazy.exp %c : tensor<4x8xf32>
    %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    %s1 = lazy.reshape %s : tensor<4xf32> -> tensor<4x1xf32>
    %s2 = lazy.expand %s1 : tensor<4x1xf32> -> tensor<4x8xf32>
    %r = lazy.div %e, %s2 : tensor<4x8xf32>""",
    "tensor<4x8xf32>",
)


def sweeps(module: ModuleOp) -> list[list[str]]:
    """The kinds of each sweep of a kernel."""
    body = kernel_of(module).body.block
    return [[kind.data for kind in op.kinds] for op in body.ops if isinstance(op, nest.ReduceOp)]


def test_softmax_is_three_sweeps_under_its_rows() -> None:
    module = check(SOFTMAX)
    assert kernel_of(module).extents == (4,)
    assert sweeps(module) == [["max"], ["sum"], []]


def test_independent_reductions_share_a_sweep_with_a_store() -> None:
    module = check(
        parse(
            "%x: tensor<4x8xf32>",
            """%q = lazy.mul %x, %x : tensor<4x8xf32>
            %s = lazy.reduce sum %x axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
            %t = lazy.reduce max %q axes = [0, 1] : tensor<4x8xf32> -> tensor<f32>
            return %s, %t, %q : tensor<f32>, tensor<f32>, tensor<4x8xf32>""",
            "tensor<f32>, tensor<f32>, tensor<4x8xf32>",
        )
    )
    kernel = kernel_of(module)
    assert sweeps(module) == [["sum", "max"]]
    assert sum(isinstance(op, nest.LoadOp) for op in kernel.walk()) == 1


@pytest.mark.parametrize("kind", ["set", "add", "mul", "max", "min"])
def test_updates_to_one_place_build_on_each_other(kind: str) -> None:
    """The place does not depend on the loop, but what is there changes in it."""
    check(
        parse(
            "%x: tensor<3x7xf32>, %u: tensor<3x4xf32>",
            f"""%i = lazy.constant dense<3> : tensor<3x4xi64>
            %r = lazy.scatter {kind} %x, %i, %u axis = 1
              : tensor<3x7xf32>, tensor<3x4xi64>, tensor<3x4xf32> -> tensor<3x7xf32>""",
            "tensor<3x7xf32>",
        )
    )


def test_a_reduction_at_a_gathered_position() -> None:
    """The sweep of the reduction comes after the positions, which wait for one themselves."""
    module = check(
        parse(
            "%x: tensor<6x5xf32>, %y: tensor<1x5xf32>",
            """%s = lazy.reduce sum %x axes = [1] : tensor<6x5xf32> -> tensor<6xf32>
            %i = lazy.argmax %y axis = 1 : tensor<1x5xf32> -> tensor<1xi64>
            %r = lazy.gather %s, %i axis = 0 : tensor<6xf32>, tensor<1xi64> -> tensor<1xf32>""",
            "tensor<1xf32>",
        )
    )
    assert sweeps(module) == [["argmax"], ["sum"]]


@pytest.mark.parametrize("operation", ["shl", "shr"])
def test_booleans_have_one_bit_to_shift(operation: str) -> None:
    check(
        parse(
            "%x: tensor<16xi1>, %y: tensor<16xi1>",
            f"%r = lazy.{operation} %x, %y : tensor<16xi1>",
            "tensor<16xi1>",
        )
    )


@pytest.mark.parametrize("type", ["i8", "i32", "i64", "ui8", "ui64"])
@pytest.mark.parametrize("operation", ["div", "rem"])
def test_dividing_by_zero_gives_zero(operation: str, type: str) -> None:
    check(
        parse(
            f"%x: tensor<64x{type}>, %y: tensor<64x{type}>",
            f"%r = lazy.{operation} %x, %y : tensor<64x{type}>",
            f"tensor<64x{type}>",
        )
    )


def test_a_smaller_output_is_stored_by_its_own_points_only() -> None:
    module = check(
        parse(
            "%x: tensor<5xf32>, %y: tensor<f32>",
            """%a = lazy.exp %x : tensor<5xf32>
            %b = lazy.exp %y : tensor<f32>
            return %a, %b : tensor<5xf32>, tensor<f32>""",
            "tensor<5xf32>, tensor<f32>",
        )
    )
    stores = [op for op in kernel_of(module).walk() if isinstance(op, nest.StoreOp)]
    guarded = [op for op in stores if not op.map.data.results]
    assert len(guarded) == 1 and guarded[0].where is not None


def test_a_group_without_elements_in_an_operand() -> None:
    check(
        parse(
            "%x: tensor<3x4xi32>, %i: tensor<0x4xi64>",
            """%u = lazy.constant dense<> : tensor<0x4xi32>
            %r = lazy.scatter add %x, %i, %u axis = 0
              : tensor<3x4xi32>, tensor<0x4xi64>, tensor<0x4xi32> -> tensor<3x4xi32>""",
            "tensor<3x4xi32>",
        )
    )


def _chain(count: int) -> ModuleOp:
    lines = [f"%v{k + 1} = lazy.neg %v{k} : tensor<4xf32>" for k in range(count)]
    body = "\n".join([*lines, f"%r = lazy.neg %v{count} : tensor<4xf32>"])
    return parse("%v0: tensor<4xf32>", body, "tensor<4xf32>")


def _mixing(count: int) -> ModuleOp:
    """Transposes and reshapes that never fold."""
    lines: list[str] = []
    for k in range(count):
        lines.append(
            f"%t{k} = lazy.permute %v{k} permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>"
        )
        lines.append(f"%v{k + 1} = lazy.reshape %t{k} : tensor<6x4xf32> -> tensor<4x6xf32>")
    lines.append(f"%r = lazy.neg %v{count} : tensor<4x6xf32>")
    return parse("%v0: tensor<4x6xf32>", "\n".join(lines), "tensor<4x6xf32>")


def _outputs(count: int) -> ModuleOp:
    lines = [f"%v{k + 1} = lazy.neg %v{k} : tensor<4xf32>" for k in range(count)]
    types = ", ".join(["tensor<4xf32>"] * count)
    names = ", ".join(f"%v{k + 1}" for k in range(count))
    return parse("%v0: tensor<4xf32>", "\n".join([*lines, f"return {names} : {types}"]), types)


def test_views_that_never_fold_keep_their_meaning() -> None:
    for count in (5, 12, 40):
        check(_mixing(count))


@pytest.mark.parametrize(("make", "count"), [(_chain, 1000), (_mixing, 100), (_outputs, 400)])
def test_time_grows_with_the_group(make: Callable[[int], ModuleOp], count: int) -> None:
    """Four times the group takes about four times as long: sixteen would be quadratic."""

    def seconds(size: int) -> float:
        module = make(size)
        times: list[float] = []
        for _ in range(3):
            start = time.process_time()
            lowered(module)
            times.append(time.process_time() - start)
        return float(np.min(times))

    assert seconds(4 * count) < 9 * seconds(count)
