"""Keeps costly values of one sweep over a row for the sweeps after it.

The sweeps of a kernel each compute what they need, also where one before has computed the same: a
softmax would take every exponential twice. Memory of one point of the axes holds such a value
instead: the first sweep that computes it stores it, the others load it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from plait.lowering.llvm_types import byte_size
from plait.lowering.nest_to_loops_affine import Affine, Axis, substitute
from plait.lowering.nest_to_loops_tree import (
    Index,
    Load,
    Loop,
    Node,
    Scalar,
    Store,
    Test,
    Tree,
    operands_of,
    results_of,
    walk,
)

ROW_BYTES = 1 << 17
"""Most memory of a point: with what the sweeps read, about half of a core's own cache."""

CHEAP = {
    op.name
    for op in (
        math.AbsFOp,
        math.FloorOp,
        math.CeilOp,
        math.FmaOp,
        math.CopySignOp,
        math.RoundEvenOp,
        math.TruncOp,
    )
}
"""Operations of ``math`` that are one instruction."""

Shape = tuple[int, ...]


def is_costly(op: Operation) -> bool:
    """Whether an operation takes longer than a store and a load."""
    return isinstance(op, arith.DivfOp) or (op.name.startswith("math.") and op.name not in CHEAP)


def keep_rows(tree: Tree) -> Tree | None:
    """The kernel with costly values kept from sweep to sweep; None where there are none."""
    keeping = _Keeping(tree)
    body = [keeping.node(node) for node in tree.body]
    if not keeping.rows:
        return None
    body = [keeping.storing(node) for node in body]
    return replace(tree, body=body, locals=[*tree.locals, *keeping.rows.values()])


Known = tuple[Shape, int]
"""A value by the extents of its sweep and its number."""


@dataclass
class _Keeping:
    tree: Tree
    numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Values that are always equal have the same number."""
    interned: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    costly: set[int] = field(default_factory=set[int])
    axes: dict[tuple[Shape, int], Axis] = field(default_factory=dict[tuple[Shape, int], Axis])
    """One axis for all loops of the same extents, by its place."""
    first: dict[Known, tuple[int, SSAValue]] = field(
        default_factory=dict[Known, tuple[int, SSAValue]]
    )
    """The loop, by id of its axes, that is first to compute a value, and the value there."""
    rows: dict[Known, SSAValue] = field(default_factory=dict[Known, SSAValue])

    def __post_init__(self) -> None:
        self.written = {node.buffer for node in walk(self.tree.body) if isinstance(node, Store)}

    # -- numbers -----------------------------------------------------------------------------

    def _intern(self, key: Hashable) -> int:
        return self.interned.setdefault(key, len(self.interned))

    def _number_of(self, value: SSAValue) -> int:
        found = self.numbers.get(value)
        return self._intern(value) if found is None else found

    def _number(self, node: Node, loop: Loop | None) -> None:
        """Numbers what a node makes."""
        if isinstance(node, Loop | Store):
            return
        key: Hashable = results_of(node)[0]
        inside: list[int] = []
        if isinstance(node, Scalar):
            op = node.op
            inside = [self._number_of(operand) for operand in op.operands]
            extra = [*op.properties.items(), *op.attributes.items()]
            key = (op.name, op.results[0].type, tuple(inside), frozenset(extra))
        elif isinstance(node, Load) and node.buffer not in self.written:
            key = (node.buffer, self._value(node.offset, loop), self._conditions(node, loop))
        elif isinstance(node, Test):
            key = self._conditions(node, loop)
        elif isinstance(node, Index):
            key = ("index", self._value(node.value, loop))
        number = self.numbers[results_of(node)[0]] = self._intern(key)
        if not self.costly.isdisjoint(inside) or (isinstance(node, Scalar) and is_costly(node.op)):
            self.costly.add(number)

    def _conditions(self, node: Load | Test, loop: Loop | None) -> Hashable:
        return tuple((self._value(c.value, loop), c.equal) for c in node.conditions)

    def _value(self, value: Affine, loop: Loop | None) -> Affine:
        """An expression in the axes that all loops of these extents share."""
        shape = _shape(loop) if loop else ()
        for place, axis in enumerate(loop.axes if loop else ()):
            shared = self.axes.setdefault((shape, place), Axis(axis.name, axis.extent))
            value = substitute(value, axis, Affine.of(shared))
        return value

    # -- loops -------------------------------------------------------------------------------

    def node(self, node: Node) -> Node:
        """A node of the kernel with loads in place of what is computed before."""
        if not isinstance(node, Loop):
            self._number(node, None)
            return node
        if node.mode != "reduce" or any(isinstance(inner, Loop) for inner in node.body):
            return node
        shape = _shape(node)
        for inner in node.body:
            self._number(inner, node)
        body: list[Node] = []
        needed = set(node.yielded)
        for inner in reversed(node.body):
            if not isinstance(inner, Store) and needed.isdisjoint(results_of(inner)):
                continue
            row = self._row(inner, shape)
            if row is not None:
                inner = Load(results_of(inner)[0], row, _place(node), [])
            body.append(inner)
            needed.update(operands_of([inner]))
        for inner in node.body:
            for value in results_of(inner):
                known = shape, self.numbers[value]
                self.first.setdefault(known, (id(node.axes), value))
        return replace(node, body=body[::-1])

    def _row(self, node: Node, shape: Shape) -> SSAValue | None:
        """The memory of what ``node`` computes, where an earlier loop has computed it."""
        if not isinstance(node, Scalar):
            return None
        value = node.op.results[0]
        known = shape, self.numbers[value]
        if known in self.rows:
            return self.rows[known]
        if (
            known not in self.first
            or known[1] not in self.costly
            or not isinstance(value.type, Float32Type | Float64Type)
        ):
            return None
        rows = [*(s for s, _ in self.rows), shape]
        if sum(map(prod, rows)) * byte_size(value.type) > ROW_BYTES:
            return None
        (row,) = Block(arg_types=[MemRefType(value.type, [prod(shape)])]).args
        self.rows[known] = row
        return row

    def storing(self, node: Node) -> Node:
        """A node of the kernel that stores what later ones load."""
        if not isinstance(node, Loop):
            return node
        stores = [
            Store(self.first[known][1], row, _place(node), [])
            for known, row in self.rows.items()
            if self.first[known][0] == id(node.axes)
        ]
        return replace(node, body=[*node.body, *stores])


def _shape(loop: Loop) -> Shape:
    return tuple(axis.extent for axis in loop.axes)


def _place(loop: Loop) -> Affine:
    """The number of an iteration."""
    total = Affine()
    for axis in loop.axes:
        total = total.scaled(axis.extent) + Affine.of(axis)
    return total
