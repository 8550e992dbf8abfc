"""A kernel as a small tree, independent of the ``nest`` dialect's spelling.

Every index is an :class:`Affine` over :class:`Axis` objects, every access one flat offset into its
buffer, so that axes can be merged, tiled and reordered by substitution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from plait.lowering.nest_to_loops_affine import Affine, Axis, Part, linear_together, substitute


@dataclass(frozen=True)
class Condition:
    """``value >= 0``, or ``value == 0``."""

    value: Affine
    equal: bool

    def known(self) -> bool | None:
        """Whether it always or never holds."""
        low, high = self.value.bounds()
        if self.equal:
            if low == high == 0:
                return True
            outside = (low is not None and low > 0) or (high is not None and high < 0)
            return False if outside else None
        if low is not None and low >= 0:
            return True
        return False if high is not None and high < 0 else None


def simplify(conditions: list[Condition]) -> list[Condition] | None:
    """The conditions that decide something; None if they never hold together."""
    found: list[Condition] = []
    for condition in conditions:
        known = condition.known()
        if known is False:
            return None
        if known is None and condition not in found:
            found.append(condition)
    return found


@dataclass
class Scalar:
    """An ``arith`` or ``math`` operation, to be cloned."""

    op: Operation


@dataclass
class Load:
    """An element of a buffer; 0 where the conditions do not hold."""

    result: SSAValue
    buffer: SSAValue
    offset: Affine
    conditions: list[Condition]


@dataclass
class Store:
    """Writes an element where the conditions hold."""

    value: SSAValue
    buffer: SSAValue
    offset: Affine
    conditions: list[Condition]


@dataclass
class Test:
    """Whether the conditions hold, as i1."""

    result: SSAValue
    conditions: list[Condition]


@dataclass
class Index:
    """The value of an affine expression."""

    result: SSAValue
    value: Affine


@dataclass
class Loop:
    """Inner axes: a reduction, or a loop in order.

    ``inits`` and ``carried`` are what a loop in order starts from and what its body sees (empty
    for a reduction), ``kinds`` one per combination (an arg reduction has two results).
    """

    mode: str
    """``reduce`` or ``sequential``."""
    axes: list[Axis]
    kinds: list[str]
    body: list[Node]
    yielded: list[SSAValue]
    results: list[SSAValue]
    inits: list[SSAValue] = field(default_factory=list[SSAValue])
    carried: list[SSAValue] = field(default_factory=list[SSAValue])


Node = Scalar | Load | Store | Test | Index | Loop


@dataclass
class Tree:
    """One kernel."""

    name: str
    arguments: list[SSAValue]
    axes: list[Axis]
    body: list[Node]
    locals: list[SSAValue] = field(default_factory=list[SSAValue])
    """Memory of one point of the axes."""
    lanes: tuple[Axis, int] | None = None
    """The vector axis and its lanes, where they are decided already."""
    copies: tuple[Axis, int] | None = None
    """With ``lanes``: the axis whose iterations share loads, and how many do."""


def copied(nodes: Sequence[Node], stores: bool = True) -> list[Node]:
    """Nodes that may be substituted into without changing the originals."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            if stores or node.results:
                body = copied(node.body, stores)
                found.append(replace(node, axes=list(node.axes), body=body))
        elif stores or not isinstance(node, Store):
            found.append(replace(node))
    return found


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    """Every node, outer before inner."""
    for node in nodes:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.body)


def expressions(node: Node) -> list[Affine]:
    """The index expressions of one node, without those inside a loop's body."""
    if isinstance(node, Load | Store):
        return [node.offset, *(condition.value for condition in node.conditions)]
    if isinstance(node, Test):
        return [condition.value for condition in node.conditions]
    return [node.value] if isinstance(node, Index) else []


def results_of(node: Node) -> Sequence[SSAValue]:
    """The values a node makes."""
    if isinstance(node, Scalar):
        return node.op.results
    if isinstance(node, Store):
        return ()
    return node.results if isinstance(node, Loop) else (node.result,)


def operands_of(nodes: Sequence[Node]) -> set[SSAValue]:
    """The values that nodes read, those of their own among them."""
    found: set[SSAValue] = set()
    for node in walk(nodes):
        found.update(value for e in expressions(node) for value in _values(e))
        if isinstance(node, Scalar):
            found.update(node.op.operands)
        elif isinstance(node, Store):
            found.add(node.value)
        elif isinstance(node, Loop):
            found.update(node.inits, node.yielded)
    return found


def _values(expression: Affine) -> Iterator[SSAValue]:
    """The values from data in an index expression."""
    for atom, _ in expression.terms:
        if isinstance(atom, SSAValue):
            yield atom
        elif isinstance(atom, Part):
            yield from _values(atom.inner)


def _replace(node: Node, old: Axis, new: Affine) -> None:
    def changed(conditions: list[Condition]) -> list[Condition]:
        return [Condition(substitute(c.value, old, new), c.equal) for c in conditions]

    if isinstance(node, Load | Store):
        node.offset = substitute(node.offset, old, new)
        node.conditions = changed(node.conditions)
    elif isinstance(node, Test):
        node.conditions = changed(node.conditions)
    elif isinstance(node, Index):
        node.value = substitute(node.value, old, new)


def substitute_axis(nodes: list[Node], old: Axis, new: Affine) -> None:
    """Replaces an axis in every expression of ``nodes``."""
    for node in walk(nodes):
        _replace(node, old, new)


def drop_unit_axes(tree: Tree) -> None:
    """Axes of extent 1 are 0."""
    lists = [(tree.axes, tree.body)]
    lists += [(loop.axes, loop.body) for loop in walk(tree.body) if isinstance(loop, Loop)]
    for axes, body in lists:
        for axis in [axis for axis in axes if axis.extent == 1]:
            substitute_axis(body, axis, Affine())
            axes.remove(axis)


def merge_list(axes: list[Axis], body: list[Node]) -> None:
    """Merges pairs of axes that every expression uses as one."""
    used = [e for node in walk(body) for e in expressions(node)]
    again = True
    while again:
        again = False
        for outer in axes:
            for inner in axes:
                if outer is inner or not all(linear_together(e, outer, inner) for e in used):
                    continue
                merged = Axis(f"{outer.name}{inner.name}", outer.extent * inner.extent)
                # In this order an expression is never simplified for fewer points than it is for.
                substitute_axis(body, inner, Affine.of(merged))
                substitute_axis(body, outer, Affine())
                axes[axes.index(inner)] = merged
                axes.remove(outer)
                used = [e for node in walk(body) for e in expressions(node)]
                again = True
                break
            if again:
                break


def merge_axes(tree: Tree) -> None:
    """Merges axes that are traversed as one: a contiguous elementwise kernel gets one axis."""
    merge_list(tree.axes, tree.body)
    for node in list(walk(tree.body)):
        if isinstance(node, Loop) and node.mode == "reduce":
            merge_list(node.axes, node.body)


def updates_in_place(tree: Tree) -> bool:
    """Whether some buffer is both read and written."""
    read = {node.buffer for node in walk(tree.body) if isinstance(node, Load)}
    read.difference_update(tree.locals)
    return any(isinstance(node, Store) and node.buffer in read for node in walk(tree.body))
