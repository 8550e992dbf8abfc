"""The CPU runtime on hand-written level 4 modules: arguments, views, in-place updates, threads."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException

import plait
from plait.errors import PlaitError
from plait.runtime import cpu_jit, cpu_pool
from plait.runtime.cpu import CompiledPlan

Array = np.ndarray[Any, np.dtype[Any]]

ADD = """
func.func @add(%x: memref<NxT>, %y: memref<NxT>, %o: memref<NxT>, %b: index, %e: index)
    attributes {plait.extent = N : index, plait.work = WORK : index} {
  %c1 = arith.constant 1 : index
  scf.for %i = %b to %e step %c1 {
    %u = memref.load %x[%i] : memref<NxT>
    %v = memref.load %y[%i] : memref<NxT>
    %r = arith.addf %u, %v : T
    memref.store %r, %o[%i] : memref<NxT>
  } {plait.lanes = 8 : index}
  func.return
}
"""


def module(text: str, n: int = 8, type: str = "f32", work: int = 10) -> ModuleOp:
    ctx = Context()
    for name, dialect in get_all_dialects().items():
        ctx.register_dialect(name, dialect)
    text = text.replace("NxT", f"{n}x{type}").replace(": T", f": {type}")
    text = text.replace("WORK", str(work)).replace("extent = N", f"extent = {n}")
    parsed = Parser(ctx, text.replace("constant N", f"constant {n}")).parse_module()
    parsed.verify()
    return parsed


def call(a: str, b: str, c: str) -> str:
    types = "(memref<NxT>, memref<NxT>, memref<NxT>, index, index) -> ()"
    return f"func.call @add({a}, {b}, {c}, %zero, %n) : {types}\n"


def host(body: str, arguments: str = "%x: memref<NxT>, %y: memref<NxT>", result: str = "") -> str:
    result = result or "memref<NxT>"
    return f"""{ADD}
    func.func @main({arguments}) -> ({result}) {{
      %zero = arith.constant 0 : index
      %n = arith.constant N : index
      {body}
    }}"""


SUM = host(f"""%o = memref.alloc() : memref<NxT>
  {call("%x", "%y", "%o")} func.return %o : memref<NxT>""")

CHAIN = host(
    f"""%a = memref.alloc() : memref<NxT>
  %b = memref.alloc() : memref<NxT>
  %c = memref.alloc() : memref<NxT>
  %d = memref.alloc() : memref<NxT>
  {call("%x", "%y", "%a")} {call("%a", "%y", "%b")} {call("%b", "%y", "%c")}
  {call("%c", "%y", "%d")} func.return %d : memref<NxT>"""
)


def pair(n: int = 8) -> tuple[Array, Array]:
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((2, n)).astype(np.float32)
    return x, y


def test_runs_and_reuses_temporaries() -> None:
    plan = CompiledPlan(module(CHAIN))
    x, y = pair()
    np.testing.assert_allclose(plan.run(x, y)[0], x + 4 * y, rtol=1e-5)
    # Of the three temporaries only two are alive at any time.
    assert plan.arena_bytes == 2 * 64


def test_equal_kernels_compile_once() -> None:
    text = CHAIN.replace("func.func @main", ADD.replace("@add", "@other") + "func.func @main")
    text = text.replace("func.call @add(%a", "func.call @other(%a")
    plan = CompiledPlan(module(text))
    x, y = pair()
    np.testing.assert_allclose(plan.run(x, y)[0], x + 4 * y, rtol=1e-5)
    assert plan.llvm_ir.count("define void @") == 2


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_many_chunks(threads: int) -> None:
    n = 100_003
    plan = CompiledPlan(module(CHAIN, n, work=100), threads=threads)
    x, y = pair(n)
    for _ in range(3):
        np.testing.assert_allclose(plan.run(x, y)[0], x + 4 * y, rtol=1e-4, atol=1e-4)


def test_results_stay_while_held_and_are_reused_after() -> None:
    plan = CompiledPlan(module(SUM))
    x, y = pair()
    first = plan.run(x, y)[0]
    second = plan.run(x, -y)[0]
    np.testing.assert_allclose(first, x + y)
    address = second.ctypes.data
    assert first.ctypes.data != address
    view = second[1:3]
    del second
    assert plan.run(x, y)[0].ctypes.data != address
    del view
    assert plan.run(x, y)[0].ctypes.data == address


def test_arguments_that_do_not_fit() -> None:
    plan = CompiledPlan(module(SUM))
    x, y = pair()
    with pytest.raises(PlaitError, match="expected 2 arrays, found 1"):
        plan.run(x)
    with pytest.raises(PlaitError, match=r"input 1: expected shape \(8,\), found \(7,\)"):
        plan.run(x, y[:7])
    with pytest.raises(PlaitError, match="input 0: expected dtype float32, found float64"):
        plan.run(x.astype(np.float64), y)


def test_strided_and_unaligned_arguments_are_copied() -> None:
    plan = CompiledPlan(module(SUM))
    x, y = pair(16)
    raw = np.zeros(8 * 4 + 1, np.uint8)
    raw[1:] = np.ascontiguousarray(y[:8]).view(np.uint8)
    odd = raw[1:].view(np.float32)
    np.testing.assert_allclose(plan.run(x[::2], odd)[0], x[::2] + y[:8])


def test_updated_argument_holds_the_new_value() -> None:
    body = f"""%o = memref.alloc() : memref<NxT>
      %p = memref.alloc() : memref<NxT>
      {call("%x", "%y", "%o")} {call("%o", "%x", "%p")}
      func.return %o, %p : memref<NxT>, memref<NxT>"""
    text = host(body, result="memref<NxT> {lazy.aliases = 0 : index}, memref<NxT>")
    plan = CompiledPlan(module(text))
    x, y = pair()
    before = x.copy()
    updated, other = plan.run(x, y)
    assert updated is x
    np.testing.assert_allclose(x, before + y)
    np.testing.assert_allclose(other, before + y + before, rtol=1e-6)
    x.flags.writeable = False
    with pytest.raises(PlaitError, match="updated in place: expected a writeable numpy array"):
        plan.run(x, y)


def test_swapped_updates_read_before_they_write() -> None:
    body = "func.return %y, %x : memref<NxT>, memref<NxT>"
    result = "memref<NxT> {lazy.aliases = 0 : index}, memref<NxT> {lazy.aliases = 1 : index}"
    plan = CompiledPlan(module(host(body, result=result)))
    x, y = pair()
    a, b = x.copy(), y.copy()
    plan.run(x, y)
    np.testing.assert_array_equal(x, b)
    np.testing.assert_array_equal(y, a)


def test_returned_views_and_constants() -> None:
    strided = "memref<2x3xT, strided<[1, -2], offset: 6>>"
    body = f"""%o = memref.alloc() : memref<NxT>
      {call("%x", "%y", "%o")}
      %v = memref.reinterpret_cast %o to offset: [6], sizes: [2, 3], strides: [1, -2]
        : memref<NxT> to {strided}
      %k = memref.get_global @c : memref<4xf32>
      func.return %v, %k : {strided}, memref<4xf32>"""
    text = """"memref.global"() <{sym_name = "c", sym_visibility = "private", constant,
      type = memref<4xf32>, initial_value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}>
      : () -> ()"""
    text += host(body, result=f"{strided}, memref<4xf32>")
    plan = CompiledPlan(module(text.replace("3xT", "3xf32")))
    x, y = pair()
    view, constant = plan.run(x, y)
    wanted = x + y
    np.testing.assert_allclose(view, [wanted[[6, 4, 2]], wanted[[7, 5, 3]]])
    constant[:] = 0
    np.testing.assert_array_equal(plan.run(x, y)[1], [1, 2, 3, 4])


def test_unknown_host_operation_is_a_diagnostic() -> None:
    with pytest.raises(DiagnosticException, match=r"the host function has 'scf\.for'"):
        CompiledPlan(
            module(
                host("""scf.for %i = %zero to %n step %n { scf.yield }
                  func.return %x : memref<NxT>""")
            )
        )


def test_threads_option_and_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_NUM_THREADS", "3")
    assert CompiledPlan(module(SUM)).threads == 3
    assert CompiledPlan(module(SUM), threads=2).threads == 2
    monkeypatch.setenv("PLAIT_NUM_THREADS", "none")
    with pytest.raises(PlaitError, match="PLAIT_NUM_THREADS: expected a whole number"):
        CompiledPlan(module(SUM))
    with pytest.raises(PlaitError, match="threads: expected at least 1"):
        CompiledPlan(module(SUM), threads=0)


def test_runs_from_many_python_threads() -> None:
    n = 50_000
    plans = [CompiledPlan(module(CHAIN, n, work=100), threads=2) for _ in range(2)]
    x, y = pair(n)
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(10):
            found = plans[index % 2].run(x, y)[0]
            if not np.allclose(found, x + 4 * y, rtol=1e-4, atol=1e-4):
                wrong.append(index)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def _run_in_child(queue: Any) -> None:
    n = 50_000
    x, y = pair(n)
    found = CompiledPlan(module(CHAIN, n, work=100), threads=2).run(x, y)[0]
    queue.put(bool(np.allclose(found, x + 4 * y, rtol=1e-4, atol=1e-4)))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="needs a process that forks"
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_runs_after_a_fork() -> None:
    x, y = pair(50_000)
    CompiledPlan(module(CHAIN, 50_000, work=100), threads=2).run(x, y)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_run_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60)
    child.join()


def test_cache_is_used_and_a_corrupt_entry_is_rebuilt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path))
    cpu_pool.native_run()
    x, y = pair()
    CompiledPlan(module(SUM)).run(x, y)
    entries = [path for path in tmp_path.iterdir() if path.suffix == ".o"]
    assert entries and not list(tmp_path.glob("*.tmp"))
    monkeypatch.setattr(cpu_jit, "optimize", None)  # any compilation would now fail
    np.testing.assert_allclose(CompiledPlan(module(SUM)).run(x, y)[0], x + y)
    monkeypatch.undo()
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path))
    for path in entries:
        path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    np.testing.assert_allclose(CompiledPlan(module(SUM)).run(x, y)[0], x + y)


def test_results_of_many_outputs_reuse_memory_once_let_go_of() -> None:
    x = plait.empty(1000)
    plan = plait.schedule(*(x * float(k) for k in range(2, 9)))
    data = np.ones(1000, dtype=np.float32)
    first = plan.run(data)
    places = {array.ctypes.data for array in first}
    second = plan.run(data)
    assert not places & {array.ctypes.data for array in second}
    np.testing.assert_array_equal(first[6], 8 * data)
    del first, second
    assert len({array.ctypes.data for _ in range(4) for array in plan.run(data)}) <= 14


@pytest.mark.parametrize("shape", [(1 << 20,), (1025, 1024), (1024, 1023), (3, 1 << 19)])
def test_large_results_go_past_the_caches(shape: tuple[int, ...]) -> None:
    x = plait.empty(*shape)
    plan = plait.schedule(x * 2.0, x.softmax(-1))
    data = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    doubled, soft = plan.run(data)
    np.testing.assert_array_equal(doubled, 2 * data)
    np.testing.assert_allclose(soft.sum(-1), 1, rtol=1e-4)


STREAMED = """
func.func @k(%x: memref<2x1048576xf32>, %y: memref<2x1048576xf32>, %b: index, %e: index)
    attributes {plait.extent = 2 : index} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1048576 : index
  scf.for %i = %b to %e step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %v = memref.load %x[%i, %j] : memref<2x1048576xf32>
      %r = arith.addf %v, %v : f32
      memref.store %r, %y[%i, %j] {plait.stream} : memref<2x1048576xf32>
    } {plait.lanes = 16 : index}
  }
  func.return
}
func.func @main(%x: memref<2x1048576xf32>ARGUMENT) -> memref<2x1048576xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  RESULT
  func.call @k(%x, %y, %c0, %c2)
    : (memref<2x1048576xf32>, memref<2x1048576xf32>, index, index) -> ()
  func.return %y : memref<2x1048576xf32>
}
"""


def test_only_memory_known_to_be_aligned_is_streamed_to() -> None:
    allocated = STREAMED.replace("ARGUMENT", "")
    allocated = allocated.replace("RESULT", "%y = memref.alloc() : memref<2x1048576xf32>")
    given = STREAMED.replace("ARGUMENT", ", %y: memref<2x1048576xf32>").replace("RESULT", "")
    data = np.random.default_rng(0).standard_normal((2, 1 << 20), dtype=np.float32)
    own = CompiledPlan(module(allocated))
    np.testing.assert_array_equal(own.run(data)[0], 2 * data)
    assert "!nontemporal" in own.llvm_ir
    theirs = CompiledPlan(module(given))
    odd = np.empty(data.nbytes + 68, dtype=np.uint8)[4:-64].view(np.float32).reshape(data.shape)
    np.testing.assert_array_equal(theirs.run(data, odd)[0], 2 * data)
    assert "!nontemporal" not in theirs.llvm_ir
