"""Splits a large reduction of a kernel with few parallel points into partial results.

A sum over a whole tensor has one point, hence one thread. Its longest axis is cut into pieces; a
kernel computes one partial result per piece, in parallel, and the kernel proper combines those.
The pieces are fixed by the extents, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, SSAValue

from plait.lowering.nest_to_loops_affine import Affine, Axis
from plait.lowering.nest_to_loops_tree import Load, Loop, Node, Store, Tree, substitute_axis, walk

FEW_POINTS = 16
"""Parallel points below which splitting may pay."""
LARGE = 100_000
"""Points of a reduction that are worth splitting, over all parallel points."""
_PIECES = (32, 24, 16, 48, 12, 8, 64)


@dataclass
class Split:
    """The kernels that replace one, in launch order, and the temporaries they share.

    Every kernel takes the original buffers and then all temporaries.
    """

    trees: list[Tree]
    temporaries: list[MemRefType[Attribute]]


def _copy(nodes: Sequence[Node], stores: bool = True) -> list[Node]:
    """Nodes that may be substituted into without changing the originals."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            if stores or node.results:
                body = _copy(node.body, stores)
                found.append(replace(node, axes=list(node.axes), body=body))
        elif stores or not isinstance(node, Store):
            found.append(replace(node))
    return found


def _pieces(loop: Loop) -> tuple[Axis, int] | None:
    """The axis to cut and into how many pieces."""
    for axis in sorted(loop.axes, key=lambda axis: -axis.extent):
        for count in _PIECES:
            if axis.extent % count == 0 and axis.extent > count:
                return axis, count
    return None


def _large(tree: Tree, loop: Loop) -> tuple[Axis, int] | None:
    """The axis to cut and into how many pieces, where few points share a large reduction."""
    points = prod(axis.extent for axis in tree.axes)
    if not 0 < points < FEW_POINTS or points * prod(axis.extent for axis in loop.axes) < LARGE:
        return None
    return _pieces(loop)


def _candidate(tree: Tree, done: set[int]) -> tuple[int, Axis, int] | None:
    for position, node in enumerate(tree.body):
        if isinstance(node, Loop) and node.mode == "reduce" and id(node) not in done:
            found = _large(tree, node)
            if found is not None:
                return position, *found
    return None


def _stores(nodes: Sequence[Node]) -> bool:
    return any(isinstance(node, Store) for node in walk(list(nodes)))


def in_order(tree: Tree) -> bool:
    """Whether the kernel reads what it writes: its parts must then stay together."""
    written = {node.buffer for node in walk(tree.body) if isinstance(node, Store)}
    return any(isinstance(node, Load) and node.buffer in written for node in walk(tree.body))


def split(tree: Tree) -> Split | None:
    """The replacement of ``tree``, or None where it is better left alone: each large reduction is
    computed in parts."""
    points = prod(axis.extent for axis in tree.axes)
    if not points or tree.locals or in_order(tree):
        return None
    trees: list[Tree] = []
    temporaries: list[MemRefType[Attribute]] = []
    values: list[SSAValue] = []
    done: set[int] = set()
    rest = tree
    while (found := _candidate(rest, done)) is not None:
        position, axis, count = found
        loop = rest.body[position]
        assert isinstance(loop, Loop)
        types = [MemRefType(result.type, [points * count]) for result in loop.results]
        buffers: list[SSAValue] = [*Block(arg_types=types).args]
        temporaries += types
        values += buffers
        name = f"{tree.name}_part{len(trees)}"
        trees.append(_partial(rest, position, axis, count, buffers, name))
        rest, combined = _combining(rest, position, count, buffers)
        done.add(id(combined))
    if not trees:
        return None
    if _stores(rest.body):
        trees.append(rest)
    arguments = [*tree.arguments, *values]
    return Split([replace(part, arguments=arguments) for part in trees], temporaries)


def spot(tree: Tree, piece: Axis, count: int) -> Affine:
    """Where a partial result is kept: row-major over the parallel axes, then the pieces."""
    total = Affine()
    for axis in tree.axes:
        total = total.scaled(axis.extent) + Affine.of(axis)
    return total.scaled(count) + Affine.of(piece)


def _partial(
    tree: Tree, position: int, axis: Axis, count: int, buffers: list[SSAValue], name: str
) -> Tree:
    """One partial result per piece: what comes before the loop is computed again in each."""
    before = _copy(tree.body[:position], stores=False)
    (loop,) = _copy([tree.body[position]])
    assert isinstance(loop, Loop)
    piece = Axis(f"{axis.name}_piece", count)
    inside = Axis(axis.name, axis.extent // count)
    place = Affine.of(piece).scaled(inside.extent) + Affine.of(inside)
    substitute_axis(loop.body, axis, place)
    loop.axes[loop.axes.index(axis)] = inside
    where = spot(tree, piece, count)
    stores: list[Node] = [
        Store(result, buffer, where, [])
        for result, buffer in zip(loop.results, buffers, strict=True)
    ]
    return Tree(name, tree.arguments, [*tree.axes, piece], [*before, loop, *stores])


def _combining(
    tree: Tree, position: int, count: int, buffers: list[SSAValue]
) -> tuple[Tree, Loop | None]:
    """The kernel with the loop reading partial results instead."""
    loop = tree.body[position]
    assert isinstance(loop, Loop)
    if not loop.results:
        return replace(tree, body=[*tree.body[:position], *tree.body[position + 1 :]]), None
    combined = combining_loop(tree, loop, count, buffers)
    body = [*tree.body[:position], combined, *tree.body[position + 1 :]]
    return replace(tree, body=body), combined


def combining_loop(tree: Tree, loop: Loop, count: int, buffers: Sequence[SSAValue]) -> Loop:
    """A reduction of the partial results of another, in order."""
    piece = Axis("piece", count)
    where = spot(tree, piece, count)
    elements = list(Block(arg_types=[result.type for result in loop.results]).args)
    loads: list[Node] = [
        Load(element, buffer, where, []) for element, buffer in zip(elements, buffers, strict=True)
    ]
    return Loop("reduce", [piece], loop.kinds, loads, list(elements), loop.results)
