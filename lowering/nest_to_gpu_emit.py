"""Builds the GPU function of a kernel: one point of the parallel axes per thread, or per block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.hints import isa

from plait.dialects.gpu_shuffle import ShuffleMode
from plait.lowering.nest_to_gpu_shuffle import WARP, shuffle
from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_combine import combine
from plait.lowering.nest_to_loops_emit import Emitter
from plait.lowering.nest_to_loops_plan import LoopPlan
from plait.lowering.nest_to_loops_tree import Load, Loop, Node, Store, Tree, walk

_INDEX = IndexType()
SHARED = IntegerAttr(3, i64)
"""The memory space of a block's shared memory, as in NVVM."""


def kinds_per_result(kinds: Sequence[str]) -> list[str]:
    """An arg reduction has two results."""
    return [k for kind in kinds for k in ([kind, "argindex"] if "arg" in kind else [kind])]


def shape_of(buffer: SSAValue) -> tuple[int, ...]:
    """The extents of a buffer."""
    type = buffer.type
    assert isa(type, MemRefType)
    return type.get_shape()


def is_small(loop: Loop) -> bool:
    """Whether every warp had better do a reduction by itself: no more than an element a lane."""
    total = prod(axis.extent for axis in loop.axes)
    return total <= WARP and not any(isinstance(node, Store) for node in walk([loop]))


class GpuEmitter(Emitter):
    """Emits one kernel. ``threads`` are those of a block; with ``shared`` a block is one point of
    the parallel axes and its threads share the reductions of the kernel's own body."""

    def __init__(self, tree: Tree, threads: int, shared: bool) -> None:
        super().__init__(tree, LoopPlan())
        self.entry = Block(arg_types=[argument.type for argument in tree.arguments])
        self.block = self.outermost = self.entry
        self.threads = threads
        self.shared = shared
        self.points = prod(axis.extent for axis in tree.axes)
        self.thread: SSAValue | None = None
        self.memory: dict[MemRefType[Attribute], list[str]] = {}
        """Names of the shared arrays per type."""
        self.taken = 0
        self.rows: dict[str, MemRefType[Attribute]] = {}
        """The shared arrays that keep the rows of values."""
        self.lane: SSAValue | None = None
        """The lane of a thread in its warp."""
        self.warp: SSAValue | None = None
        self.busy: set[str] = set()
        """Shared arrays that threads of the block may still be reading."""
        self.read: set[SSAValue] = set()
        """Buffers that threads of the block may still be reading."""
        self.written: set[SSAValue] = set()
        """Buffers that other threads of the block may have written since the last barrier."""

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.points if self.shared else -(-self.points // self.threads)

    def function(self) -> tuple[list[memref.GlobalOp], gpu.FuncOp]:
        """Shared arrays and the function."""
        for argument, parameter in zip(self.tree.arguments, self.entry.args, strict=True):
            parameter.name_hint = argument.name_hint
            self.values[argument] = parameter
            self.flat[argument] = self._flatten(parameter)
        for local in self.tree.locals:
            self.flat[local] = self._local(local)
        block_id = self.add(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
        self.thread = self.add(gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
        self.body(block_id, self.thread)
        self.block.add_op(gpu.ReturnOp([]))
        first = self.entry.first_op
        assert first is not None
        self.entry.insert_ops_before(list(self.constants.values()), first)
        types = [argument.type for argument in self.entry.args]
        function = gpu.FuncOp(self.tree.name, (types, []), Region(self.entry), kernel=None)
        function.attributes["gpu.kernel"] = UnitAttr()
        function.attributes["plait.grid"] = DenseArrayBase.from_list(i64, [self.blocks, 1, 1])
        function.attributes["plait.block"] = DenseArrayBase.from_list(i64, [self.threads, 1, 1])
        return self._globals(), function

    def body(self, block_id: SSAValue, thread: SSAValue) -> None:
        """What a thread of a block does."""
        if self.shared:
            self.lanes(thread)
            self.point(block_id)
            return
        start = self.add(arith.MuliOp(block_id, self.index(self.threads)))
        point = self.add(arith.AddiOp(start, thread))
        self.guarded(point, self.points, lambda: self.point(point))

    def lanes(self, thread: SSAValue) -> None:
        """Binds the place of a thread in its block."""
        self.lane = self.add(arith.RemUIOp(thread, self.index(WARP)))
        self.warp = self.add(arith.DivUIOp(thread, self.index(WARP)))
        self.lane.name_hint, self.warp.name_hint = "lane", "warp"

    def point(self, point: SSAValue) -> None:
        """What is done at a point of the parallel axes."""
        self.place(self.tree.axes, point)
        self.nodes(self.tree.body)

    def _flatten(self, buffer: SSAValue) -> SSAValue:
        type = buffer.type
        assert isa(type, MemRefType)
        shape = shape_of(buffer)
        if len(shape) == 1:
            return buffer
        flat = MemRefType(type.element_type, [prod(shape)])
        cast = memref.ReinterpretCastOp(buffer, [], [], [], [0], [prod(shape)], [1], flat)
        return self.add(cast)

    def _local(self, local: SSAValue) -> SSAValue:
        """Memory of a point: shared by the threads of its block, or a thread's own array."""
        assert isa(local.type, MemRefType)
        element, size = local.type.element_type, prod(shape_of(local))
        if not self.shared:
            return self.add(memref.AllocaOp.get(element, shape=[size]))
        name = f"{self.tree.name}_row{len(self.rows)}"
        self.rows[name] = MemRefType(element, [size], memory_space=SHARED)
        return self.add(memref.GetGlobalOp(name, self.rows[name]))

    def _globals(self) -> list[memref.GlobalOp]:
        types = {name: type for type, names in self.memory.items() for name in names}
        return [
            memref.GlobalOp.get(
                sym_name=StringAttr(name),
                sym_type=type,
                initial_value=UnitAttr(),
                sym_visibility=StringAttr("private"),
            )
            for name, type in {**self.rows, **types}.items()
        ]

    # Indices

    def place(self, axes: Sequence[Axis], position: SSAValue) -> None:
        """Binds axes to the point at a row-major position."""
        rest = position
        for number, axis in enumerate(reversed(axes)):
            if number == len(axes) - 1:
                self.axes[axis] = rest
                return
            extent = self.index(axis.extent)
            self.axes[axis] = self.add(arith.RemUIOp(rest, extent))
            rest = self.add(arith.DivUIOp(rest, extent))

    def start(self, kind: str, type: Attribute) -> float | int:
        """What a reduction starts from; a position starts past all others, yet within 32 bits
        where these are."""
        if kind != "argindex" or not isinstance(type, IndexType):
            return super().start(kind, type)
        loops = [node.axes for node in walk(self.tree.body) if isinstance(node, Loop)]
        counts = [prod(axis.extent for axis in axes) for axes in (self.tree.axes, *loops)]
        sizes = [prod(shape_of(argument)) for argument in self.tree.arguments]
        return max(2**31 - 1, prod(counts), *sizes)

    def guarded(self, value: SSAValue, limit: int, body: Callable[[], None]) -> None:
        """Emits ``body`` under ``value < limit``."""
        self.under(self.add(arith.CmpiOp(value, self.index(limit), "ult")), body)

    def under(self, condition: SSAValue, body: Callable[[], None]) -> None:
        """Emits ``body`` under a condition."""
        outer, self.block = self.block, Block()
        self.scopes.append({})
        body()
        self.block.add_op(scf.YieldOp())
        self.scopes.pop()
        inner, self.block = self.block, outer
        self.block.add_op(scf.IfOp(condition, [], Region(inner)))

    # Sharing

    @property
    def is_outermost(self) -> bool:
        return self.shared and self.block is self.outermost

    def nodes(self, nodes: list[Node]) -> None:
        """Emits nodes in order; a block waits before memory changes hands between its threads."""
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
        """All threads of the block wait for each other."""
        self.block.add_op(gpu.BarrierOp())
        self.read.clear()
        self.written.clear()
        self.busy.clear()

    def first_thread(self, body: Callable[[], None]) -> None:
        """Emits ``body`` for one thread of the block."""
        assert self.thread is not None
        self.under(self.add(arith.CmpiOp(self.thread, self.index(0), "eq")), body)

    def store(self, node: Store) -> None:
        """A point's own store is done by one thread of its block."""
        if not self.is_outermost:
            super().store(node)
            return
        self.first_thread(lambda: super(GpuEmitter, self).store(node))

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
            results = self.shared_tree(node, self.strided(node, self.thread, self.threads))
            self.values.update(zip(node.results, results, strict=True))

    def in_order(self, node: Loop) -> None:
        """A loop in order: one thread runs it and gives its results to all."""
        arrays = self.arrays([result.type for result in node.results], 1)

        def alone() -> None:
            super(GpuEmitter, self).loop(node)
            for array, result in zip(arrays, node.results, strict=True):
                value = self.values[result]
                self.block.add_op(memref.StoreOp.get(value, array, [self.index(0)]))

        self.first_thread(alone)
        if arrays:
            self.values.update(zip(node.results, self.handed_out(arrays), strict=True))

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
        if self.threads == WARP or not values:
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
