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

from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_combine import combine, start_value
from plait.lowering.nest_to_loops_emit import Emitter
from plait.lowering.nest_to_loops_plan import LoopPlan
from plait.lowering.nest_to_loops_tree import Loop, Store, Tree

_INDEX = IndexType()
SHARED = IntegerAttr(3, i64)
"""The memory space of a block's shared memory, as in NVVM."""


def kinds_per_result(kinds: Sequence[str]) -> list[str]:
    """An arg reduction has two results."""
    return [k for kind in kinds for k in ([kind, "argindex"] if "arg" in kind else [kind])]


class GpuEmitter(Emitter):
    """Emits one kernel. ``threads`` are those of a block; with ``shared`` a block is one point of
    the parallel axes and its threads share the reductions of the kernel's own body."""

    def __init__(self, tree: Tree, threads: int, shared: bool) -> None:
        super().__init__(tree, LoopPlan())
        self.entry = Block(arg_types=[argument.type for argument in tree.arguments])
        self.block = self.entry
        self.threads = threads
        self.shared = shared
        self.points = prod(axis.extent for axis in tree.axes)
        self.thread: SSAValue | None = None
        self.memory: dict[Attribute, list[str]] = {}
        """Names of the shared arrays per element type."""
        self.taken = 0

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
        block_id = self.add(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
        self.thread = self.add(gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
        if self.shared:
            self.place(self.tree.axes, block_id)
            self.nodes(self.tree.body)
        else:
            start = self.add(arith.MuliOp(block_id, self.index(self.threads)))
            point = self.add(arith.AddiOp(start, self.thread))
            self.guarded(point, self.points, lambda: self._point(point))
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

    def _point(self, point: SSAValue) -> None:
        self.place(self.tree.axes, point)
        self.nodes(self.tree.body)

    def _flatten(self, buffer: SSAValue) -> SSAValue:
        type = buffer.type
        assert isa(type, MemRefType)
        shape = type.get_shape()
        if len(shape) == 1:
            return buffer
        flat = MemRefType(type.element_type, [prod(shape)])
        cast = memref.ReinterpretCastOp(buffer, [], [], [], [0], [prod(shape)], [1], flat)
        return self.add(cast)

    def _globals(self) -> list[memref.GlobalOp]:
        found: list[memref.GlobalOp] = []
        for type, names in self.memory.items():
            for name in names:
                found.append(
                    memref.GlobalOp.get(
                        sym_name=StringAttr(name),
                        sym_type=self._shared_type(type),
                        initial_value=UnitAttr(),
                        sym_visibility=StringAttr("private"),
                    )
                )
        return found

    def _shared_type(self, type: Attribute) -> MemRefType[Attribute]:
        return MemRefType(type, [self.threads], memory_space=SHARED)

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
        return self.shared and self.block is self.entry

    def store(self, node: Store) -> None:
        """A point's own store is done by one thread of its block."""
        if not self.is_outermost:
            super().store(node)
            return
        assert self.thread is not None
        first = self.add(arith.CmpiOp(self.thread, self.index(0), "eq"))
        self.under(first, lambda: super(GpuEmitter, self).store(node))

    def loop(self, node: Loop) -> None:
        if not self.is_outermost or node.mode != "reduce":
            super().loop(node)
            return
        results = self.strided(node)
        if results:
            self.values.update(zip(node.results, self.shared_tree(node, results), strict=True))

    def strided(self, node: Loop) -> Sequence[SSAValue]:
        """A thread's share of a reduction: every ``threads``-th element."""
        assert self.thread is not None
        types = [result.type for result in node.results]
        kinds = kinds_per_result(node.kinds)
        starts = [
            self.constant(start_value(kind, type), type)
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
        loop = scf.ForOp(
            self.thread, self.index(total), self.index(self.threads), starts, Region(block)
        )
        self.block.add_op(loop)
        return loop.results

    def shared_tree(self, node: Loop, partials: Sequence[SSAValue]) -> list[SSAValue]:
        """Combines the partial results of all threads, in a fixed order, and gives them to all."""
        assert self.thread is not None
        thread = self.thread
        arrays = self.arrays([value.type for value in partials])
        for array, value in zip(arrays, partials, strict=True):
            self.block.add_op(memref.StoreOp.get(value, array, [thread]))
        half = self.threads // 2
        while half:
            self.block.add_op(gpu.BarrierOp())
            self.guarded(thread, half, lambda half=half: self.halve(node, arrays, half))
            half //= 2
        self.block.add_op(gpu.BarrierOp())
        results = [self.add(memref.LoadOp.get(array, [self.index(0)])) for array in arrays]
        self.block.add_op(gpu.BarrierOp())
        return results

    def halve(self, node: Loop, arrays: Sequence[SSAValue], half: int) -> None:
        """Combines the upper half of the partial results into the lower half."""
        assert self.thread is not None
        other = self.add(arith.AddiOp(self.thread, self.index(half)))
        mine = [self.add(memref.LoadOp.get(array, [self.thread])) for array in arrays]
        theirs = [self.add(memref.LoadOp.get(array, [other])) for array in arrays]
        position = 0
        for kind in node.kinds:
            part = slice(position, position + (2 if "arg" in kind else 1))
            results = combine(self.add, kind, mine[part], theirs[part])
            for array, value in zip(arrays[part], results, strict=True):
                self.block.add_op(memref.StoreOp.get(value, array, [self.thread]))
            position = part.stop

    def arrays(self, types: Sequence[Attribute]) -> list[SSAValue]:
        """A shared array per type; arrays are used again by the next reduction."""
        used: dict[Attribute, int] = {}
        found: list[SSAValue] = []
        for type in types:
            number = used[type] = used.get(type, -1) + 1
            names = self.memory.setdefault(type, [])
            if number == len(names):
                names.append(f"{self.tree.name}_shared{self.taken}")
                self.taken += 1
            get = memref.GetGlobalOp(names[number], self._shared_type(type))
            found.append(self.add(get))
        return found
