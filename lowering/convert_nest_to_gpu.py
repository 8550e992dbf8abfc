"""``convert-nest-to-gpu``: loop nests to GPU functions and their launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, func, gpu
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import nest
from plait.dialects.nest import Reduction
from plait.lowering.nest_to_gpu_emit import GpuEmitter
from plait.lowering.nest_to_loops_read import read_kernel
from plait.lowering.nest_to_loops_tree import drop_unit_axes
from plait.passes.nest_schedule import schedule, shared_loops, threads_of

MODULE = "kernels"


@dataclass(frozen=True)
class ConvertNestToGpuPass(ModulePass):
    """Turns every ``nest.kernel`` into a ``gpu.func`` and every ``nest.launch`` into a
    ``gpu.launch_func``, as the kernel's schedule says (`nest-schedule`'s choice where it has none).

    With a ``serial`` reduction each point of the parallel axes is a thread. With ``block`` it is a
    block: its threads take every n-th element of a reduction and combine their results through
    shared memory in a fixed order.

    Before:
    ```mlir
    nest.kernel @double(%x: memref<64xf32>, %y: memref<64xf32>) axes [%i = 64] {
      %v = nest.load %x[(d0) -> (d0)](%i) : memref<64xf32>
      %w = arith.addf %v, %v : f32
      nest.store %w, %y[(d0) -> (d0)](%i) : memref<64xf32>
    }
    ```
    After: a ``gpu.module @kernels`` with ``gpu.func @double``, attributes ``plait.grid`` and
    ``plait.block`` for its launch.
    """

    name = "convert-nest-to-gpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = [inner for inner in op.ops if isinstance(inner, nest.KernelOp)]
        if not kernels:
            return
        functions: dict[str, gpu.FuncOp] = {}
        body: list[Operation] = []
        for kernel in kernels:
            shared, function = convert(kernel)
            functions[kernel.sym_name.data] = function
            body += [*shared, function]
        module = gpu.ModuleOp(StringAttr(MODULE), Region(Block(body)))  # pyright: ignore[reportArgumentType]
        op.body.block.insert_op_before(module, kernels[0])
        for kernel in kernels:
            kernel.detach()
            kernel.erase()
        op.attributes["gpu.container_module"] = UnitAttr()
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                convert_launches(function, functions)


def convert(kernel: nest.KernelOp) -> tuple[list[Operation], gpu.FuncOp]:
    """The function of a kernel and its shared arrays; the kernel stays as it is."""
    if kernel.schedule is None:
        kernel.properties["schedule"] = schedule(kernel, "cuda:sm_80")
    assert kernel.schedule is not None
    shared = kernel.schedule.reduction.data == Reduction.BLOCK and bool(shared_loops(kernel))
    tree = read_kernel(kernel)
    drop_unit_axes(tree)
    arrays, function = GpuEmitter(tree, threads_of(kernel), shared).function()
    function.attributes["plait.schedule"] = StringAttr(str(kernel.schedule))
    space = ", ".join(f"{axis.axis.data} = {axis.extent.data}" for axis in kernel.axes)
    function.attributes["plait.space"] = StringAttr(space)
    if kernel.source is not None:
        function.attributes["plait.source"] = kernel.source
    return list(arrays), function


def geometry(function: gpu.FuncOp, key: str) -> tuple[int, ...]:
    """The ``grid`` or ``block`` of a function: x, y, z."""
    return tuple(cast(Any, function.attributes[f"plait.{key}"]).get_values())


def convert_launches(function: func.FuncOp, kernels: dict[str, gpu.FuncOp]) -> None:
    """Launches in a host function become launches over a grid; empty grids are left out."""
    constants: dict[int, arith.ConstantOp] = {}
    launches = [op for op in function.walk() if isinstance(op, nest.LaunchOp)]
    first = function.body.block.first_op if launches else None

    def constant(value: int) -> SSAValue:
        if value not in constants:
            constants[value] = arith.ConstantOp(IntegerAttr(value, IndexType()))
            assert first is not None
            function.body.block.insert_op_before(constants[value], first)
        return constants[value].result

    for launch in launches:
        name = launch.kernel.string_value()
        if name not in kernels:
            raise DiagnosticException(f"convert-nest-to-gpu: launch of unknown kernel '@{name}'")
        grid, block = (geometry(kernels[name], key) for key in ("grid", "block"))
        parent = launch.parent
        assert parent is not None
        if 0 not in grid:
            op = gpu.LaunchFuncOp(
                SymbolRefAttr(MODULE, [name]),
                [constant(n) for n in grid],
                [constant(n) for n in block],
                kernelOperands=list(launch.buffers),
            )
            parent.insert_op_before(op, launch)
        launch.detach()
        launch.erase()
