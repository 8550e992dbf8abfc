"""Kernels as GPU functions, in the checking simulator, against the interpreter of loop nests.

Every kernel runs under both kinds of schedule: a point a thread, and a point a block.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from gpu_kernels import RNG, check, extremes, memref, normal, parse, program, with_specials
from xdsl.dialects import gpu, llvm
from xdsl.dialects import memref as memref_ops
from xdsl.dialects import vector as ops
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import nest
from plait.lowering.convert_nest_to_gpu import ConvertNestToGpuPass, geometry
from plait.lowering.target_cuda import functions_of
from plait.runtime.cuda_sim import CompiledPlan

simulated = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
scheduled = pytest.mark.parametrize("reduction", ["serial", "warp", "block"])

SIZES = [(1, 1), (1, 7), (7, 1), (5, 33), (3, 257), (300, 3), (2, 1000), (0, 4), (4, 0)]


@simulated
@scheduled
@pytest.mark.parametrize("shape", SIZES)
def test_rows_of_several_kinds(shape: tuple[int, int], reduction: str) -> None:
    rows, columns = shape
    kernel = f"""axes [%i = {rows}] SCHEDULE {{
      %s, %m, %n = nest.reduce [sum, max, min] over [%j = {columns}] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a, %a, %a : f32, f32, f32
      }} : f32, f32, f32
      nest.store %s, %o[(d0) -> (d0)](%i) : <o>
      nest.store %m, %p[(d0) -> (d0)](%i) : <p>
      nest.store %n, %q[(d0) -> (d0)](%i) : <q>
    }}"""
    type = memref((rows,), "f32")
    x = normal(rows, columns)
    check(kernel, reduction, {"x": ("f32", x)}, {"o": type, "p": type, "q": type})


@simulated
@scheduled
@pytest.mark.parametrize("columns", [30, 32, 33, 1000])
@pytest.mark.parametrize("type", ["f64", "i8", "i32", "i64"])
def test_values_of_every_type_move_between_lanes(type: str, columns: int, reduction: str) -> None:
    dtype = np.dtype(np.float64 if type == "f64" else f"int{type[1:]}")
    x = (normal(3, columns) * 40).astype(dtype)
    outputs = {"o": f"memref<3x{type}>", "q": f"memref<3x{type}>", "r": "memref<3xi64>"}
    check(extremes(type, 3, columns), reduction, {"x": (type, x)}, outputs)


@simulated
@scheduled
def test_nan_wins(reduction: str) -> None:
    kernel = """axes [%i = 4] SCHEDULE {
      %m, %n = nest.reduce [max, min] over [%j = 300] {
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a, %a : f32, f32
      } : f32, f32
      nest.store %m, %o[(d0) -> (d0)](%i) : <o>
      nest.store %n, %p[(d0) -> (d0)](%i) : <p>
    }"""
    x = normal(4, 300)
    x[1, 299] = x[2, 0] = np.nan
    x[3, 5] = -np.inf
    check(kernel, reduction, {"x": ("f32", x)}, {"o": "memref<4xf32>", "p": "memref<4xf32>"})


@simulated
@scheduled
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_arg_reductions(kind: str, reduction: str) -> None:
    kernel = f"""axes [%i = 5] SCHEDULE {{
      %m, %p = nest.reduce [{kind}] over [%j = 300] {{
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a, %j : f32, index
      }} : f32, index
      %n = arith.index_cast %p : index to i64
      nest.store %m, %o[(d0) -> (d0)](%i) : <o>
      nest.store %n, %q[(d0) -> (d0)](%i) : <q>
    }}"""
    x = np.round(with_specials(5, 300))
    x[2] = 1.0
    x[3, [40, 290]] = np.nan
    x[4] = -np.inf if kind == "argmax" else np.inf
    check(kernel, reduction, {"x": ("f32", x)}, {"o": "memref<5xf32>", "q": "memref<5xi64>"})


@simulated
@scheduled
def test_softmax_in_three_sweeps(reduction: str) -> None:
    kernel = """axes [%i = 6] SCHEDULE {
      %m = nest.reduce [max] over [%j = 300] {
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %a : f32
      } : f32
      %s = nest.reduce [sum] over [%j = 300] {
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %b = arith.subf %a, %m : f32
        %e = math.exp %b : f32
        nest.yield %e : f32
      } : f32
      nest.reduce [] over [%j = 300] {
        %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %b = arith.subf %a, %m : f32
        %e = math.exp %b : f32
        %q = arith.divf %e, %s : f32
        nest.store %q, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      }
    }"""
    check(kernel, reduction, {"x": ("f32", normal(6, 300))}, {"o": "memref<6x300xf32>"})


@simulated
@scheduled
def test_reductions_of_integers_and_booleans(reduction: str) -> None:
    kernel = """axes [] SCHEDULE {
      %z = arith.constant 3 : i16
      %s, %m, %a, %b = nest.reduce [sum, max, any, all] over [%j = 70, %k = 5] {
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%j, %k) : <x>
        %t = arith.cmpi slt, %v, %z : i16
        nest.yield %v, %v, %t, %t : i16, i16, i1, i1
      } : i16, i16, i1, i1
      nest.store %s, %o[() -> ()]() : <o>
      nest.store %m, %p[() -> ()]() : <p>
      nest.store %a, %q[() -> ()]() : <q>
      nest.store %b, %r[() -> ()]() : <r>
    }"""
    x = RNG.integers(-(2**15), 2**15, (70, 5)).astype(np.int16)
    types = {"o": "i16", "p": "i16", "q": "i1", "r": "i1"}
    outputs = {name: f"memref<{type}>" for name, type in types.items()}
    check(kernel, reduction, {"x": ("i16", x)}, outputs)


@simulated
@scheduled
def test_nested_reductions(reduction: str) -> None:
    kernel = """axes [%i = 4] SCHEDULE {
      %s, %m, %p = nest.reduce [sum, argmax] over [%j = 70] {
        %q = nest.reduce [max] over [%k = 4] {
          %v = nest.load %x[(d0, d1, d2) -> (d0, d1 * 4 + d2)](%i, %j, %k) : <x>
          nest.yield %v : f32
        } : f32
        nest.store %q, %t[(d0, d1) -> (d0, d1)](%i, %j) : <t>
        nest.yield %q, %q, %j : f32, f32, index
      } : f32, f32, index
      %e = arith.addf %s, %m : f32
      %n = arith.index_cast %p : index to i64
      nest.store %e, %y[(d0) -> (d0)](%i) : <y>
      nest.store %n, %z[(d0) -> (d0)](%i) : <z>
    }"""
    outputs = {"t": "memref<4x70xf32>", "y": "memref<4xf32>", "z": "memref<4xi64>"}
    check(kernel, reduction, {"x": ("f32", normal(4, 280))}, outputs)


@simulated
@scheduled
def test_loop_in_order_between_reductions(reduction: str) -> None:
    kernel = """axes [%i = 3] SCHEDULE {
      %s = nest.reduce [sum] over [%j = 300] {
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %v : f32
      } : f32
      %last = nest.sequential over [%j = 300] carrying [%a = %s : f32] {
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %n = arith.addf %a, %v : f32
        nest.store %n, %t[(d0, d1) -> (d0, d1)](%i, %j) : <t>
        nest.yield %n : f32
      }
      %u = nest.reduce [max] over [%j = 300] {
        %v = nest.load %t[(d0, d1) -> (d0, d1)](%i, %j) : <t>
        %w = arith.subf %v, %last : f32
        nest.yield %w : f32
      } : f32
      nest.store %u, %y[(d0) -> (d0)](%i) : <y>
    }"""
    outputs = {"t": "memref<3x300xf32>", "y": "memref<3xf32>"}
    check(kernel, reduction, {"x": ("f32", normal(3, 300))}, outputs)


@simulated
@scheduled
@pytest.mark.parametrize("type", ["f16", "i1", "i16", "f64"])
def test_what_a_loop_in_order_gives_to_all(type: str, reduction: str) -> None:
    zero = "false" if type == "i1" else f"{'0.0' if type[0] == 'f' else '0'} : {type}"
    kernel = f"""axes [%i = 3] SCHEDULE {{
      %z = arith.constant {zero}
      %last = nest.sequential over [%j = 9] carrying [%a = %z : {type}] {{
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %v : {type}
      }}
      nest.reduce [] over [%j = 9] {{
        nest.store %last, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      }}
    }}"""
    dtype = {"f16": np.float16, "i1": np.bool_, "i16": np.int16, "f64": np.float64}[type]
    x = (normal(3, 9) * 40).astype(dtype)
    check(kernel, reduction, {"x": (type, x)}, {"o": f"memref<3x9x{type}>"})


@simulated
@scheduled
def test_memory_that_changes_hands(reduction: str) -> None:
    """Sweeps that read what other threads stored; single stores that all threads read."""
    kernel = """axes [%i = 3] SCHEDULE {
      nest.reduce [] over [%j = 300] {
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        %w = arith.addf %v, %v : f32
        nest.store %w, %t[(d0, d1) -> (d0, d1)](%i, %j) : <t>
      }
      %u = nest.load %t[(d0) -> (d0, 299)](%i) : <t>
      nest.store %u, %y[(d0) -> (d0)](%i) : <y>
      nest.reduce [] over [%j = 300] {
        %v = nest.load %t[(d0, d1) -> (d0, 299 - d1)](%i, %j) : <t>
        %b = nest.load %y[(d0, d1) -> (d0)](%i, %j) : <y>
        %w = arith.mulf %v, %b : f32
        nest.store %w, %z[(d0, d1) -> (d0, d1)](%i, %j) : <z>
      }
      %o = nest.load %y[(d0) -> (d0)](%i) : <y>
      %p = arith.addf %o, %o : f32
      nest.store %p, %y[(d0) -> (d0)](%i) : <y>
    }"""
    outputs = {"t": "memref<3x300xf32>", "y": "memref<3xf32>", "z": "memref<3x300xf32>"}
    module = check(kernel, reduction, {"x": ("f32", normal(3, 300))}, outputs)
    kind = llvm.CallIntrinsicOp if reduction == "warp" else gpu.BarrierOp
    barriers = [op for op in functions_of(module)[0].walk() if isinstance(op, kind)]
    assert len(barriers) == (0 if reduction == "serial" else 3)


@simulated
@scheduled
def test_masks_keep_accesses_in_bounds(reduction: str) -> None:
    kernel = """axes [%i = 20] SCHEDULE {
      %s = nest.reduce [sum] over [%k = 5] {
        %v = nest.load %x[(d0, d1) -> (d0 + d1 - 2)](%i, %k)
          where (d0, d1) : (d0 + d1 - 2 >= 0, 17 - d0 - d1 >= 0) : <x>
        nest.yield %v : f32
      } : f32
      nest.store %s, %o[(d0) -> (d0 floordiv 2)](%i) where (d0) : (d0 mod 2 == 0) : <o>
    }"""
    check(kernel, reduction, {"x": ("f32", normal(16))}, {"o": "memref<10xf32>"})


@simulated
@scheduled
def test_positions_from_data(reduction: str) -> None:
    kernel = """axes [%i = 4] SCHEDULE {
      %s = nest.reduce [sum] over [%j = 100] {
        %k = nest.load %n[(d0, d1) -> (d0, d1)](%i, %j) : <n>
        %p = arith.index_cast %k : i64 to index
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%p, %j) : <x>
        nest.yield %v : f32
      } : f32
      nest.store %s, %o[(d0) -> (d0)](%i) : <o>
    }"""
    positions = RNG.integers(0, 30, (4, 100))
    inputs = {"x": ("f32", normal(30, 100)), "n": ("i64", positions)}
    check(kernel, reduction, inputs, {"o": "memref<4xf32>"})


@simulated
@scheduled
@pytest.mark.parametrize("type", ["f16", "f64", "i8", "i1"])
def test_padding_with_a_constant(type: str, reduction: str) -> None:
    value = {"f16": "1.5", "f64": "-0.1", "i8": "-128", "i1": "true"}[type]
    constant = value if type == "i1" else f"{value} : {type}"
    kernel = f"""axes [%i = 3, %j = 12] SCHEDULE {{
      %c = arith.constant {constant}
      %t = nest.test (d0) : (d0 - 1 >= 0, 10 - d0 >= 0) (%j)
      %v = nest.load %x[(d0, d1) -> (d0, d1 - 1)](%i, %j)
        where (d0, d1) : (d1 - 1 >= 0, 10 - d1 >= 0) : <x>
      %w = arith.select %t, %v, %c : {type}
      nest.store %w, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }}"""
    dtype = {"f16": np.float16, "f64": np.float64, "i8": np.int8, "i1": np.bool_}[type]
    x = (normal(3, 10) * 20).astype(dtype)
    check(kernel, reduction, {"x": (type, x)}, {"o": f"memref<3x12x{type}>"})


def test_launch_of_an_unknown_kernel() -> None:
    module, ctx = parse(program("axes [] {}", {"x": "memref<4xf32>"}, {"o": "memref<4xf32>"}))
    launch = next(op for op in module.walk() if isinstance(op, nest.LaunchOp))
    launch.kernel = SymbolRefAttr("other")
    with pytest.raises(DiagnosticException, match="unknown kernel '@other'"):
        ConvertNestToGpuPass().apply(ctx, module)


def test_warps_of_a_block() -> None:
    schedule = 'attributes {schedule = #nest.schedule<"cuda:sm_80", warp, []>}'
    kernel = extremes("f64", 20, 100).replace("SCHEDULE", schedule)
    outputs = {"o": "memref<20xf64>", "q": "memref<20xf64>", "r": "memref<20xi64>"}
    module, ctx = parse(program(kernel, {"x": "memref<20x100xf64>"}, outputs))
    ConvertNestToGpuPass().apply(ctx, module)
    [function] = functions_of(module)
    assert geometry(function, "grid") == (3, 1, 1)
    assert geometry(function, "block") == (256, 1, 1)
    assert not any(isinstance(op, gpu.BarrierOp | memref_ops.GlobalOp) for op in module.walk())


def test_geometry_and_empty_grids() -> None:
    kernel = """axes [%i = 1000, %j = 3] {
      %v = nest.load %x[(d0) -> (d0)](%i) : <x>
      nest.store %v, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }"""
    for rows, launches in ((1000, 1), (0, 0)):
        text = program(
            kernel.replace("1000", str(rows)),
            {"x": f"memref<{rows}xf32>"},
            {"o": f"memref<{rows}x3xf32>"},
        )
        module, ctx = parse(text)
        ConvertNestToGpuPass().apply(ctx, module)
        module.verify()
        [function] = functions_of(module)
        assert geometry(function, "grid") == (-(-3 * rows // 256), 1, 1)
        assert geometry(function, "block") == (256, 1, 1)
        found = [op for op in module.walk() if isinstance(op, gpu.LaunchFuncOp)]
        assert len(found) == launches


CUT = """axes [%i = POINTS] SCHEDULE {
  %m, %p = nest.reduce [argmax] over [%j = 30, %k = 20] {
    %v = nest.load %x[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <x>
    %n = nest.index (d0, d1) -> (d0 * 20 + d1) (%j, %k)
    nest.yield %v, %n : f32, index
  } : f32, index
  %s = nest.reduce [sum] over [%j = 30, %k = 20] {
    %v = nest.load %x[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <x>
    %w = arith.subf %v, %m : f32
    %e = math.exp %w : f32
    nest.yield %e : f32
  } : f32
  nest.reduce [] over [%j = 30, %k = 20] {
    %v = nest.load %x[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <x>
    %w = arith.subf %v, %m : f32
    %e = math.exp %w : f32
    %r = arith.divf %e, %s : f32
    nest.store %r, %o[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <o>
  }
  %n = arith.index_cast %p : index to i32
  nest.store %n, %q[(d0) -> (d0)](%i) : <q>
}"""


@simulated
@pytest.mark.parametrize(
    ("piece", "blocks"),
    [
        ("j = 6 : grid, j = 5 : serial", 6),
        ("k = 4 : grid, k = 5 : thread", 4),
        ("j = 7 : grid, j = 5 : serial", 1),
        ("j = 30 : grid", 30),
    ],
)
@pytest.mark.parametrize("points", [0, 1, 3])
def test_reductions_cut_over_blocks(points: int, piece: str, blocks: int) -> None:
    kernel = CUT.replace("POINTS", str(points))
    schedule = f'attributes {{schedule = #nest.schedule<"cuda:sm_80", block, [{piece}]>}}'
    x = np.round(normal(points, 30, 20), 1)
    outputs = {"o": f"memref<{points}x30x20xf32>", "q": f"memref<{points}xi32>"}
    module = check(kernel.replace("SCHEDULE", schedule), "", {"x": ("f32", x)}, outputs)
    [function] = functions_of(module)
    assert geometry(function, "grid") == (points * blocks, 1, 1)


INDEPENDENT = """axes [%i = 2] SCHEDULE {
  %b = nest.load %y[(d0) -> (d0)](%i) : <y>
  %s = nest.reduce [sum] over [%j = 40, %k = 7] {
    %v = nest.load %x[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <x>
    %w = arith.mulf %v, %b : f32
    nest.store %w, %o[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <o>
    nest.yield %w : f32
  } : f32
  %m, %l, %p = nest.reduce [max, argmin] over [%j = 40, %k = 7] {
    %v = nest.load %x[(d0, d1, d2) -> (d0, d1, d2)](%i, %j, %k) : <x>
    %n = nest.index (d0, d1) -> (d0 * 7 + d1) (%j, %k)
    nest.yield %v, %v, %n : f32, f32, index
  } : f32, f32, index
  nest.reduce [] over [%j = 40] {
    %v = nest.load %x[(d0, d1) -> (d0, d1, 3)](%i, %j) : <x>
    nest.store %v, %q[(d0, d1) -> (d0, d1)](%i, %j) : <q>
  }
  %t = arith.addf %s, %m : f32
  %u = arith.mulf %t, %b : f32
  nest.store %u, %z[(d0) -> (d0)](%i) : <z>
  %r = arith.index_cast %p : index to i64
  nest.store %r, %a[(d0) -> (d0)](%i) : <a>
}"""


@simulated
def test_several_reductions_cut_together() -> None:
    """All blocks write what they sweep over; the last one of a point has the rest to do."""
    pieces = "j = 8 : grid, j = 5 : serial"
    schedule = f'attributes {{schedule = #nest.schedule<"cuda:sm_80", block, [{pieces}]>}}'
    kernel = INDEPENDENT.replace("SCHEDULE", schedule)
    inputs = {"x": ("f32", normal(2, 40, 7)), "y": ("f32", normal(2))}
    outputs = {"o": "memref<2x40x7xf32>", "q": "memref<2x40xf32>", "z": "memref<2xf32>"}
    module = check(kernel, "", inputs, {**outputs, "a": "memref<2xi64>"})
    [function] = functions_of(module)
    assert geometry(function, "grid") == (16, 1, 1)


@simulated
@pytest.mark.parametrize("shape", [(64, 4096), (2048, 129)])
def test_a_large_sum_fills_the_device(shape: tuple[int, int]) -> None:
    kernel = """axes [] {
      %s = nest.reduce [sum] over [%i = ROWS, %j = COLUMNS] {
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %v : f32
      } : f32
      nest.store %s, %o[() -> ()]() : <o>
    }"""
    kernel = kernel.replace("ROWS", str(shape[0])).replace("COLUMNS", str(shape[1]))
    x = normal(*shape)
    module, ctx = parse(program(kernel, {"x": memref(shape, "f32")}, {"o": "memref<f32>"}))
    ConvertNestToGpuPass().apply(ctx, module)
    module.verify()
    [function] = functions_of(module)
    assert geometry(function, "grid")[0] >= 32
    forth, back = (CompiledPlan(module, backwards=turned).run(x)[0] for turned in (False, True))
    np.testing.assert_allclose(forth, x.sum(dtype=np.float64), rtol=1e-4)
    assert forth == back, "the block that is done last decides nothing"


@simulated
def test_a_cut_sweep_without_results_needs_no_counter() -> None:
    kernel = """axes [%i = 2] SCHEDULE {
      nest.reduce [] over [%j = 96] {
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.store %v, %o[(d0, d1) -> (d0, 95 - d1)](%i, %j) : <o>
      }
    }"""
    pieces = "j = 3 : grid, j = 32 : thread"
    schedule = f'attributes {{schedule = #nest.schedule<"cuda:sm_80", block, [{pieces}]>}}'
    outputs = {"o": "memref<2x96xf32>"}
    kernel = kernel.replace("SCHEDULE", schedule)
    module = check(kernel, "", {"x": ("f32", normal(2, 96))}, outputs)
    [function] = functions_of(module)
    assert geometry(function, "grid") == (6, 1, 1)
    assert len(function.body.block.args) == 2


@simulated
def test_counters_serve_every_launch() -> None:
    """Two launches of a cut kernel, and one of another with fewer points."""
    pieces = "j = 4 : grid, j = 16 : thread"
    schedule = f'attributes {{schedule = #nest.schedule<"cuda:sm_80", block, [{pieces}]>}}'
    kernel = """
      nest.kernel @NAME(%x: memref<ROWSx64xf32>, %o: memref<ROWSxf32>) axes [%i = ROWS] SCHEDULE {
        %s = nest.reduce [sum] over [%j = 64] {
          %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<ROWSx64xf32>
          nest.yield %v : f32
        } : f32
        nest.store %s, %o[(d0) -> (d0)](%i) : memref<ROWSxf32>
      }""".replace("SCHEDULE", schedule)
    three, one = (kernel.replace("NAME", n).replace("ROWS", r) for n, r in (("k", "3"), ("l", "1")))
    text = f"""{three}{one}
      func.func @main(%x: memref<3x64xf32>, %y: memref<1x64xf32>)
          -> (memref<3xf32>, memref<1xf32>, memref<3xf32>) {{
        %a = memref.alloc() : memref<3xf32>
        %b = memref.alloc() : memref<1xf32>
        %c = memref.alloc() : memref<3xf32>
        nest.launch @k(%x, %a) : memref<3x64xf32>, memref<3xf32>
        nest.launch @l(%y, %b) : memref<1x64xf32>, memref<1xf32>
        nest.launch @k(%x, %c) : memref<3x64xf32>, memref<3xf32>
        func.return %a, %b, %c : memref<3xf32>, memref<1xf32>, memref<3xf32>
      }}"""
    module, ctx = parse(text)
    ConvertNestToGpuPass().apply(ctx, module)
    module.verify()
    x, y = normal(3, 64), normal(1, 64)
    results = CompiledPlan(module).run(x, y)
    for have, want in zip(results, (x, y, x), strict=True):
        np.testing.assert_allclose(have, want.sum(1), rtol=1e-4, atol=1e-5)


def vector(kernel: str, width: int) -> str:
    pieces = f"j = {width} : vector, j = 1024 : thread"
    schedule = f'attributes {{schedule = #nest.schedule<"cuda:sm_80", serial, [{pieces}]>}}'
    return kernel.replace("SCHEDULE", schedule)


def accesses(module: ModuleOp) -> tuple[int, int, int, int]:
    """Loads and stores of vectors, and of elements."""
    kinds = (ops.LoadOp, ops.StoreOp, memref_ops.LoadOp, memref_ops.StoreOp)
    [function] = functions_of(module)
    counts = [sum(isinstance(op, kind) for op in function.walk()) for kind in kinds]
    return counts[0], counts[1], counts[2], counts[3]


@simulated
@pytest.mark.parametrize(
    ("type", "width"), [("f32", 4), ("f32", 2), ("f16", 8), ("f64", 2), ("i8", 16), ("i1", 4)]
)
def test_neighbours_move_together(type: str, width: int) -> None:
    kernel = """axes [%i = 5, %j = 96] SCHEDULE {
      %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
      nest.store %v, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }"""
    dtype = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8}.get(type)
    x = (normal(5, 96) * 9).astype(dtype or np.bool_)
    types = {"o": f"memref<5x96x{type}>"}
    module = check(vector(kernel, width), "", {"x": (type, x)}, types)
    assert accesses(module) == ((0, 0, 1, 1) if type == "i1" else (1, 1, 0, 0))


@simulated
def test_what_is_apart_moves_alone() -> None:
    """Transposed, shifted, masked, broadcast and unevenly long rows, next to whole vectors."""
    kernel = """axes [%i = 6, %j = 16] SCHEDULE {
      %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
      %b = nest.load %t[(d0, d1) -> (d1, d0)](%i, %j) : <t>
      %c = nest.load %s[(d0, d1) -> (d0, d1 + 1)](%i, %j) : <s>
      %d = nest.load %x[(d0, d1) -> (d0, d1 - 2)](%i, %j) where (d0, d1) : (d1 - 2 >= 0) : <x>
      %e = nest.load %r[(d0, d1) -> (d0)](%i, %j) : <r>
      %f = nest.load %x[(d0, d1) -> (d0, 15 - d1)](%i, %j) : <x>
      %g = nest.load %s[(d0, d1) -> (d0, d1)](%i, %j) : <s>
      %k = arith.addf %a, %b : f32
      %l = arith.addf %k, %c : f32
      %m = arith.addf %l, %d : f32
      %n = arith.addf %m, %e : f32
      %o1 = arith.addf %n, %f : f32
      %o2 = arith.addf %o1, %g : f32
      nest.store %o2, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      nest.store %k, %p[(d0, d1) -> (d1, d0)](%i, %j) : <p>
    }"""
    inputs = {"x": normal(6, 16), "t": normal(16, 6), "s": normal(6, 17), "r": normal(6)}
    outputs = {"o": "memref<6x16xf32>", "p": "memref<16x6xf32>"}
    given = {name: ("f32", array) for name, array in inputs.items()}
    module = check(vector(kernel, 4), "", given, outputs)
    assert accesses(module) == (1, 1, 6, 1)


@simulated
def test_stores_keep_their_order() -> None:
    """Two stores to one buffer; and one that is read again."""
    kernel = """axes [%i = 2, %j = 16] SCHEDULE {
      %a = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
      nest.store %a, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      %b = arith.addf %a, %a : f32
      nest.store %b, %o[(d0, d1) -> (d0, d1)](%i, %j) where (d0, d1) : (d1 - 6 >= 0) : <o>
      AGAIN
    }"""
    outputs = {"o": "memref<2x16xf32>", "p": "memref<2x16xf32>"}
    again = """%c = nest.load %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      nest.store %c, %p[(d0, d1) -> (d0, d1)](%i, %j) : <p>"""
    once = "nest.store %a, %p[(d0, d1) -> (d0, d1)](%i, %j) : <p>"
    for last, want in ((once, (1, 1, 0, 2)), (again, (0, 0, 2, 3))):
        text = vector(kernel.replace("AGAIN", last), 4)
        module = check(text, "", {"x": ("f32", normal(2, 16))}, outputs)
        assert accesses(module) == want


@simulated
def test_an_update_in_place_moves_together() -> None:
    kernel = """axes [%i = 3, %j = 16] SCHEDULE {
      %a = nest.load %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
      %b = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
      %c = arith.addf %a, %b : f32
      nest.store %c, %o[(d0, d1) -> (d0, d1)](%i, %j) : <o>
    }"""
    text = program(vector(kernel, 4), {"x": "memref<3x16xf32>"}, {"o": "memref<3x16xf32>"})
    given = "@main(%x: memref<3x16xf32>"
    text = text.replace(given, f"{given}, %o: memref<3x16xf32>")
    text = text.replace("%o = memref.alloc() : memref<3x16xf32>", "")
    module, ctx = parse(text)
    ConvertNestToGpuPass().apply(ctx, module)
    x, o = normal(3, 16), normal(3, 16)
    [found] = CompiledPlan(module).run(x, o)
    np.testing.assert_array_equal(found, o + x)
    assert accesses(module) == (2, 1, 0, 0)
