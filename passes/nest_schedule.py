"""The pass ``nest-schedule``."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from plait.dialects import nest
from plait.dialects.nest import Level, PieceAttr, Reduction, ScheduleAttr
from plait.passes.analysis import targets

BLOCK = 256
"""Threads of a block."""
LONG_REDUCTION = 64
"""Elements from which a block shares a reduction."""
FEW_POINTS = 65536
"""Points up to which a block shares a reduction; more points fill a device by themselves."""


@dataclass(frozen=True)
class NestSchedulePass(ModulePass):
    """Decides how each kernel runs on a target, and writes it on the kernel.

    On a GPU every point of the parallel axes is a thread, in row-major order, 256 to a block, and
    reduces alone; where there are few points and long reductions, every point is a block whose
    threads share the reductions. On a CPU the parallel axes are dealt out to threads and the
    vector axes are left to `convert-nest-to-loops`. A schedule that is there already stays.

    Before:
    ```mlir
    nest.kernel @sum(%x: memref<64x512xf32>, %y: memref<64xf32>) axes [%i = 64] {
      %s = nest.reduce [sum] over [%j = 512] {
        %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<64x512xf32>
        nest.yield %v : f32
      } : f32
      nest.store %s, %y[(d0) -> (d0)](%i) : memref<64xf32>
    }
    ```
    After, with `target=cuda:sm_80`, the kernel has a `schedule`:
    `#nest.schedule<"cuda:sm_80", block, [i = 64 : grid, j = 256 : thread, j = 2 : serial]>`.
    """

    name = "nest-schedule"

    target: str = "cpu"
    """The machine: a name from the target descriptions, such as ``cpu`` or ``cuda:sm_80``."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        targets.get(self.target)
        for kernel in op.ops:
            if isinstance(kernel, nest.KernelOp) and kernel.schedule is None:
                kernel.properties["schedule"] = schedule(kernel, self.target)


def schedule(kernel: nest.KernelOp, target: str) -> ScheduleAttr:
    """The schedule of a kernel."""
    axes = [(axis.axis.data, axis.extent.data) for axis in kernel.axes]
    if not target.startswith("cuda"):
        pieces = [PieceAttr.get(name, max(extent, 1), Level.THREAD) for name, extent in axes[:1]]
        pieces += [PieceAttr.get(name, max(extent, 1), Level.SERIAL) for name, extent in axes[1:]]
        return ScheduleAttr.get(target, Reduction.SERIAL, pieces)
    loops = shared_loops(kernel)
    longest = max((prod(loop.extents) for loop in loops), default=0)
    points = prod(extent for _, extent in axes)
    if longest >= LONG_REDUCTION and points <= FEW_POINTS:
        grid = [PieceAttr.get(name, max(extent, 1), Level.GRID) for name, extent in axes]
        return ScheduleAttr.get(target, Reduction.BLOCK, [*grid, *block_pieces(loops)])
    return ScheduleAttr.get(target, Reduction.SERIAL, thread_pieces(axes))


def shared_loops(kernel: nest.KernelOp) -> list[nest.ReduceOp]:
    """The reductions a block may share: those of the kernel itself, if nothing runs in order."""
    if any(isinstance(op, nest.SequentialOp) for op in kernel.walk()):
        return []
    return [op for op in kernel.body.block.ops if isinstance(op, nest.ReduceOp)]


def block_pieces(loops: list[nest.ReduceOp]) -> list[PieceAttr]:
    """The innermost axis of each shared reduction over the threads of a block."""
    pieces: dict[str, list[PieceAttr]] = {}
    for loop in loops:
        if loop.axes.data:
            axis = loop.axes.data[-1]
            name, extent = axis.axis.data, max(axis.extent.data, 1)
            threads = min(BLOCK, extent)
            found = [PieceAttr.get(name, threads, Level.THREAD)]
            if extent > threads:
                found.append(PieceAttr.get(name, -(-extent // threads), Level.SERIAL))
            pieces.setdefault(name, found)
    return [piece for found in pieces.values() for piece in found]


def thread_pieces(axes: list[tuple[str, int]]) -> list[PieceAttr]:
    """Points in row-major order over threads, whole inner axes first."""
    pieces: list[PieceAttr] = []
    left = BLOCK
    for name, extent in reversed(axes):
        threads = min(left, max(extent, 1))
        blocks = -(-max(extent, 1) // threads)
        own = [PieceAttr.get(name, threads, Level.THREAD)] if threads > 1 else []
        own = [PieceAttr.get(name, blocks, Level.GRID), *own] if blocks > 1 or not own else own
        pieces = [*own, *pieces]
        left = max(left // threads, 1)
    return pieces


def threads_of(kernel: nest.KernelOp) -> int:
    """Threads of a block under the kernel's schedule."""
    schedule_ = kernel.schedule
    if schedule_ is None or schedule_.reduction.data == Reduction.SERIAL:
        return BLOCK
    longest = max((prod(loop.extents) for loop in shared_loops(kernel)), default=1)
    threads = 32
    while threads < min(BLOCK, longest):
        threads *= 2
    return threads
