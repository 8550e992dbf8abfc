"""Finds the contraction of a kernel: a sum of products whose factors share no parallel axis but
those of a batch. Matrix products, convolutions and the gradients of both have this form."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import SSAValue

from plait.lowering.nest_to_loops_affine import Affine, Axis
from plait.lowering.nest_to_loops_tree import (
    Load,
    Loop,
    Node,
    Scalar,
    Store,
    Tree,
    expressions,
    results_of,
    walk,
)

WORK = 1 << 16
"""Products from which a kernel is worth preparing its factors."""
_LEAST = 4
"""Extent from which sharing the other factor pays."""


@dataclass
class Factor:
    """One factor of a product: the nodes that compute it, in order, and the axes they use."""

    value: SSAValue
    nodes: list[Node]
    axes: set[Axis]
    loads: list[Load]

    @property
    def bare(self) -> bool:
        """Whether it is an element of a buffer, as it is."""
        return len(self.nodes) == 1 and len(self.loads) == 1 and not self.loads[0].conditions


@dataclass
class Side:
    """The factors that vary along the same parallel axes."""

    axes: list[Axis]
    """The axes the other side does not vary along, in the order of the kernel."""
    factors: list[Factor]


@dataclass
class Contraction:
    """``sum over loop.axes`` of products of a factor from each side."""

    loop: Loop
    sides: tuple[Side, Side]
    batch: list[Axis]


def axes_of(value: Affine) -> set[Axis]:
    """The axes an expression mentions."""
    found: set[Axis] = set()
    for atom, _ in value.terms:
        if isinstance(atom, Axis):
            found.add(atom)
        elif not isinstance(atom, SSAValue):
            found |= axes_of(atom.inner)
    return found


def _factor(value: SSAValue, made: dict[SSAValue, Node]) -> Factor | None:
    """The factor ``value``; None where it needs a loop, or elements whose place is data."""
    nodes: list[Node] = []
    pending: list[tuple[SSAValue, bool]] = [(value, False)]
    done: set[int] = set()
    while pending:
        current, ready = pending.pop()
        node = made.get(current)
        if node is None or isinstance(node, Loop):
            return None
        if id(node) in done:
            continue
        if ready:
            done.add(id(node))
            nodes.append(node)
            continue
        pending.append((current, True))
        if isinstance(node, Scalar):
            pending += [(operand, False) for operand in reversed(node.op.operands)]
        elif any(e.data_dependent() for e in expressions(node)):
            return None
    axes: set[Axis] = set()
    for node in nodes:
        for expression in expressions(node):
            axes |= axes_of(expression)
    return Factor(value, nodes, axes, [node for node in nodes if isinstance(node, Load)])


def _side(axes: list[Axis], factors: list[Factor], rest: set[Axis]) -> Side | None:
    """The factors that vary along some of ``axes`` and otherwise only along ``rest``."""
    if any(not factor.axes <= rest | set(axes) for factor in factors):
        return None
    return Side(axes, factors)


def contraction(tree: Tree) -> Contraction | None:
    """The contraction of a kernel that is one; its factors may have prologues, its sum an
    epilogue."""
    loops = [node for node in walk(tree.body) if isinstance(node, Loop)]
    if len(loops) != 1 or loops[0].mode != "reduce" or set(loops[0].kinds) != {"sum"}:
        return None
    (loop,) = loops
    if any(isinstance(node, Store) for node in loop.body):
        return None
    written = {node.buffer for node in walk(tree.body) if isinstance(node, Store)}
    if any(isinstance(node, Load) and node.buffer in written for node in walk(tree.body)):
        return None
    made: dict[SSAValue, Node] = {}
    for node in [*tree.body, *loop.body]:
        made.update(dict.fromkeys(results_of(node), node))
    pairs: list[tuple[Factor, Factor]] = []
    for value in loop.yielded:
        owner = value.owner
        if not isinstance(owner, arith.MulfOp) or not isinstance(
            value.type, Float32Type | Float64Type
        ):
            return None
        left, right = _factor(owner.lhs, made), _factor(owner.rhs, made)
        if left is None or right is None:
            return None
        pairs.append((left, right))
    return _sorted(tree, loop, pairs)


def _sorted(tree: Tree, loop: Loop, pairs: list[tuple[Factor, Factor]]) -> Contraction | None:
    """The pairs as two sides, and the axes of the batch."""
    first, second = pairs[0]
    only = [axis for axis in tree.axes if axis in first.axes and axis not in second.axes]
    other = [axis for axis in tree.axes if axis in second.axes and axis not in first.axes]
    batch = [axis for axis in tree.axes if axis not in only and axis not in other]
    rest = {*batch, *loop.axes}
    lefts: list[Factor] = []
    rights: list[Factor] = []
    for left, right in pairs:
        if left.axes & set(other) or right.axes & set(only):
            left, right = right, left
        lefts.append(left)
        rights.append(right)
    left_side, right_side = _side(only, lefts, rest), _side(other, rights, rest)
    if left_side is None or right_side is None:
        return None
    sizes = [prod(axis.extent for axis in axes) for axes in (only, other, loop.axes)]
    total = prod(sizes) * prod(axis.extent for axis in batch)
    if min(sizes) < _LEAST or total < WORK:
        return None
    return Contraction(loop, (left_side, right_side), batch)
