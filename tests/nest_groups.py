"""Puts whole programs into one group and compares what they mean before and after lowering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from plait.dialects import fuse, lazy, nest
from plait.dtypes import bf16_to_f32, f32_to_bf16, is_bool, is_float, is_unsigned, numpy_dtype
from plait.lowering.convert_fuse_to_nest import ConvertFuseToNestPass
from plait.runtime.interpret import run_module

Arrays = list[NDArray[Any]]


def main_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")


def one_group(module: ModuleOp) -> ModuleOp:
    """A copy of a program with all of its operations in one group, whatever they are."""
    copy = module.clone()
    function = main_of(copy)
    block = function.body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    body = Block(arg_types=[argument.type for argument in block.args])
    moved: list[Operation] = [op for op in block.ops if op is not last]
    for old, new in zip(block.args, body.args, strict=True):
        old.replace_all_uses_with(new)
    results = list(last.arguments)
    last.detach()
    last.erase()
    for op in moved:
        op.detach()
        body.add_op(op)
    body.add_op(fuse.YieldOp(*results))
    group = fuse.GroupOp(list(block.args), [value.type for value in results], body, "all")
    block.add_ops([group, ReturnOp(*group.outputs)])
    copy.verify()
    return copy


def lowered(module: ModuleOp) -> ModuleOp:
    """A program as one kernel."""
    group = one_group(module)
    ConvertFuseToNestPass().apply(Context(), group)
    group.verify()
    return group


def kernel_of(module: ModuleOp) -> nest.KernelOp:
    """The only kernel of a module."""
    [kernel] = [op for op in module.ops if isinstance(op, nest.KernelOp)]
    return kernel


def data(type: Attribute, shape: Sequence[int], random: np.random.Generator) -> NDArray[Any]:
    """Elements of a type, with the special ones among them."""
    if is_bool(type):
        return random.integers(0, 2, shape).astype(np.bool_)
    dtype = numpy_dtype(type)
    if not is_float(type):
        info = np.iinfo(cast(Any, dtype))
        small = random.integers(0 if is_unsigned(type) else -3, 9, shape).astype(dtype)
        wild = random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return np.where(random.random(shape) < 0.8, small, wild)
    values = random.standard_normal(shape) * 2
    pick = random.integers(0, 24, shape)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    values = np.select([pick == k for k in range(len(special))], special, values)
    if dtype == np.uint16:
        return f32_to_bf16(values.astype(np.float32)).reshape(shape)
    return values.astype(dtype)


def arguments(module: ModuleOp, seed: int = 0) -> Arrays:
    random = np.random.default_rng(seed)
    values: Sequence[SSAValue] = main_of(module).body.block.args
    return [data(lazy.element_type_of(v), lazy.shape_of(v), random) for v in values]


def as_float(array: NDArray[Any], type: Attribute) -> NDArray[Any]:
    """An array of floats for comparison; bfloat16 comes as bits."""
    return bf16_to_f32(array) if array.dtype == np.uint16 and is_float(type) else array


def check(module: ModuleOp, seed: int = 0, *, rtol: float | None = None) -> ModuleOp:
    """Compares a program with its one kernel on random data; returns the lowered module."""
    kernel = lowered(module)
    given = arguments(module, seed)
    want = run_module(module, given)
    have = run_module(kernel, given)
    types = main_of(module).function_type.outputs.data
    for number, (h, w, type) in enumerate(zip(have, want, types, strict=True)):
        element = cast(Any, type).element_type
        assert h.shape == w.shape, f"result {number}"
        if isinstance(element, IntegerType):
            np.testing.assert_array_equal(
                h.astype(w.dtype), w, err_msg=f"result {number} of {module}\n{kernel}"
            )
            continue
        limit = rtol or {2: 2e-2, 4: 2e-4, 8: 1e-9}[numpy_dtype(element).itemsize]
        np.testing.assert_allclose(
            as_float(h, element),
            as_float(w, element),
            rtol=limit,
            atol=limit,
            err_msg=f"result {number} of {module}\n{kernel}",
        )
    return kernel
