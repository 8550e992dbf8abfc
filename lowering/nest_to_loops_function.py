"""Builds the level 4 function of a kernel: units, tiles, then the body."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FunctionType, MemRefType
from xdsl.ir import Region, SSAValue
from xdsl.utils.hints import isa

from plait.lowering.nest_to_loops_affine import Affine, Axis
from plait.lowering.nest_to_loops_emit import Emitter, index_attr
from plait.lowering.nest_to_loops_plan import Dim, LoopPlan
from plait.lowering.nest_to_loops_tree import Tree


class FunctionEmitter(Emitter):
    """Emits one function."""

    def __init__(self, tree: Tree, plan: LoopPlan) -> None:
        super().__init__(tree, plan)
        self.sizes: dict[SSAValue, int] = {}
        """Elements of each local buffer, for one copy of the body."""
        self.copies: list[tuple[SSAValue, int]] = []
        """The copy of the body on each jammed axis, and how many there are."""

    def offset_in(self, buffer: SSAValue, offset: Affine) -> SSAValue:
        """Every copy of the body has local buffers of its own."""
        found = super().offset_in(buffer, offset)
        if buffer not in self.sizes or not self.copies:
            return found
        copy, _ = self.copies[0]
        for index, count in self.copies[1:]:
            scaled = self.add(arith.MuliOp(copy, self.index(count)))
            copy = self.add(arith.AddiOp(scaled, index))
        start = self.add(arith.MuliOp(copy, self.index(self.sizes[buffer])))
        return self.add(arith.AddiOp(start, found))

    def function(self) -> func.FuncOp:
        """The whole function."""
        tree, plan = self.tree, self.plan
        for argument, parameter in zip(tree.arguments, self.entry.args, strict=False):
            self.values[argument] = parameter
            self.flat[argument] = self._flatten(parameter)
        for local in tree.locals:
            type = local.type
            assert isa(type, MemRefType)
            size = prod(type.get_shape())
            self.sizes[local] = size
            copies = prod(count for _, count in plan.jams)
            memory = memref.AllocaOp.get(type.element_type, shape=[size * copies])
            self.flat[local] = self.add(memory)
        begin, end = self.entry.args[-2:]
        self.nested(begin, end, [], self._unit)
        self.block.add_op(func.ReturnOp())
        first = self.entry.first_op
        assert first is not None
        self.entry.insert_ops_before(list(self.constants.values()), first)
        types = FunctionType.from_lists([arg.type for arg in self.entry.args], [])
        op = func.FuncOp(tree.name, types, Region(self.entry))
        op.attributes["plait.extent"] = index_attr(plan.units)
        op.attributes["plait.work"] = index_attr(plan.unit_work)
        return op

    def _flatten(self, buffer: SSAValue) -> SSAValue:
        type = buffer.type
        assert isa(type, MemRefType)
        shape = type.get_shape()
        if len(shape) == 1:
            return buffer
        flat = MemRefType(type.element_type, [prod(shape)])
        return self.add(memref.ReinterpretCastOp(buffer, [], [], [], [0], [prod(shape)], [1], flat))

    def _unit(self, index: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        plan = self.plan
        steps: dict[Axis, SSAValue] = {}
        rest = index
        block: SSAValue | None = None
        if plan.split:
            blocks = -(-plan.inner[0].count // plan.split)
            rest, block = self._divide(rest, blocks, last=not plan.dims)
        for position in range(len(plan.dims) - 1, -1, -1):
            dim = plan.dims[position]
            rest, steps[dim.axis] = self._divide(rest, dim.count, last=position == 0)
        self._inner(0, steps, block)
        return []

    def _divide(self, value: SSAValue, count: int, last: bool) -> tuple[SSAValue, SSAValue]:
        if last:
            return value, value
        size = self.index(count)
        return self.add(arith.DivUIOp(value, size)), self.add(arith.RemUIOp(value, size))

    def _inner(self, depth: int, steps: dict[Axis, SSAValue], block: SSAValue | None) -> None:
        plan = self.plan
        if depth == len(plan.inner):
            self._tiles(steps)
            return
        dim = plan.inner[depth]
        low, high = self.index(0), self.index(dim.count)
        if block is not None and depth == 0:
            low = self.add(arith.MuliOp(block, self.index(plan.split)))
            past = self.add(arith.AddiOp(low, self.index(plan.split)))
            high = self.add(arith.MinSIOp(past, high))

        def body(index: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            steps[dim.axis] = index
            self._inner(depth + 1, steps, None)
            return []

        self.nested(low, high, [], body)

    def _tiles(self, steps: dict[Axis, SSAValue]) -> None:
        """Binds the axes and opens the jammed and the vector loop."""
        plan = self.plan
        dims = {dim.axis: dim for dim in [*plan.dims, *plan.inner]}
        tiled = [(dims.pop(axis), "plait.jam") for axis, _ in plan.jams]
        if plan.lane_axis is not None:
            tiled.append((dims.pop(plan.lane_axis), "plait.lanes"))
        for axis in dims:
            self.axes[axis] = steps[axis]
        self._open(tiled, steps)

    def _open(self, tiled: list[tuple[Dim, str]], steps: dict[Axis, SSAValue]) -> None:
        if not tiled:
            self.nodes(self.tree.body)
            return
        (dim, attribute), rest = tiled[0], tiled[1:]
        extent, tile = dim.axis.extent, dim.tile
        base = steps[dim.axis]
        if tile > 1:
            base = self.add(arith.MuliOp(base, self.index(tile)))
        high = self.index(tile)
        if extent % tile and self.plan.in_order:
            left = self.add(arith.SubiOp(self.index(extent), base))
            high = self.add(arith.MinSIOp(left, high))
        elif extent % tile:
            base = self.add(arith.MinSIOp(base, self.index(extent - tile)))

        def body(index: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.axes[dim.axis] = self.add(arith.AddiOp(base, index))
            if attribute == "plait.jam":
                self.copies.append((index, tile))
            self._open(rest, steps)
            return []

        self.nested(self.index(0), high, [], body, {attribute: index_attr(tile)})
