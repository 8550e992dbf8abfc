"""``convert-nest-to-gpu``: loop nests to GPU functions and their launches."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, func, gpu, memref
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import nest
from plait.dialects.nest import Level, Reduction, ScheduleAttr
from plait.lowering.nest_to_gpu_emit import GpuEmitter
from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_read import read_kernel
from plait.lowering.nest_to_loops_split import Cut, Split, split
from plait.lowering.nest_to_loops_tree import Loop, Tree, drop_unit_axes, merge_axes
from plait.passes.nest_schedule import block_threads, schedule, shared_loops, threads_of

MODULE = "kernels"


@dataclass(frozen=True)
class ConvertNestToGpuPass(ModulePass):
    """Turns every ``nest.kernel`` into a ``gpu.func`` and every ``nest.launch`` into a
    ``gpu.launch_func``, as the kernel's schedule says (`nest-schedule`'s choice where it has none).

    With a ``serial`` reduction each point of the parallel axes is a thread. With ``block`` it is a
    block: its threads take every n-th element of a reduction and combine their results through
    shared memory in a fixed order. A reduction with a ``grid`` piece is cut into partial results,
    one a block, which the kernel proper combines: it becomes several functions.

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
        converted = {kernel.sym_name.data: convert(kernel) for kernel in kernels}
        body: list[Operation] = []
        for found in converted.values():
            body += [*found.shared, *found.functions]
        module = gpu.ModuleOp(StringAttr(MODULE), Region(Block(body)))  # pyright: ignore[reportArgumentType]
        op.body.block.insert_op_before(module, kernels[0])
        for kernel in kernels:
            kernel.detach()
            kernel.erase()
        op.attributes["gpu.container_module"] = UnitAttr()
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                convert_launches(function, converted)


@dataclass
class Converted:
    """What became of a kernel: functions to launch in order, on its buffers and temporaries."""

    shared: list[Operation]
    """The shared arrays of the functions."""
    functions: list[gpu.FuncOp]
    temporaries: list[MemRefType[Attribute]]


def convert(kernel: nest.KernelOp) -> Converted:
    """The functions of a kernel, which stays as it is but for a schedule if it has none."""
    if kernel.schedule is None:
        kernel.properties["schedule"] = schedule(kernel, "cuda:sm_80")
    assert kernel.schedule is not None
    reduction = kernel.schedule.reduction.data
    if reduction == Reduction.WARP:
        raise DiagnosticException(
            f"convert-nest-to-gpu: the schedule of kernel '@{kernel.sym_name.data}' has a 'warp' "
            "reduction: expected 'serial' or 'block'"
        )
    shared = reduction == Reduction.BLOCK and bool(shared_loops(kernel))
    tree = read_kernel(kernel)
    drop_unit_axes(tree)
    parts = (split(tree, cuts(kernel, kernel.schedule)) if shared else None) or Split([tree], [])
    result = Converted([], [], parts.temporaries)
    for part in parts.trees:
        space = ", ".join(f"{axis.name} = {axis.extent}" for axis in part.axes)
        drop_unit_axes(part)
        merge_axes(part)
        threads = shared_threads(part) if shared else threads_of(kernel)
        arrays, function = GpuEmitter(part, threads, shared).function()
        function.attributes["plait.schedule"] = StringAttr(str(kernel.schedule))
        function.attributes["plait.space"] = StringAttr(space)
        if kernel.source is not None:
            function.attributes["plait.source"] = kernel.source
        result.shared += arrays
        result.functions.append(function)
    return result


def cuts(kernel: nest.KernelOp, schedule: ScheduleAttr) -> Cut:
    """Which reductions a schedule cuts: those over an axis with a ``grid`` piece."""
    own = {axis.axis.data for axis in kernel.axes}
    blocks = {
        piece.axis.data: piece.size.data
        for piece in schedule.pieces
        if piece.level.data == Level.GRID and piece.axis.data not in own
    }

    def cut(tree: Tree, loop: Loop) -> tuple[Axis, int] | None:
        for axis in loop.axes:
            count = blocks.get(axis.name, 1)
            if count > 1 and axis.extent and axis.extent % count == 0:
                return axis, count
        return None

    return cut


def shared_threads(tree: Tree) -> int:
    """Threads of a block that shares the reductions of a tree's own body."""
    loops = [node for node in tree.body if isinstance(node, Loop) and node.mode == "reduce"]
    longest = max((prod(axis.extent for axis in loop.axes) for loop in loops), default=1)
    return block_threads(longest)


def geometry(function: gpu.FuncOp, key: str) -> tuple[int, ...]:
    """The ``grid`` or ``block`` of a function: x, y, z."""
    return tuple(cast(Any, function.attributes[f"plait.{key}"]).get_values())


def convert_launches(function: func.FuncOp, kernels: dict[str, Converted]) -> None:
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
        parent = launch.parent
        assert parent is not None
        temporaries = [
            memref.AllocOp.get(type.element_type, shape=type.get_shape())
            for type in kernels[name].temporaries
        ]
        parent.insert_ops_before(temporaries, launch)
        buffers = [*launch.buffers, *(alloc.memref for alloc in temporaries)]
        for part in kernels[name].functions:
            grid, block = (geometry(part, key) for key in ("grid", "block"))
            if 0 not in grid:
                op = gpu.LaunchFuncOp(
                    SymbolRefAttr(MODULE, [part.sym_name.data]),
                    [constant(n) for n in grid],
                    [constant(n) for n in block],
                    kernelOperands=buffers,
                )
                parent.insert_op_before(op, launch)
        launch.detach()
        launch.erase()
