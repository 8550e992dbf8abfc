"""Reads a ``nest.kernel`` into a :class:`Tree`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstraintKind, AffineSet
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.hints import isa

from plait.dialects import nest
from plait.lowering.nest_to_loops_affine import Affine, Axis, from_expr, join_parts
from plait.lowering.nest_to_loops_tree import (
    Condition,
    Index,
    Load,
    Loop,
    Node,
    Scalar,
    Store,
    Test,
    Tree,
)


class _Reader:
    def __init__(self) -> None:
        self.indices: dict[SSAValue, Affine] = {}
        self.locals: list[SSAValue] = []

    def index(self, value: SSAValue) -> Affine:
        """An axis, a known affine expression, or a value from data."""
        return self.indices.get(value) or self.indices.setdefault(value, Affine.of(value))

    def axes(self, values: Sequence[SSAValue], attributes: Sequence[nest.AxisAttr]) -> list[Axis]:
        """New axes for the indices of a kernel or loop."""
        found: list[Axis] = []
        for value, attribute in zip(values, attributes, strict=True):
            axis = Axis(attribute.axis.data, attribute.extent.data)
            self.indices[value] = Affine.of(axis)
            found.append(axis)
        return found

    def offset(self, op: nest.LoadOp | nest.StoreOp) -> Affine:
        """The flat, row-major offset of an access."""
        type = op.buffer.type
        assert isa(type, MemRefType)
        operands = [self.index(value) for value in op.indices]
        total = Affine()
        for extent, result in zip(type.get_shape(), op.map.data.results, strict=True):
            total = total.scaled(extent) + from_expr(result, operands)
        return join_parts(total)

    def conditions(self, set: AffineSet | None, indices: Sequence[SSAValue]) -> list[Condition]:
        """The constraints of a set."""
        if set is None:
            return []
        operands = [self.index(value) for value in indices]
        found: list[Condition] = []
        for constraint in set.constraints:
            value = from_expr(constraint.lhs, operands)
            value = value + from_expr(constraint.rhs, operands).scaled(-1)
            if constraint.kind is AffineConstraintKind.le:
                value = value.scaled(-1)
            found.append(Condition(value, constraint.kind is AffineConstraintKind.eq))
        return found

    def body(self, block: Block) -> list[Node]:
        """The nodes of a block; an axis used as a number is made one first."""
        nodes: list[Node] = [
            Index(argument, self.indices[argument])
            for argument in block.args
            if argument in self.indices and any(_reads(use.operation) for use in argument.uses)
        ]
        for op in block.ops:
            node = self.node(op)
            if node is not None:
                nodes.append(node)
        return nodes

    def node(self, op: Operation) -> Node | None:
        """One operation."""
        if isinstance(op, nest.LoadOp):
            where = op.where.data if op.where is not None else None
            conditions = self.conditions(where, op.indices)
            return Load(op.result, op.buffer, self.offset(op), conditions)
        if isinstance(op, nest.StoreOp):
            where = op.where.data if op.where is not None else None
            conditions = self.conditions(where, op.indices)
            return Store(op.value, op.buffer, self.offset(op), conditions)
        if isinstance(op, nest.TestOp):
            return Test(op.result, self.conditions(op.set.data, op.indices))
        if isinstance(op, nest.IndexOp):
            operands = [self.index(value) for value in op.indices]
            value = join_parts(from_expr(op.map.data.results[0], operands))
            self.indices[op.result] = value
            return Index(op.result, value)
        if isinstance(op, nest.ReduceOp):
            axes = self.axes(op.indices, op.axes.data)
            kinds = [kind.data for kind in op.kinds]
            body = self.body(op.body.block)
            return Loop("reduce", axes, kinds, body, list(op.yielded), list(op.res))
        if isinstance(op, nest.SequentialOp):
            axes = self.axes(op.indices, op.axes.data)
            body = self.body(op.body.block)
            loop = Loop("sequential", axes, [], body, list(op.yielded), list(op.res))
            loop.inits, loop.carried = list(op.inits), list(op.carried)
            return loop
        if isinstance(op, nest.LocalOp):
            self.locals.append(op.buffer)
            return None
        if isinstance(op, nest.YieldOp):
            return None
        if not op.regions and len(op.results) == 1 and op.name.startswith(("arith.", "math.")):
            return Scalar(op)
        raise DiagnosticException(
            f"'{op.name}' inside a kernel: expected operations of nest, arith and math operations"
        )


def _reads(op: Operation) -> bool:
    """Whether ``op`` reads an index as a value, not as a position."""
    return not isinstance(op, nest.LoadOp | nest.StoreOp | nest.TestOp | nest.IndexOp)


def read_kernel(op: nest.KernelOp) -> Tree:
    """The tree of a kernel."""
    reader = _Reader()
    axes = reader.axes(op.indices, op.axes.data)
    body = reader.body(op.body.block)
    return Tree(op.sym_name.data, list(op.buffers), axes, body, reader.locals)
