"""Kernels from text through the GPU lowering, against the interpreter of loop nests."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from plait.dialects import nest
from plait.lowering.convert_nest_to_gpu import ConvertNestToGpuPass
from plait.runtime.cuda_sim import CompiledPlan
from plait.runtime.interpret import run_module

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(0)


def parse(text: str) -> tuple[ModuleOp, Context]:
    ctx = Context()
    for name, dialect in get_all_dialects().items():
        ctx.register_dialect(name, dialect)
    ctx.register_dialect("nest", lambda: nest.Nest)
    module = Parser(ctx, text).parse_module()
    module.verify()
    return module, ctx


def program(kernel: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """One kernel ``@k`` whose parameters are the inputs and outputs, and its host; `<x>` in the
    kernel stands for the type of `%x`."""
    every = {**inputs, **outputs}
    parameters = ", ".join(f"%{name}: {type}" for name, type in every.items())
    given = ", ".join(f"%{name}: {type}" for name, type in inputs.items())
    allocs = "\n".join(f"%{name} = memref.alloc() : {type}" for name, type in outputs.items())
    returned = ", ".join(f"%{name}" for name in outputs)
    types = ", ".join(outputs.values())
    for name, type in every.items():
        kernel = kernel.replace(f"<{name}>", type)
    return f"""
    nest.kernel @k({parameters}) {kernel}
    func.func @main({given}) -> ({types}) {{
      {allocs}
      nest.launch @k({", ".join(f"%{name}" for name in every)}) : {", ".join(every.values())}
      func.return {returned} : {types}
    }}"""


def memref(shape: tuple[int, ...], type: str) -> str:
    return "memref<" + "".join(f"{n}x" for n in shape) + type + ">"


def check(
    kernel: str, reduction: str, inputs: dict[str, tuple[str, Array]], outputs: dict[str, str]
) -> ModuleOp:
    """Compares a kernel, with `SCHEDULE` replaced, against the interpreter; gives its level 4."""
    schedule = f'attributes {{schedule = #nest.schedule<"cuda:sm_80", {reduction}, []>}}'
    types = {name: memref(array.shape, type) for name, (type, array) in inputs.items()}
    text = program(kernel.replace("SCHEDULE", schedule), types, outputs)
    arrays = [array for _, array in inputs.values()]
    module, ctx = parse(text)
    want = run_module(module, [array.copy() for array in arrays])
    ConvertNestToGpuPass().apply(ctx, module)
    module.verify()
    for have, expected in zip(CompiledPlan(module).run(*arrays), want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=2e-5, atol=2e-5)
    return module


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def with_specials(*shape: int) -> Array:
    values = normal(*shape)
    flat = values.reshape(-1)
    for number, special in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0)):
        if flat.size > 7 * number + 3:
            flat[7 * number + 3] = special
    return values


def extremes(type: str, rows: int, columns: int) -> str:
    """A kernel of `%x` that finds the largest and the first smallest element of each row."""
    return f"""axes [%i = {rows}] SCHEDULE {{
      %m, %n, %p = nest.reduce [max, argmin] over [%j = {columns}] {{
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : <x>
        nest.yield %v, %v, %j : {type}, {type}, index
      }} : {type}, {type}, index
      %k = arith.index_cast %p : index to i64
      nest.store %m, %o[(d0) -> (d0)](%i) : <o>
      nest.store %n, %q[(d0) -> (d0)](%i) : <q>
      nest.store %k, %r[(d0) -> (d0)](%i) : <r>
    }}"""
