"""Builds the GPU function of a kernel: a thread, a warp or a block a point of its axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.hints import isa

from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_emit import Emitter
from plait.lowering.nest_to_loops_plan import LoopPlan
from plait.lowering.nest_to_loops_tree import Loop, Tree, walk

_INDEX = IndexType()


def shape_of(buffer: SSAValue) -> tuple[int, ...]:
    """The extents of a buffer."""
    type = buffer.type
    assert isa(type, MemRefType)
    return type.get_shape()


class GpuEmitter(Emitter):
    """Emits one kernel, with a thread a point; ``threads`` are those of a block."""

    def __init__(self, tree: Tree, threads: int) -> None:
        super().__init__(tree, LoopPlan())
        self.entry = Block(arg_types=[argument.type for argument in tree.arguments])
        self.block = self.entry
        self.threads = threads
        self.points = prod(axis.extent for axis in tree.axes)
        self.memory: dict[MemRefType[Attribute], list[str]] = {}
        """Names of the shared arrays per type."""
        self.rows: dict[str, MemRefType[Attribute]] = {}
        """The shared arrays that keep the rows of values."""

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return -(-self.points // self.threads)

    def function(self) -> tuple[list[memref.GlobalOp], gpu.FuncOp]:
        """Shared arrays and the function."""
        for argument, parameter in zip(self.tree.arguments, self.entry.args, strict=True):
            parameter.name_hint = argument.name_hint
            self.values[argument] = parameter
            self.flat[argument] = self._flatten(parameter)
        for local in self.tree.locals:
            self.flat[local] = self.local(local)
        block_id = self.add(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X)))
        self.body(block_id, self.add(gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))))
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
        start = self.add(arith.MuliOp(block_id, self.index(self.threads)))
        point = self.add(arith.AddiOp(start, thread))
        self.within(point, self.threads)

    def within(self, point: SSAValue, each: int) -> None:
        """What is done at a point, if there is one: the last of the blocks, with ``each`` points,
        may have fewer."""
        if self.points % each:
            self.guarded(point, self.points, lambda: self.point(point))
        else:
            self.point(point)

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

    def local(self, buffer: SSAValue) -> SSAValue:
        """Memory of a point: an array of its thread."""
        assert isa(buffer.type, MemRefType)
        element = buffer.type.element_type
        return self.add(memref.AllocaOp.get(element, shape=[prod(shape_of(buffer))]))

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
