"""Kernels through machine loops and LLVM, against numpy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func, get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import nest
from plait.lowering.convert_nest_to_loops import ConvertNestToLoopsPass
from plait.runtime import cpu_jit
from plait.runtime.cpu import CompiledPlan

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(0)


def lower(text: str, vector_bytes: int | None = None) -> ModuleOp:
    ctx = Context()
    for name, dialect in get_all_dialects().items():
        ctx.register_dialect(name, dialect)
    ctx.register_dialect("nest", lambda: nest.Nest)
    module = Parser(ctx, text).parse_module()
    module.verify()
    ConvertNestToLoopsPass(vector_bytes or cpu_jit.vector_bytes()).apply(ctx, module)
    module.verify()
    return module


def shape_text(array: Array, type: str) -> str:
    return "memref<" + "".join(f"{n}x" for n in array.shape) + type + ">"


def program(kernel: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """One kernel ``@k`` whose parameters are the inputs and outputs, and its host."""
    every = {**inputs, **outputs}
    parameters = ", ".join(f"%{name}: {type}" for name, type in every.items())
    given = ", ".join(f"%{name}: {type}" for name, type in inputs.items())
    allocs = "\n".join(f"%{name} = memref.alloc() : {type}" for name, type in outputs.items())
    names = ", ".join(f"%{name}" for name in every)
    returned = ", ".join(f"%{name}" for name in outputs)
    for name, type in every.items():
        kernel = kernel.replace(f"<{name}>", type)
    return f"""
    nest.kernel @k({parameters}) {kernel}
    func.func @main({given}) -> ({", ".join(outputs.values())}) {{
      {allocs}
      nest.launch @k({names}) : {", ".join(every.values())}
      func.return {returned} : {", ".join(outputs.values())}
    }}"""


def run(kernel: str, inputs: dict[str, tuple[str, Array]], outputs: dict[str, str]) -> list[Array]:
    """Runs the kernel with every vector width; all agree closely, and the last is returned."""
    types = {name: shape_text(array, type) for name, (type, array) in inputs.items()}
    text = program(kernel, types, outputs)
    arrays = [array for _, array in inputs.values()]
    found: list[list[Array]] = []
    for width in (16, 32, 64):
        for threads in (1, 2):
            found.append(CompiledPlan(lower(text, width), threads=threads).run(*arrays))
    for other in found[:-1]:
        for a, b in zip(other, found[-1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    return found[-1]


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


SIZES = [(1, 1), (1, 7), (7, 1), (5, 3), (16, 32), (37, 53), (3, 200), (200, 3), (0, 4), (4, 0)]


@pytest.mark.parametrize("shape", SIZES)
def test_pointwise(shape: tuple[int, int]) -> None:
    rows, columns = shape
    kernel = f"""axes [%i = {rows}, %j = {columns}] {{
      %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
      %b = nest.load %y[(d0) -> (d0)](%j) : <y>
      %s = arith.addf %a, %b : f32
      %e = math.tanh %s : f32
      nest.store %e, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }}"""
    x, y = normal(rows, columns), normal(columns)
    (found,) = run(kernel, {"x": ("f32", x), "y": ("f32", y)}, {"o": shape_text(x, "f32")})
    np.testing.assert_allclose(found, np.tanh(x + y), rtol=1e-5)


@pytest.mark.parametrize("shape", SIZES)
def test_transpose(shape: tuple[int, int]) -> None:
    rows, columns = shape
    kernel = f"""axes [%i = {columns}, %j = {rows}] {{
      %a = nest.load %x[(d0, d1) -> (d1, d0)](%i, %j) : <x>
      nest.store %a, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }}"""
    x = normal(rows, columns)
    (found,) = run(kernel, {"x": ("f32", x)}, {"o": shape_text(x.T, "f32")})
    np.testing.assert_array_equal(found, x.T)


@pytest.mark.parametrize("shape", SIZES)
def test_row_reductions_of_several_kinds(shape: tuple[int, int]) -> None:
    rows, columns = shape
    kernel = f"""axes [%i = {rows}] {{
      %s, %m, %n = nest.reduce [sum, max, min] over [%j = {columns}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a, %a, %a : f32, f32, f32
      }} : f32, f32, f32
      nest.store %s, %o[(d0) -> (d0)](%i) : <o>
      nest.store %m, %p[(d0) -> (d0)](%i) : <p>
      nest.store %n, %q[(d0) -> (d0)](%i) : <q>
    }}"""
    x = normal(rows, columns)
    out = f"memref<{rows}xf32>"
    s, m, n = run(kernel, {"x": ("f32", x)}, {"o": out, "p": out, "q": out})
    np.testing.assert_allclose(s, x.sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(m, x.max(1, initial=-np.inf))
    np.testing.assert_array_equal(n, x.min(1, initial=np.inf))


@pytest.mark.parametrize("shape", SIZES)
def test_column_reduction(shape: tuple[int, int]) -> None:
    rows, columns = shape
    kernel = f"""axes [%j = {columns}] {{
      %s = nest.reduce [sum] over [%i = {rows}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a : f32
      }} : f32
      nest.store %s, %o[(d0) -> (d0)](%j) : <o>
    }}"""
    x = normal(rows, columns)
    (found,) = run(kernel, {"x": ("f32", x)}, {"o": f"memref<{columns}xf32>"})
    np.testing.assert_allclose(found, x.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (16, 32), (37, 53), (3, 200)])
def test_argmax_first_wins_and_nan_is_largest(shape: tuple[int, int]) -> None:
    rows, columns = shape
    kernel = f"""axes [%i = {rows}] {{
      %v, %w = nest.reduce [argmax] over [%j = {columns}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %p = nest.index (d0) -> (d0) (%j)
        %c = arith.index_cast %p : index to i32
        nest.yield %a, %c : f32, i32
      }} : f32, i32
      nest.store %w, %o[(d0) -> (d0)](%i) : <o>
    }}"""
    x = np.round(normal(rows, columns))
    x[RNG.random(x.shape) < 0.01] = np.nan
    x[0] = -np.inf
    (found,) = run(kernel, {"x": ("f32", x)}, {"o": f"memref<{rows}xi32>"})
    np.testing.assert_array_equal(found, x.argmax(1))


@pytest.mark.parametrize("shape", [(4, 8), (5, 37), (3, 1)])
def test_softmax_three_sweeps(shape: tuple[int, int]) -> None:
    rows, columns = shape
    kernel = f"""axes [%i = {rows}] {{
      %m = nest.reduce [max] over [%j = {columns}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a : f32
      }} : f32
      %s = nest.reduce [sum] over [%j = {columns}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %d = arith.subf %a, %m : f32
        %e = math.exp %d : f32
        nest.yield %e : f32
      }} : f32
      nest.reduce [] over [%j = {columns}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %d = arith.subf %a, %m : f32
        %e = math.exp %d : f32
        %q = arith.divf %e, %s : f32
        nest.store %q, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      }}
    }}"""
    x = normal(rows, columns)
    (found,) = run(kernel, {"x": ("f32", x)}, {"o": shape_text(x, "f32")})
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 5, 7, 13), (1, 4, 8, 16, 16), (2, 2, 3, 4, 2)])
def test_padded_convolution(shape: tuple[int, int, int, int, int]) -> None:
    n, ci, co, h, w = shape
    kernel = f"""axes [%n = {n}, %co = {co}, %h = {h}, %v = {w}] {{
      %s = nest.reduce [sum] over [%ci = {ci}, %kh = 3, %kw = 3] {{
        %a = nest.load %x[(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 + d4 - 1, d3 + d5 - 1)]
          (%n, %ci, %h, %v, %kh, %kw) where (d0, d1, d2, d3, d4, d5) : (d2 + d4 - 1 >= 0,
            d2 + d4 - 1 <= {h - 1}, d3 + d5 - 1 >= 0, d3 + d5 - 1 <= {w - 1}) : <x>
        %b = nest.load %w[(d0, d1, d2, d3) -> (d0, d1, d2, d3)](%co, %ci, %kh, %kw) : <w>
        %p = arith.mulf %a, %b : f32
        nest.yield %p : f32
      }} : f32
      nest.store %s, %o[(d0, d1, d2, d3) -> (d0, d1, d2, d3)](%n, %co, %h, %v) : <o>
    }}"""
    x, weight = normal(n, ci, h, w), normal(co, ci, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    wanted = np.einsum("ncyxhw,ochw->noyx", views, weight)
    inputs = {"x": ("f32", x), "w": ("f32", weight)}
    (found,) = run(kernel, inputs, {"o": shape_text(wanted, "f32")})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(37, 41, 19), (6, 16, 4), (1, 5, 3), (64, 64, 64)])
def test_matrix_product(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    kernel = f"""axes [%i = {m}, %j = {n}] {{
      %s = nest.reduce [sum] over [%k = {k}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %k) : <x>
        %b = nest.load %y[(d0, d1) -> (d0, d1)](%k, %j) : <y>
        %p = arith.mulf %a, %b : f32
        nest.yield %p : f32
      }} : f32
      nest.store %s, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }}"""
    x, y = normal(m, k), normal(k, n)
    out = f"memref<{m}x{n}xf32>"
    (found,) = run(kernel, {"x": ("f32", x), "y": ("f32", y)}, {"o": out})
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 7), (20, 33)])
def test_scan_along_rows_and_columns(shape: tuple[int, int]) -> None:
    rows, columns = shape
    for along, across, wanted in (("i", "j", 0), ("j", "i", 1)):
        extents = {"i": rows, "j": columns}
        kernel = f"""axes [%{across} = {extents[across]}] {{
          %zero = arith.constant 0.0 : f32
          %last = nest.sequential over [%{along} = {extents[along]}] carrying [%r = %zero : f32] {{
            %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
            %n = arith.addf %r, %a : f32
            nest.store %n, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
            nest.yield %n : f32
          }}
        }}"""
        x = normal(rows, columns)
        (found,) = run(kernel, {"x": ("f32", x)}, {"o": shape_text(x, "f32")})
        np.testing.assert_allclose(found, x.cumsum(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 5, 40])
def test_gather_and_scatter(columns: int) -> None:
    rows, count = 9, 20
    gather = f"""axes [%i = {count}, %j = {columns}] {{
      %t = nest.load %t[(d0) -> (d0)](%i) : <t>
      %p = arith.index_cast %t : i32 to index
      %v = nest.load %x[(d0, d1) -> (d0, d1)](%p, %j) : <x>
      nest.store %v, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }}""".replace("%t =", "%tv =").replace("%t :", "%tv :")
    gather = gather.replace("index_cast %t ", "index_cast %tv ")
    x, t = normal(rows, columns), RNG.integers(0, rows, count).astype(np.int32)
    inputs = {"x": ("f32", x), "t": ("i32", t)}
    (found,) = run(gather, inputs, {"o": f"memref<{count}x{columns}xf32>"})
    np.testing.assert_array_equal(found, x[t])
    scatter = f"""axes [%j = {columns}] {{
      %zero = arith.constant 0.0 : f32
      nest.reduce [] over [%i = {rows}] {{
        nest.store %zero, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      }}
      nest.sequential over [%i = {count}] {{
        %tv = nest.load %t[(d0) -> (d0)](%i) : <t>
        %p = arith.index_cast %tv : i32 to index
        %u = nest.load %y[(d0, d1) -> (d0, d1)](%i, %j) : <y>
        %v = nest.load %o[(d0, d1) -> (d0, d1)](%p, %j) : <o>
        %s = arith.addf %u, %v : f32
        nest.store %s, %o[(d0, d1) -> (d0, d1)](%p, %j) : <o>
      }}
    }}"""
    y = normal(count, columns)
    inputs = {"y": ("f32", y), "t": ("i32", t)}
    (found,) = run(scatter, inputs, {"o": f"memref<{rows}x{columns}xf32>"})
    wanted = np.zeros((rows, columns), np.float32)
    np.add.at(wanted, t, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_choice_by_test_and_position() -> None:
    """A concatenation of x (10) and y (27), plus the position of each element."""
    kernel = """axes [%i = 37] {
      %c = nest.test (d0) : (9 - d0 >= 0) (%i)
      %a = nest.load %x[(d0) -> (d0)](%i) where (d0) : (9 - d0 >= 0) : <x>
      %b = nest.load %y[(d0) -> (d0 - 10)](%i) where (d0) : (d0 - 10 >= 0) : <y>
      %v = arith.select %c, %a, %b : f32
      %p = nest.index (d0) -> (d0 * 2) (%i)
      %q = arith.index_cast %p : index to i32
      %f = arith.sitofp %q : i32 to f32
      %s = arith.addf %v, %f : f32
      nest.store %s, %o[(d0) -> (36 - d0)](%i) : <o>
    }"""
    kernel = kernel.replace("(36 - d0)", "(36 + d0 * -1)")
    x, y = normal(10), normal(27)
    (found,) = run(kernel, {"x": ("f32", x), "y": ("f32", y)}, {"o": "memref<37xf32>"})
    wanted = np.concatenate([x, y]) + np.arange(37, dtype=np.float32) * 2
    np.testing.assert_allclose(found, wanted[::-1], rtol=1e-6)


def test_reshaped_load_with_quotients() -> None:
    kernel = """axes [%i = 12, %j = 35] {
      %a = nest.load %x[(d0, d1) -> ((d0 * 35 + d1) floordiv 42, (d0 * 35 + d1) mod 42)]
        (%i, %j) : <x>
      %b = nest.load %y[(d0, d1) -> (d1 floordiv 5, d1 mod 5)](%i, %j) : <y>
      %s = arith.addf %a, %b : f32
      nest.store %s, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }"""
    x, y = normal(10, 42), normal(7, 5)
    (found,) = run(kernel, {"x": ("f32", x), "y": ("f32", y)}, {"o": "memref<12x35xf32>"})
    np.testing.assert_allclose(found, x.reshape(12, 35) + y.reshape(35), rtol=1e-6)


def test_broadcast_through_a_quotient() -> None:
    kernel = """axes [%i = 60] {
      %a = nest.load %x[(d0) -> (d0 floordiv 4)](%i) : <x>
      %b = nest.load %y[(d0) -> (d0 mod 4)](%i) : <y>
      %s = arith.mulf %a, %b : f32
      nest.store %s, %o[(d0) -> (d0)](%i) : <o>
    }"""
    x, y = normal(15), normal(4)
    (found,) = run(kernel, {"x": ("f32", x), "y": ("f32", y)}, {"o": "memref<60xf32>"})
    np.testing.assert_allclose(found, (x[:, None] * y).ravel(), rtol=1e-6)


@pytest.mark.parametrize("columns", [3, 16, 37])
def test_half_and_boolean(columns: int) -> None:
    kernel = f"""axes [%i = 5, %j = {columns}] {{
      %h = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
      %a = arith.extf %h : f16 to f32
      %m = nest.load %y[(d0, d1) -> (d0, d1)](%i, %j) where (d0, d1) : (d1 - 1 >= 0) : <y>
      %z = arith.constant 0.5 : f32
      %v = arith.select %m, %a, %z : f32
      %r = arith.truncf %v : f32 to f16
      %c = arith.cmpf ogt, %v, %z : f32
      nest.store %r, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      nest.store %c, %p[(d0, d1) -> (d0, d1)](%i, %j) : <p>
    }}"""
    x, y = normal(5, columns).astype(np.float16), RNG.random((5, columns)) < 0.5
    outputs = {"o": f"memref<5x{columns}xf16>", "p": f"memref<5x{columns}xi1>"}
    found, flags = run(kernel, {"x": ("f16", x), "y": ("i1", y)}, outputs)
    mask = y.copy()
    mask[:, 0] = False
    wanted = np.where(mask, x, np.float16(0.5))
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(flags, wanted > 0.5)


def test_nested_reductions() -> None:
    kernel = """axes [%i = 6] {
      %t = nest.reduce [max] over [%j = 9] {
        %s = nest.reduce [sum] over [%k = 21] {
          %a = nest.load %x[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <x>
          nest.yield %a : f32
        } : f32
        nest.store %s, %p[(d0, d1) -> (d0, d1)](%i, %j) : <p>
        nest.yield %s : f32
      } : f32
      nest.store %t, %o[(d0) -> (d0)](%i) : <o>
    }"""
    x = normal(6, 9, 21)
    outputs = {"o": "memref<6xf32>", "p": "memref<6x9xf32>"}
    found, partial = run(kernel, {"x": ("f32", x)}, outputs)
    np.testing.assert_allclose(partial, x.sum(2), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, x.sum(2).max(1), rtol=1e-4, atol=1e-5)


def test_integer_and_boolean_reductions() -> None:
    kernel = """axes [%i = 4] {
      %s, %m, %any, %all = nest.reduce [sum, max, any, all] over [%j = 45] {
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %z = arith.constant 90 : i32
        %c = arith.cmpi sgt, %a, %z : i32
        %d = arith.cmpi slt, %a, %z : i32
        nest.yield %a, %a, %c, %d : i32, i32, i1, i1
      } : i32, i32, i1, i1
      nest.store %s, %o[(d0) -> (d0)](%i) : <o>
      nest.store %m, %p[(d0) -> (d0)](%i) : <p>
      nest.store %any, %q[(d0) -> (d0)](%i) : <q>
      nest.store %all, %r[(d0) -> (d0)](%i) : <r>
    }"""
    x = RNG.integers(-100, 100, (4, 45)).astype(np.int32)
    x[0] = -5
    outputs = {"o": "memref<4xi32>", "p": "memref<4xi32>", "q": "memref<4xi1>", "r": "memref<4xi1>"}
    s, m, any_, all_ = run(kernel, {"x": ("i32", x)}, outputs)
    np.testing.assert_array_equal(s, x.sum(1))
    np.testing.assert_array_equal(m, x.max(1))
    np.testing.assert_array_equal(any_, (x > 90).any(1))
    np.testing.assert_array_equal(all_, (x < 90).all(1))


def test_reduction_to_a_scalar() -> None:
    kernel = """axes [] {
      %s = nest.reduce [sum] over [%i = 30, %j = 70] {
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a : f32
      } : f32
      nest.store %s, %o[() -> ()]() : <o>
    }"""
    x = normal(30, 70)
    (found,) = run(kernel, {"x": ("f32", x)}, {"o": "memref<f32>"})
    np.testing.assert_allclose(found, x.sum(), rtol=1e-4)


@pytest.mark.parametrize("columns", [1, 5])
def test_large_reductions_of_few_points_are_split(columns: int) -> None:
    rows = 128 * 1024
    kernel = f"""axes [%j = {columns}] {{
      %zero = nest.load %y[(d0) -> (d0)](%j) : <y>
      %m, %w = nest.reduce [argmax] over [%i = {rows}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %c = arith.index_cast %i : index to i64
        nest.yield %a, %c : f32, i64
      }} : f32, i64
      %s, %t = nest.reduce [sum, max] over [%i = {rows}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %d = arith.subf %a, %m : f32
        %e = arith.addf %d, %zero : f32
        nest.yield %e, %d : f32, f32
      }} : f32, f32
      nest.reduce [] over [%i = {rows}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %d = arith.subf %a, %m : f32
        nest.store %d, %q[(d0, d1) -> (d0, d1)](%i, %j) : <q>
      }}
      nest.store %w, %o[(d0) -> (d0)](%j) : <o>
      nest.store %s, %p[(d0) -> (d0)](%j) : <p>
    }}"""
    x, y = normal(rows, columns), normal(columns)
    outputs = {
        "o": f"memref<{columns}xi64>",
        "p": f"memref<{columns}xf32>",
        "q": shape_text(x, "f32"),
    }
    where, sums, moved = run(kernel, {"x": ("f32", x), "y": ("f32", y)}, outputs)
    np.testing.assert_array_equal(where, x.argmax(0))
    np.testing.assert_array_equal(moved, x - x.max(0))
    wanted = (x.astype(np.float64) - x.max(0) + y).sum(0)
    np.testing.assert_allclose(sums, wanted, rtol=1e-4)
    text = program(kernel, {"x": shape_text(x, "f32"), "y": shape_text(y, "f32")}, outputs)
    names = [op.sym_name.data for op in lower(text).ops if isinstance(op, func.FuncOp)]
    assert names == ["k_part0", "k_part1", "k", "main"]  # the last two sweeps are one


def test_results_do_not_depend_on_threads() -> None:
    kernel = """axes [%i = 300] {
      %s = nest.reduce [sum] over [%j = 1003] {
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a : f32
      } : f32
      nest.store %s, %o[(d0) -> (d0)](%i) : <o>
    }"""
    x = normal(300, 1003)
    text = program(kernel, {"x": shape_text(x, "f32")}, {"o": "memref<300xf32>"})
    results = [CompiledPlan(lower(text), threads=n).run(x)[0].copy() for n in (1, 2, 3)]
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()


def test_foreign_operation_is_a_diagnostic() -> None:
    kernel = """axes [%i = 4] {
      %v = "test.op"() : () -> f32
      nest.store %v, %o[(d0) -> (d0)](%i) : <o>
    }"""
    with pytest.raises(DiagnosticException, match=r"'test\.op' inside a kernel"):
        lower(program(kernel, {}, {"o": "memref<4xf32>"}))


MLIR_OPT = shutil.which("mlir-opt") or shutil.which("mlir-opt-19")


@pytest.mark.mlir
@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt is not installed")
def test_mlir_opt_accepts_level_4(tmp_path: Path) -> None:
    assert MLIR_OPT is not None
    kernel = """axes [%i = 6, %v = 37] {
      %t, %w = nest.reduce [sum, max] over [%j = 9] {
        %a = nest.load %x[(d0, d1, d2) -> (d0, d1, d2 - 1)](%i, %j, %v)
          where (d0, d1, d2) : (d2 - 1 >= 0) : <x>
        %e = math.exp %a : f32
        nest.yield %e, %a : f32, f32
      } : f32, f32
      nest.store %t, %o[(d0, d1) -> (d0, d1)](%i, %v) : <o>
      nest.store %w, %p[(d0, d1) -> (d0, d1)](%i, %v) : <p>
    }"""
    out = "memref<6x37xf32>"
    text = program(kernel, {"x": "memref<6x9x37xf32>"}, {"o": out, "p": out})
    path = tmp_path / "level4.mlir"
    with path.open("w") as file:
        Printer(file, print_generic_format=True).print_op(lower(text))
    done = subprocess.run([MLIR_OPT, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
