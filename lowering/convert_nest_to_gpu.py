"""``convert-nest-to-gpu``: loop nests to GPU functions and their launches."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, func, gpu, memref
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import nest
from plait.dialects.nest import Level, Reduction, ScheduleAttr
from plait.lowering.nest_to_gpu_cut import Cut, cut_tree
from plait.lowering.nest_to_gpu_emit import GpuEmitter
from plait.lowering.nest_to_gpu_share import SharingEmitter
from plait.lowering.nest_to_gpu_shuffle import WARP
from plait.lowering.nest_to_gpu_ticket import TicketEmitter
from plait.lowering.nest_to_gpu_vector import vectorized
from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_read import read_kernel
from plait.lowering.nest_to_loops_tree import Loop, Tree, drop_unit_axes, merge_axes
from plait.passes.nest_schedule import BLOCK, block_threads, schedule, shared_loops

MODULE = "kernels"
TICKETS = "plait_tickets"


@dataclass(frozen=True)
class ConvertNestToGpuPass(ModulePass):
    """Turns every ``nest.kernel`` into a ``gpu.func`` and every ``nest.launch`` into a
    ``gpu.launch_func``, as the kernel's schedule says (`nest-schedule`'s choice where it has none).

    With a ``serial`` reduction each point of the parallel axes is a thread. With ``block`` it is a
    block: its threads take every n-th element of a reduction and combine their results in a fixed
    order, by shuffles within warps and then through shared memory. With ``warp`` it is a warp, and
    a block has several. A kernel without loops whose innermost axis has a ``vector`` piece does
    that many points in a thread, and moves those that are together in memory at once. A reduction
    with a ``grid`` piece is cut: every block of a point keeps a partial result in memory, and the
    last one to be done, which the tickets of a counter tell, combines them in a fixed order and
    does what is left of the kernel. A reduction that needs the result of a cut one is left to that
    block.

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
        body = [op for found in converted.values() for op in (*found.shared, found.function)]
        module = gpu.ModuleOp(StringAttr(MODULE), Region(Block(body)))  # pyright: ignore[reportArgumentType]
        op.body.block.insert_op_before(module, kernels[0])
        tickets = max(found.tickets for found in converted.values())
        if tickets:
            op.body.block.insert_op_before(counters(tickets), module)
        for kernel in kernels:
            kernel.detach()
            kernel.erase()
        op.attributes["gpu.container_module"] = UnitAttr()
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                convert_launches(function, converted, tickets)


@dataclass
class Converted:
    """What became of a kernel: a function on its buffers, its partial results and its tickets."""

    shared: list[memref.GlobalOp]
    """The shared arrays of the function."""
    function: gpu.FuncOp
    partials: list[MemRefType[Attribute]]
    tickets: int
    """How many counters it takes; 0 for a function without that parameter."""


def counters(count: int) -> memref.GlobalOp:
    """The ticket counters of all kernels, which run one after another and leave them at zero."""
    type = MemRefType(i32, [count])
    return memref.GlobalOp.get(
        sym_name=StringAttr(TICKETS),
        sym_type=type,
        initial_value=DenseIntOrFPElementsAttr.from_list(TensorType(i32, [count]), [0]),
        sym_visibility=StringAttr("private"),
    )


def convert(kernel: nest.KernelOp) -> Converted:
    """The function of a kernel, which stays as it is but for a schedule if it has none."""
    if kernel.schedule is None:
        kernel.properties["schedule"] = schedule(kernel, "cuda:sm_80")
    assert kernel.schedule is not None
    sharing = Reduction(kernel.schedule.reduction.data if shared_loops(kernel) else "serial")
    is_block = sharing == Reduction.BLOCK
    tree = read_kernel(kernel)
    drop_unit_axes(tree)
    space = ", ".join(f"{axis.name} = {axis.extent}" for axis in tree.axes)
    cut = cut_tree(tree, cuts(kernel, kernel.schedule)) if is_block else None
    tree = cut.tree if cut else tree
    drop_unit_axes(tree)
    merge_axes(tree)
    threads = shared_threads(tree) if is_block else BLOCK
    if cut:
        emitter = TicketEmitter(cut, threads)
    elif sharing == Reduction.SERIAL:
        width = lanes_of(kernel, kernel.schedule)
        emitter = vectorized(tree, threads, width) if width > 1 else None
        emitter = emitter or GpuEmitter(tree, threads)
    else:
        emitter = SharingEmitter(tree, threads, threads if is_block else WARP)
    arrays, function = emitter.function()
    function.attributes["plait.schedule"] = StringAttr(str(kernel.schedule))
    function.attributes["plait.space"] = StringAttr(space)
    if kernel.source is not None:
        function.attributes["plait.source"] = kernel.source
    tickets = cut.points if cut and cut.after else 0
    return Converted(arrays, function, cut.partials if cut else [], tickets)


def cuts(kernel: nest.KernelOp, schedule: ScheduleAttr) -> Cut:
    """Which reductions a schedule cuts: those over an axis with a ``grid`` piece."""
    own = {axis.axis.data for axis in kernel.axes}
    blocks = {
        piece.axis.data: piece.size.data
        for piece in schedule.pieces
        if piece.level.data == Level.GRID and piece.axis.data not in own
    }

    def cut(loop: Loop) -> tuple[Axis, int] | None:
        for axis in loop.axes:
            count = blocks.get(axis.name, 1)
            if count > 1 and axis.extent and axis.extent % count == 0:
                return axis, count
        return None

    return cut


def lanes_of(kernel: nest.KernelOp, schedule: ScheduleAttr) -> int:
    """Points of the innermost axis that a schedule gives to a thread as one vector."""
    inner = kernel.axes.data[-1].axis if kernel.axes.data else None
    pieces = [p for p in schedule.pieces if p.level.data == Level.VECTOR and p.axis == inner]
    return prod(piece.size.data for piece in pieces)


def shared_threads(tree: Tree) -> int:
    """Threads of a block that shares the reductions of a tree's own body."""
    loops = [node for node in tree.body if isinstance(node, Loop) and node.mode == "reduce"]
    longest = max((prod(axis.extent for axis in loop.axes) for loop in loops), default=1)
    return block_threads(longest)


def geometry(function: gpu.FuncOp, key: str) -> tuple[int, ...]:
    """The ``grid`` or ``block`` of a function: x, y, z."""
    return tuple(cast(Any, function.attributes[f"plait.{key}"]).get_values())


def convert_launches(function: func.FuncOp, kernels: dict[str, Converted], tickets: int) -> None:
    """Launches in a host function become launches over a grid; empty grids are left out."""
    constants: dict[int, arith.ConstantOp] = {}
    launches = [op for op in function.walk() if isinstance(op, nest.LaunchOp)]

    def constant(value: int) -> SSAValue:
        if value not in constants:
            constants[value] = arith.ConstantOp(IntegerAttr(value, IndexType()))
            first = function.body.block.first_op
            assert first is not None
            if len(constants) > 1:
                function.body.block.insert_op_after(constants[value], [*constants.values()][-2])
            else:
                function.body.block.insert_op_before(constants[value], first)
        return constants[value].result

    for launch in launches:
        name = launch.kernel.string_value()
        if name not in kernels:
            raise DiagnosticException(f"convert-nest-to-gpu: launch of unknown kernel '@{name}'")
        grid, block = (geometry(kernels[name].function, key) for key in ("grid", "block"))
        if 0 not in grid:
            workspace, buffers = workspace_of(kernels[name], tickets)
            op = gpu.LaunchFuncOp(
                SymbolRefAttr(MODULE, [name]),
                [constant(n) for n in grid],
                [constant(n) for n in block],
                kernelOperands=[*launch.buffers, *buffers],
            )
            parent = launch.parent
            assert parent is not None
            parent.insert_ops_before([*workspace, op], launch)
        launch.detach()
        launch.erase()


def workspace_of(kernel: Converted, tickets: int) -> tuple[list[Operation], list[SSAValue]]:
    """The buffers of partial results for a launch, its counters, and what makes them."""
    made: list[Operation] = [
        memref.AllocOp.get(type.element_type, shape=type.get_shape()) for type in kernel.partials
    ]
    buffers: list[SSAValue] = [op.results[0] for op in made]
    if kernel.tickets:
        whole = memref.GetGlobalOp(TICKETS, MemRefType(i32, [tickets]))
        shape = [kernel.tickets]
        own = memref.ReinterpretCastOp(
            whole.memref, [], [], [], [0], shape, [1], MemRefType(i32, shape)
        )
        made += [whole, own]
        buffers.append(own.result)
    return made, buffers
