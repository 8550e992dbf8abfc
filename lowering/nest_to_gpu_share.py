"""Builds the GPU function of a kernel with a warp or a block for each of its points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith, gpu, llvm, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.hints import isa

from plait.dialects.gpu_shuffle import ShuffleMode
from plait.lowering.nest_to_gpu_emit import GpuEmitter, shape_of
from plait.lowering.nest_to_gpu_shuffle import WARP, shuffle
from plait.lowering.nest_to_loops_combine import combine
from plait.lowering.nest_to_loops_tree import Load, Loop, Node, Store, Tree, walk

_INDEX = IndexType()
SHARED = IntegerAttr(3, i64)
"""The memory space of a block's shared memory, as in NVVM."""
WARP_BARRIER = "llvm.nvvm.bar.warp.sync"
"""The lanes of a mask wait for each other."""


def kinds_per_result(kinds: Sequence[str]) -> list[str]:
    """An arg reduction has two results."""
    return [k for kind in kinds for k in ([kind, "argindex"] if "arg" in kind else [kind])]


def is_small(loop: Loop) -> bool:
    """Whether every warp had better do a reduction by itself: no more than an element a lane."""
    total = prod(axis.extent for axis in loop.axes)
    return total <= WARP and not any(isinstance(node, Store) for node in walk([loop]))


class SharingEmitter(GpuEmitter):
    """Emits one kernel. ``share`` threads, those of a warp or of a block, have a point of the
    parallel axes and share the reductions of the kernel's own body."""

    def __init__(self, tree: Tree, threads: int, share: int) -> None:
        super().__init__(tree, threads)
        self.share = share
        self.outermost = self.entry
        """The block of operations that all threads of a point run together."""
        self.taken = 0
        """How many shared arrays there are."""
        self.thread: SSAValue | None = None
        """The place of a thread among those of its point."""
        self.lane: SSAValue | None = None
        self.warp: SSAValue | None = None
        """The place of a thread in its warp, and of that in the block."""
        self.busy: set[str] = set()
        """Shared arrays that other threads may still be reading."""
        self.read: set[SSAValue] = set()
        """Buffers that other threads may still be reading."""
        self.written: set[SSAValue] = set()
        """Buffers that other threads may have written since the last barrier."""

    @property
    def blocks(self) -> int:
        return -(-self.points * self.share // self.threads)

    def local(self, buffer: SSAValue) -> SSAValue:
        """Memory of a point: shared by the threads of its block."""
        if self.share != self.threads:
            raise DiagnosticException(
                f"convert-nest-to-gpu: kernel '@{self.tree.name}' keeps rows on chip: expected a "
                "'block' or 'serial' schedule, found 'warp'"
            )
        assert isa(buffer.type, MemRefType)
        name = f"{self.tree.name}_row{len(self.rows)}"
        size = prod(shape_of(buffer))
        self.rows[name] = MemRefType(buffer.type.element_type, [size], memory_space=SHARED)
        return self.add(memref.GetGlobalOp(name, self.rows[name]))

    def body(self, block_id: SSAValue, thread: SSAValue) -> None:
        self.lanes(thread)
        if self.share == self.threads:
            self.point(block_id)
            return
        assert self.warp is not None
        each = self.threads // self.share
        start = self.add(arith.MuliOp(block_id, self.index(each)))
        self.within(self.add(arith.AddiOp(start, self.warp)), each)

    def point(self, point: SSAValue) -> None:
        self.outermost = self.block
        super().point(point)

    def lanes(self, thread: SSAValue) -> None:
        """Binds the place of a thread in its block."""
        self.lane = self.add(arith.RemUIOp(thread, self.index(WARP)))
        self.warp = self.add(arith.DivUIOp(thread, self.index(WARP)))
        self.lane.name_hint, self.warp.name_hint = "lane", "warp"
        self.thread = self.lane if self.share == WARP else thread

    @property
    def is_outermost(self) -> bool:
        return self.block is self.outermost

    def nodes(self, nodes: list[Node]) -> None:
        """Emits nodes in order; threads wait before memory changes hands between them."""
        for node in nodes:
            if self.is_outermost:
                self.settle(node)
            super().nodes([node])

    def settle(self, node: Node) -> None:
        """Waits where a node reads what other threads wrote, or writes what they use."""
        inner = walk([node])
        accesses = [part for part in inner if isinstance(part, Load | Store)]
        reads = {part.buffer for part in accesses if isinstance(part, Load)}
        writes = {part.buffer for part in accesses if isinstance(part, Store)}
        if reads & self.written or writes & (self.read | self.written):
            self.barrier()
        self.read |= reads
        self.written |= writes

    def barrier(self) -> None:
        """All threads that share a point wait for each other."""
        if self.share == WARP:
            mask = self.constant(-1, i32)
            self.block.add_op(llvm.CallIntrinsicOp(WARP_BARRIER, [mask], []))
        else:
            self.block.add_op(gpu.BarrierOp())
        self.read.clear()
        self.written.clear()
        self.busy.clear()

    def first_thread(self, body: Callable[[], None]) -> None:
        """Emits ``body`` for one of the threads that share a point."""
        assert self.thread is not None
        self.under(self.add(arith.CmpiOp(self.thread, self.index(0), "eq")), body)

    def store(self, node: Store) -> None:
        """A point's own store is done by one of its threads."""
        if not self.is_outermost:
            super().store(node)
            return
        self.first_thread(lambda: super(SharingEmitter, self).store(node))

    def loop(self, node: Loop) -> None:
        if not self.is_outermost:
            super().loop(node)
        elif node.mode != "reduce":
            self.in_order(node)
        elif is_small(node):
            assert self.lane is not None
            results = self.over_lanes(node, self.strided(node, self.lane, WARP))
            self.values.update(zip(node.results, self.from_first(results), strict=True))
        else:
            assert self.thread is not None
            results = self.shared_tree(node, self.strided(node, self.thread, self.share))
            self.values.update(zip(node.results, results, strict=True))

    def in_order(self, node: Loop) -> None:
        """A loop in order: one thread runs it and gives its results to all."""

        def run() -> list[SSAValue]:
            super(SharingEmitter, self).loop(node)
            return [self.values[result] for result in node.results]

        results = self.alone([result.type for result in node.results], run)
        self.values.update(zip(node.results, results, strict=True))

    def alone(
        self, types: Sequence[Attribute], run: Callable[[], Sequence[SSAValue]]
    ) -> Sequence[SSAValue]:
        """What ``run`` emits for one thread gives, in all that share its point."""
        if self.share == WARP:
            return self.from_first(self.in_first(types, run))
        arrays = self.arrays(types, 1)

        def keep() -> None:
            for array, value in zip(arrays, run(), strict=True):
                self.block.add_op(memref.StoreOp.get(value, array, [self.index(0)]))

        self.first_thread(keep)
        return self.handed_out(arrays) if arrays else []

    def in_first(
        self, types: Sequence[Attribute], run: Callable[[], Sequence[SSAValue]]
    ) -> Sequence[SSAValue]:
        """What ``run`` emits for one thread gives; zeros in the others."""
        outer, self.block = self.block, Block()
        self.scopes.append({})
        self.block.add_op(scf.YieldOp(*run()))
        self.scopes.pop()
        inner, self.block = self.block, outer
        other = Block([scf.YieldOp(*(self.constant(0, type) for type in types))])
        assert self.thread is not None
        first = self.add(arith.CmpiOp(self.thread, self.index(0), "eq"))
        branch = scf.IfOp(first, types, Region(inner), Region(other))
        self.block.add_op(branch)
        return branch.results

    def handed_out(self, arrays: Sequence[SSAValue]) -> list[SSAValue]:
        """The first element of each shared array, read by all threads after a barrier."""
        self.barrier()
        self.busy.update(map(_name, arrays))
        return [self.add(memref.LoadOp.get(array, [self.index(0)])) for array in arrays]

    def strided(self, node: Loop, start: SSAValue, threads: int) -> Sequence[SSAValue]:
        """A thread's share of a reduction: every ``threads``-th element."""
        types = [result.type for result in node.results]
        kinds = kinds_per_result(node.kinds)
        starts = [
            self.constant(self.start(kind, type), type)
            for kind, type in zip(kinds, types, strict=True)
        ]
        total = prod(axis.extent for axis in node.axes)
        block = Block(arg_types=[_INDEX, *types])
        outer, self.block = self.block, block
        self.scopes.append({})
        self.place(node.axes, block.args[0])
        results = self._innermost(node, block.args[1:])
        self.block.add_op(scf.YieldOp(*results))
        self.scopes.pop()
        self.block = outer
        loop = scf.ForOp(start, self.index(total), self.index(threads), starts, Region(block))
        self.block.add_op(loop)
        return loop.results

    def shared_tree(self, node: Loop, partials: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Combines the partial results of all threads, in a fixed order, and gives them to all:
        within warps by shuffles, then those of the warps through shared memory."""
        values = self.over_lanes(node, partials)
        if self.share == WARP or not values:
            return self.from_first(values)
        arrays = self.arrays([value.type for value in values], self.threads // WARP)
        assert self.lane is not None
        first = self.add(arith.CmpiOp(self.lane, self.index(0), "eq"))
        self.under(first, lambda: self.keep(values, arrays))
        return self.over_warps(node, arrays)

    def over_lanes(self, node: Loop, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Combines the partial results of a warp in its first lane."""
        distance = WARP // 2
        while distance:
            others = [self.shuffle(value, ShuffleMode.DOWN, distance) for value in values]
            values = self.combined(node.kinds, values, others)
            distance //= 2
        return values

    def from_first(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The values of the first lane, in every lane."""
        return [self.shuffle(value, ShuffleMode.IDX, 0) for value in values]

    def keep(self, values: Sequence[SSAValue], arrays: Sequence[SSAValue]) -> None:
        """Stores the results of a warp."""
        assert self.warp is not None
        for array, value in zip(arrays, values, strict=True):
            self.block.add_op(memref.StoreOp.get(value, array, [self.warp]))

    def over_warps(self, node: Loop, arrays: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Combines the results of the warps, in order, in every thread."""

        def body(warp: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            others = [self.add(memref.LoadOp.get(array, [warp])) for array in arrays]
            return self.combined(node.kinds, carried, others)

        warps = self.index(self.threads // WARP)
        return self.nested(self.index(1), warps, self.handed_out(arrays), body)

    def combined(
        self, kinds: Sequence[str], mine: Sequence[SSAValue], theirs: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The combination of two results of each kind."""
        found: list[SSAValue] = []
        for kind in kinds:
            part = slice(len(found), len(found) + (2 if "arg" in kind else 1))
            found += combine(self.add, kind, mine[part], theirs[part])
        return found

    def shuffle(self, value: SSAValue, mode: ShuffleMode, offset: int) -> SSAValue:
        """A value of another lane of the warp."""
        wide = self.start("argindex", _INDEX) >= 2**31
        return shuffle(self.add, self.constant, value, mode, offset, wide)

    def arrays(self, elements: Sequence[Attribute], size: int) -> list[SSAValue]:
        """A shared array per element type, ready to be written: the next reduction uses them
        again."""
        used: dict[Attribute, int] = {}
        found: list[SSAValue] = []
        for element in elements:
            number = used[element] = used.get(element, -1) + 1
            type = MemRefType(element, [size], memory_space=SHARED)
            names = self.memory.setdefault(type, [])
            if number == len(names):
                names.append(f"{self.tree.name}_shared{self.taken}")
                self.taken += 1
            found.append(self.add(memref.GetGlobalOp(names[number], type)))
        if not self.busy.isdisjoint(map(_name, found)):
            self.barrier()
        return found


def _name(array: SSAValue) -> str:
    """The name of a shared array."""
    assert isinstance(array.owner, memref.GetGlobalOp)
    return array.owner.name_.string_value()
