"""The pass ``nest-schedule``."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from plait.dialects import nest
from plait.dialects.nest import Level, PieceAttr, Reduction, ScheduleAttr
from plait.passes.analysis import targets
from plait.passes.analysis.nest_strides import rows_are_contiguous, vector_width

BLOCK = 256
"""Threads of a block."""
WARP = 32
"""Threads of a warp, and elements from which one shares a reduction."""
LONG_REDUCTION = 64
"""Elements from which a block shares a reduction."""
LONG_ROW = 1024
"""Elements up to which a warp is enough for a reduction."""
MANY_POINTS = 4096
"""Points from which a warp each fills a device."""
FEW_POINTS = 65536
"""Points up to which a block shares a reduction whose elements are apart in memory; more points
fill a device by themselves."""

FILLING = 32768
"""Threads that fill a device."""
BLOCKS = 512
"""Blocks that fill a device: a large reduction of fewer points is cut into pieces up to it."""
SHARE = 4096
"""Elements of a reduction that are worth a block."""


@dataclass(frozen=True)
class NestSchedulePass(ModulePass):
    """Decides how each kernel runs on a target, and writes it on the kernel.

    On a GPU every point of the parallel axes is a thread, in row-major order, 256 to a block, and
    reduces alone; where reductions are long, every point is a block whose threads share them, or
    a warp of one if there are many points with shorter rows (unless a longer loop in order would
    leave the threads idle, or there are many points and elements apart in memory). A thread of a
    large kernel without reductions does neighbouring points, of up to 16 bytes together. A large
    reduction of very few points is cut, too: a grid piece of its axis says into how many blocks,
    whose partial results the last of them combines. On a CPU the parallel axes are dealt out to
    threads and the vector axes are left to `convert-nest-to-loops`. A schedule that is there
    already stays.

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
    found = Reduction.SERIAL
    if keeps_rows(kernel):
        found = Reduction.BLOCK
    elif longest >= in_order(kernel):
        found = who_reduces(points, longest, rows_are_contiguous(kernel, loops))
    if found == Reduction.SERIAL:
        pieces = vector_pieces(kernel, axes)
    elif found == Reduction.WARP:
        pieces = [*thread_pieces(axes, BLOCK // WARP), *block_pieces(loops, 0, WARP)]
    else:
        grid = [PieceAttr.get(name, max(extent, 1), Level.GRID) for name, extent in axes]
        cut = points and not in_order(kernel) and not keeps_rows(kernel)
        pieces = [*grid, *block_pieces(loops, BLOCKS // points if cut else 0, BLOCK)]
    return ScheduleAttr.get(target, found, clear(kernel, pieces))


def who_reduces(points: int, longest: int, contiguous: bool) -> Reduction:
    """Who shares a reduction of up to ``longest`` elements, ``contiguous`` in memory or not."""
    if contiguous and points >= MANY_POINTS and WARP <= longest <= LONG_ROW:
        return Reduction.WARP
    if longest >= LONG_REDUCTION and (points <= FEW_POINTS or contiguous):
        return Reduction.BLOCK
    return Reduction.SERIAL


def clear(kernel: nest.KernelOp, pieces: list[PieceAttr]) -> list[PieceAttr]:
    """The pieces of axes whose name means one extent throughout the kernel."""
    extents: dict[StringAttr, set[int]] = {}
    for op in kernel.walk():
        if isinstance(op, nest.KernelOp | nest.LoopOp):
            for axis in op.axes:
                extents.setdefault(axis.axis, set()).add(axis.extent.data)
    return [piece for piece in pieces if len(extents[piece.axis]) == 1]


def shared_loops(kernel: nest.KernelOp) -> list[nest.ReduceOp]:
    """The reductions a block may share: those of the kernel itself."""
    return [op for op in kernel.body.block.ops if isinstance(op, nest.ReduceOp)]


def keeps_rows(kernel: nest.KernelOp) -> bool:
    """Whether a point of the kernel's axes keeps values on chip, which its threads share."""
    return any(isinstance(op, nest.LocalOp) for op in kernel.body.block.ops)


def in_order(kernel: nest.KernelOp) -> int:
    """Steps of the longest loop in order, which one thread of a block would run alone."""
    loops = [op for op in kernel.walk() if isinstance(op, nest.SequentialOp)]
    return max((prod(loop.extents) for loop in loops), default=0)


def block_pieces(loops: list[nest.ReduceOp], most: int, threads: int) -> list[PieceAttr]:
    """The innermost axis of each shared reduction over the threads that share it, and an axis of a
    large one over up to ``most`` blocks."""
    pieces: dict[str, list[PieceAttr]] = {}
    for loop in loops:
        name, blocks = cut_axis(loop, most)
        if blocks > 1 and name not in pieces:
            pieces[name] = [PieceAttr.get(name, blocks, Level.GRID)]
            extent = next(axis.extent.data for axis in loop.axes if axis.axis.data == name)
            if name != loop.axes.data[-1].axis.data and extent > blocks:
                pieces[name].append(PieceAttr.get(name, extent // blocks, Level.SERIAL))
        if loop.axes.data:
            axis = loop.axes.data[-1]
            inner, extent = axis.axis.data, max(axis.extent.data, 1)
            own = pieces.setdefault(inner, [])
            if not any(piece.level.data == Level.THREAD for piece in own):
                left = extent // prod(piece.size.data for piece in own)
                own += thread_share(inner, left, threads)
    return [piece for found in pieces.values() for piece in found]


def thread_share(name: str, extent: int, most: int) -> list[PieceAttr]:
    """An axis dealt out to the threads that share it."""
    threads = min(most, max(extent, 1))
    found = [PieceAttr.get(name, threads, Level.THREAD)]
    if extent > threads:
        found.append(PieceAttr.get(name, -(-extent // threads), Level.SERIAL))
    return found


def cut_axis(loop: nest.ReduceOp, most: int) -> tuple[str, int]:
    """The axis of a reduction to cut into blocks, and into how many equal pieces: 1 for none."""
    best = ("", 1)
    most = min(most, prod(loop.extents) // SHARE)
    for axis in loop.axes:
        extent = axis.extent.data
        counts = (count for count in range(min(most, extent), 1, -1) if extent % count == 0)
        count = next(counts, 1)
        if count >= 2 * best[1]:  # blocks that read whole inner axes are worth fewer of them
            best = (axis.axis.data, count)
    return best


def vector_pieces(kernel: nest.KernelOp, axes: list[tuple[str, int]]) -> list[PieceAttr]:
    """Points over threads, several neighbours in each where that leaves enough threads."""
    width = vector_width(kernel)
    while width > 1 and prod(extent for _, extent in axes) // width < FILLING:
        width //= 2
    if width == 1:
        return thread_pieces(axes, BLOCK)
    name, extent = axes[-1]
    pieces = thread_pieces([*axes[:-1], (name, extent // width)], BLOCK)
    return [*pieces, PieceAttr.get(name, width, Level.VECTOR)]


def thread_pieces(axes: list[tuple[str, int]], left: int) -> list[PieceAttr]:
    """Points in row-major order, ``left`` to a block, whole inner axes first."""
    pieces: list[PieceAttr] = []
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
    if schedule_ is None or schedule_.reduction.data != Reduction.BLOCK:
        return BLOCK
    longest = max((prod(loop.extents) for loop in shared_loops(kernel)), default=1)
    return block_threads(longest)


def block_threads(longest: int) -> int:
    """Threads of a block that shares reductions of up to ``longest`` elements: whole warps."""
    threads = 32
    while threads < min(BLOCK, longest):
        threads *= 2
    return threads
