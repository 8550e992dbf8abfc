"""Builds the GPU function of a kernel whose reductions are cut over blocks: one launch.

Every block keeps its partial results in memory, and its first thread takes a ticket: the count of
blocks of its point that were done before. The block with the last ticket does the rest. Which one
it is differs from run to run, what it computes does not.
"""

from __future__ import annotations

from typing import Literal

from xdsl.dialects import arith, llvm, memref
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import SSAValue

from plait.lowering.nest_to_gpu_cut import CutTree
from plait.lowering.nest_to_gpu_share import SharingEmitter
from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_tree import Loop, Node, Store, walk

FENCE = "llvm.nvvm.membar.gl"
"""Orders what a thread reads and writes before it and after it, for the whole device."""
ADD, ASSIGN = 1, 2
"""Kinds of ``memref.atomic_rmw``."""


class TicketEmitter(SharingEmitter):
    """Emits one cut kernel."""

    def __init__(self, cut: CutTree, threads: int) -> None:
        super().__init__(cut.tree, threads, threads)
        self.cut = cut

    @property
    def blocks(self) -> int:
        return self.points * self.cut.piece.extent

    def body(self, block_id: SSAValue, thread: SSAValue) -> None:
        self.lanes(thread)
        outer = Axis("point", self.points)
        self.place([outer, self.cut.piece] if self.points > 1 else [self.cut.piece], block_id)
        point = self.axes.get(outer, self.index(0))
        self.place(self.tree.axes, point)
        self.nodes(self.cut.before)
        if self.cut.after:
            self.under(self.is_last(point), lambda: self.rest(point))

    def is_last(self, point: SSAValue) -> SSAValue:
        """Whether all other blocks of the point are done; all threads of a block agree."""
        loops: list[Node] = [node for node in self.cut.before if isinstance(node, Loop)]
        if any(isinstance(node, Store) for node in walk(loops)):
            self.barrier()  # the fence of one thread then covers what all have written

        def take() -> list[SSAValue]:
            self.fence()
            taken = self.counter(ADD, 1, point)
            self.fence()
            return [taken]

        [ticket] = self.alone([i32], take)
        last = self.constant(self.cut.piece.extent - 1, i32)
        return self.add(arith.CmpiOp(ticket, last, "eq"))

    def rest(self, point: SSAValue) -> None:
        """What the last block does; the next launch finds the counter at zero again."""

        def reset() -> None:
            self.counter(ASSIGN, 0, point)

        self.outermost = self.block
        self.first_thread(reset)
        self.nodes(self.cut.after)

    def fence(self) -> None:
        """Orders memory for the whole device."""
        self.block.add_op(llvm.CallIntrinsicOp(FENCE, [], []))

    def counter(self, kind: Literal[1, 2], value: int, point: SSAValue) -> SSAValue:
        """Changes the counter of a point at once; gives what it was."""
        operands = [self.constant(value, i32), self.flat[self.tree.arguments[-1]], [point]]
        properties = {"kind": IntegerAttr(kind, i64)}
        op = memref.AtomicRMWOp(operands=operands, properties=properties, result_types=[i32])
        return self.add(op)
