"""Nested loop bodies under construction: every operation goes to the outermost body it can."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineExpr,
    AffineMap,
    AffineSet,
)

from plait.dialects import nest
from plait.passes.analysis.affine import Expr, Space, index, to_affine
from plait.passes.analysis.index_maps import Condition, Point

LONGEST = 48
"""Terms of the longest index expression that is written out in a map."""


@dataclass(frozen=True)
class Axis:
    """An axis to loop over: its index in the kernel's :class:`Space`, its name and extent."""

    index: int
    name: str
    extent: int

    @property
    def attr(self) -> nest.AxisAttr:
        return nest.AxisAttr.get(self.name, self.extent)


@dataclass
class Scope:
    """A body: what it holds, and how deep the values are that it takes from outside."""

    block: Block
    axes: Sequence[Axis]
    free: set[int] = field(default_factory=set[int])
    added: list[SSAValue] = field(default_factory=list[SSAValue])


class Scopes:
    """The stack of open bodies of one kernel.

    A value's depth is the position of the body it lives in. An operation is placed in the body of
    its deepest operand, so what does not depend on an inner axis is computed outside of it.
    """

    def __init__(self, block: Block):
        self.space = Space()
        self.value_of: dict[int, SSAValue] = {}
        """The SSA value that each index of the space stands for now."""
        self.depth: dict[SSAValue, int] = dict.fromkeys(block.args, 0)
        self.stack = [Scope(block, ())]
        self.named: dict[int, Expr] = {}
        """Expressions that have an index of their own, by its number."""
        self._name_of: dict[Expr, int] = {}
        self._sizes: dict[Expr, int] = {}

    @property
    def top(self) -> int:
        return len(self.stack) - 1

    def bind(self, index: int, value: SSAValue) -> None:
        self.value_of[index] = value

    def is_open(self, value: SSAValue) -> bool:
        """Whether a value can be used in the innermost body."""
        depth = self.depth[value]
        block = value.block if isinstance(value, BlockArgument) else value.owner.parent
        return depth <= self.top and block is self.stack[depth].block

    def place(self, op: Operation, at_least: int = 0) -> SSAValue | None:
        """Adds an operation to the body of its deepest operand, or to a deeper one."""
        depths = {self.depth[operand] for operand in op.operands}
        depth = max(depths, default=0)
        depth = max(depth, at_least)
        self._append(op, depth, depths)
        return op.results[0] if op.results else None

    def emit(self, op: Operation) -> SSAValue:
        """:meth:`place` for an operation with a result."""
        result = self.place(op)
        assert result is not None
        return result

    def _append(self, op: Operation, depth: int, depths: set[int]) -> None:
        scope = self.stack[depth]
        scope.block.add_op(op)
        scope.free.update(d for d in depths if d < depth)
        for result in op.results:
            self.depth[result] = depth
            scope.added.append(result)

    # Opening and closing bodies

    def open(self, axes: Sequence[Axis], carried: Sequence[Attribute] = ()) -> list[SSAValue]:
        """Opens a body over axes and binds their indices; returns its carried values."""
        block = Block(arg_types=[*(IndexType() for _ in axes), *carried])
        scope = Scope(block, axes)
        self.stack.append(scope)
        for argument in block.args:
            self.depth[argument] = self.top
        for axis, argument in zip(axes, block.args, strict=False):
            argument.name_hint = axis.name
            self.bind(axis.index, argument)
        return list(block.args[len(axes) :])

    def close_reduce(
        self, kinds: Sequence[nest.CombineKind], values: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Ends the innermost body as a reduction of ``values``."""
        scope = self._pop(values)
        op = nest.ReduceOp(
            kinds,
            [axis.attr for axis in scope.axes],
            Region(scope.block),
            [value.type for value in values],
        )
        self._append(op, max(scope.free, default=0), scope.free)
        return op.res

    def close_sequential(
        self, inits: Sequence[SSAValue], values: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Ends the innermost body as an ordered loop that carries ``values``."""
        scope = self._pop(values)
        op = nest.SequentialOp([axis.attr for axis in scope.axes], inits, Region(scope.block))
        depths = scope.free | {self.depth[init] for init in inits}
        self._append(op, max(depths, default=0), depths)
        return op.res

    def _pop(self, values: Sequence[SSAValue]) -> Scope:
        scope = self.stack[-1]
        scope.free.update(d for v in values if (d := self.depth[v]) < self.top)
        scope.block.add_op(nest.YieldOp(*values))
        self.stack.pop()
        return scope

    # Indices

    def size_of(self, expr: Expr) -> int:
        """How many terms an expression has, with those within its quotients and remainders."""
        size = self._sizes.get(expr)
        if size is None:
            inner = [atom.expr for atom, _ in expr.terms if not isinstance(atom, int)]
            size = self._sizes[expr] = len(expr.terms) + sum(map(self.size_of, inner))
        return size

    def short(self, expr: Expr) -> Expr:
        """The expression, or an index that stands for it if it is long: views that mix axes over
        and over would make expressions that grow with every one of them."""
        if self.size_of(expr) <= LONGEST:
            return expr
        if expr not in self._name_of:
            number = self.space.new_index(self.space.bounds_of(expr))
            self._name_of[expr] = number
            self.named[number] = expr
        return index(self._name_of[expr])

    def _bind_names(self, numbers: Iterable[int]) -> None:
        """Emits the expressions behind indices, those first that others are made of."""
        behind: set[int] = set()
        pending = list(numbers)
        while pending:
            number = pending.pop()
            if number in self.named and number not in behind:
                behind.add(number)
                pending.extend(self.named[number].indices())
        for number in sorted(behind):
            known = self.value_of.get(number)
            if known is None or not self.is_open(known):
                self.bind(number, self.position(self.named[number]))

    def _operands(self, exprs: Sequence[Expr]) -> tuple[list[SSAValue], dict[int, int]]:
        used = sorted({index for expr in exprs for index in expr.indices()})
        if not self.named.keys().isdisjoint(used):
            self._bind_names(used)
        return [self.value_of[index] for index in used], {k: n for n, k in enumerate(used)}

    def access(
        self, point: Point, conditions: Sequence[Condition]
    ) -> tuple[list[SSAValue], AffineMap, AffineSet | None]:
        """Operands, map and set of an access at ``point`` under ``conditions``."""
        exprs = [*point, *(condition.expr for condition in conditions)]
        operands, dimension_of = self._operands(exprs)
        results = tuple(to_affine(expr, dimension_of) for expr in point)
        map = AffineMap(len(operands), 0, results)
        return operands, map, _set(conditions, dimension_of) if conditions else None

    def load(self, buffer: SSAValue, point: Point, conditions: Sequence[Condition]) -> SSAValue:
        """Loads from a buffer that the kernel only reads, as far out as the indices allow."""
        operands, map, where = self.access(point, conditions)
        return self.emit(nest.LoadOp(buffer, operands, map, where))

    def load_here(
        self, buffer: SSAValue, point: Point, conditions: Sequence[Condition]
    ) -> SSAValue:
        """Loads in the innermost body, from a buffer that it also writes."""
        operands, map, where = self.access(point, conditions)
        loaded = self.place(nest.LoadOp(buffer, operands, map, where), at_least=self.top)
        assert loaded is not None
        return loaded

    def store(
        self, value: SSAValue, buffer: SSAValue, point: Point, conditions: Sequence[Condition]
    ) -> None:
        """Stores in the innermost body."""
        operands, map, where = self.access(point, conditions)
        self.place(nest.StoreOp(value, buffer, operands, map, where), at_least=self.top)

    def test(self, conditions: Sequence[Condition]) -> SSAValue:
        operands, dimension_of = self._operands([condition.expr for condition in conditions])
        return self.emit(nest.TestOp(operands, _set(conditions, dimension_of)))

    def position(self, expr: Expr) -> SSAValue:
        """An index expression as a value of type ``index``."""
        operands, dimension_of = self._operands([expr])
        map = AffineMap(len(operands), 0, (to_affine(expr, dimension_of),))
        return self.emit(nest.IndexOp(operands, map))


def _set(conditions: Sequence[Condition], dimension_of: dict[int, int]) -> AffineSet:
    constraints = tuple(
        AffineConstraintExpr(
            AffineConstraintKind.eq if condition.equality else AffineConstraintKind.ge,
            to_affine(condition.expr, dimension_of),
            AffineExpr.constant(0),
            canonicalize=False,
        )
        for condition in conditions
    )
    return AffineSet(len(dimension_of), 0, constraints)
