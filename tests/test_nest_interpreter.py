"""The interpreter of loop nests: spaces in parts, and what it refuses."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from nest_groups import lowered
from nest_random import program
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.memref import MemRef
from xdsl.parser import Parser

from plait.dialects.nest import Nest
from plait.errors import PlaitError
from plait.runtime import interpret_nest
from plait.runtime.interpret import run_module


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Arith, Builtin, Func, MemRef, Nest):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def kernel(body: str, axes: str = "%i = 4") -> ModuleOp:
    return parse(f"""
    nest.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) axes [{axes}] {{ {body} }}
    func.func @main(%x: memref<4xf32>) -> memref<4xf32> {{
      %y = memref.alloc() : memref<4xf32>
      nest.launch @k(%x, %y) : memref<4xf32>, memref<4xf32>
      func.return %y : memref<4xf32>
    }}""")


X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("room", [1, 2, 5, 7, 24, 1000])
@pytest.mark.parametrize("extents", [(), (5,), (2, 3, 4), (1, 7), (3, 0)])
def test_parts_cover_a_space_once_in_order(extents: tuple[int, ...], room: int) -> None:
    parts = list(interpret_nest.parts(extents, room))
    points = [point for part in parts for point in product(*part)]
    assert sorted(points) == list(product(*map(range, extents)))
    assert all(np.prod([len(axis) for axis in part]) <= room for part in parts)


@pytest.mark.parametrize("size", [1, 5])
def test_parts_change_nothing(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        source = program(seed, 4)
        if any(f" {type}" in str(source) for type in ("prod", "sum")):
            continue  # rounded in another order
        module = lowered(source)
        arrays = _arguments(source, seed)
        whole = run_module(module, arrays)
        with monkeypatch.context() as patch:
            patch.setattr(interpret_nest, "PART", size)
            split = run_module(module, arrays)
        for a, b in zip(whole, split, strict=True):
            np.testing.assert_array_equal(a, b)


def _arguments(module: ModuleOp, seed: int) -> list[np.ndarray[Any, Any]]:
    from nest_groups import arguments

    return arguments(module, seed)


def test_argmax_over_parts_takes_the_first_and_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse("""
    nest.kernel @k(%x: memref<6xf32>, %y: memref<i64>) axes [] {
      %v, %at = nest.reduce [argmax] over [%j = 6] {
        %e = nest.load %x[(d0) -> (d0)](%j) : memref<6xf32>
        nest.yield %e, %j : f32, index
      } : f32, index
      %n = arith.index_cast %at : index to i64
      nest.store %n, %y[() -> ()]() : memref<i64>
    }
    func.func @main(%x: memref<6xf32>) -> memref<i64> {
      %y = memref.alloc() : memref<i64>
      nest.launch @k(%x, %y) : memref<6xf32>, memref<i64>
      func.return %y : memref<i64>
    }""")
    nan = float("nan")
    for size in (1, 2, 4, 100):
        monkeypatch.setattr(interpret_nest, "PART", size)
        for values in ([1, 3, 3, 2, 3, 0], [1, nan, 9, nan, 2, 3], [0, 0, 0, 0, 0, 0]):
            x = np.array(values, np.float32)
            assert run_module(module, [x])[0] == np.argmax(x)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%v = nest.load %x[(d0) -> (d0 - 1)](%i) : memref<4xf32>",
            r"@k: 'nest.load' .* leaves axis 0 .*: expected positions from 0 to 3, found -1",
        ),
        (
            "%v = nest.load %x[(d0) -> (d0)](%i) : memref<4xf32>"
            " nest.store %v, %y[(d0) -> (d0 + 1)](%i) : memref<4xf32>",
            r"@k: 'nest.store' .* expected positions from 0 to 3, found 4",
        ),
        (
            "%v = nest.load %x[(d0) -> (d0 + 1)](%i) where (d0) : (d0 - 1 >= 0) : memref<4xf32>",
            r"@k: 'nest.load' .* found 4",
        ),
    ],
)
def test_accesses_outside_of_a_buffer_are_errors(body: str, message: str) -> None:
    with pytest.raises(PlaitError, match=message):
        run_module(kernel(body), [X])


def test_a_masked_access_may_point_anywhere_outside() -> None:
    body = """%v = nest.load %x[(d0) -> (d0 - 1)](%i) where (d0) : (d0 - 1 >= 0) : memref<4xf32>
      nest.store %v, %y[(d0) -> (d0)](%i) : memref<4xf32>"""
    np.testing.assert_array_equal(run_module(kernel(body), [X])[0], [0, 0, 1, 2])
