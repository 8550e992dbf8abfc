"""Splits a large reduction of a kernel with few parallel points into partial results.

A sum over a whole tensor has one point, hence one thread. Its longest axis is cut into pieces; a
kernel computes one partial result per piece, in parallel, and the kernel proper combines those.
The pieces are fixed by the extents, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, SSAValue

from plait.lowering.nest_to_loops_affine import Affine, Axis
from plait.lowering.nest_to_loops_tree import (
    Load,
    Loop,
    Node,
    Store,
    Tree,
    copied,
    substitute_axis,
    walk,
)

FEW_POINTS = 16
"""Parallel points below which splitting may pay."""
LARGE = 100_000
"""Points of a reduction that are worth splitting, over all parallel points."""
MANY_POINTS = 1024
"""Parallel points from which partial results are kept piece by piece."""
_PIECES = (32, 24, 16, 48, 12, 8, 64)


Cut = Callable[[Tree, Loop], tuple[Axis, int] | None]
"""The axis of a reduction to cut and into how many pieces, which divide its extent; None to leave
it whole."""


@dataclass
class Split:
    """The kernels that replace one, in launch order, and the temporaries they share.

    Every kernel takes the original buffers and then all temporaries.
    """

    trees: list[Tree]
    temporaries: list[MemRefType[Attribute]]


def _pieces(loop: Loop) -> tuple[Axis, int] | None:
    """The axis to cut and into how many pieces: rather one of large steps, so that each piece is in
    one place."""
    accesses = [node for node in walk(loop.body) if isinstance(node, Load | Store)]

    def order(axis: Axis) -> tuple[int, int]:
        steps = [abs(access.offset.coefficient(axis)) for access in accesses]
        return -max(steps, default=0), -axis.extent

    for axis in sorted(loop.axes, key=order):
        for count in _PIECES:
            if axis.extent % count == 0 and axis.extent > count:
                return axis, count
    return None


def large(tree: Tree, loop: Loop) -> tuple[Axis, int] | None:
    """The axis to cut and into how many pieces, where few points share a large reduction."""
    points = prod(axis.extent for axis in tree.axes)
    if not 0 < points < FEW_POINTS or points * prod(axis.extent for axis in loop.axes) < LARGE:
        return None
    return _pieces(loop)


def _candidate(tree: Tree, done: set[int], cut: Cut) -> tuple[int, Axis, int] | None:
    for position, node in enumerate(tree.body):
        if isinstance(node, Loop) and node.mode == "reduce" and id(node) not in done:
            found = cut(tree, node)
            if found is not None:
                return position, *found
    return None


def _stores(nodes: Sequence[Node]) -> bool:
    return any(isinstance(node, Store) for node in walk(list(nodes)))


def in_order(tree: Tree) -> bool:
    """Whether the kernel reads what it writes: its parts must then stay together."""
    written = {node.buffer for node in walk(tree.body) if isinstance(node, Store)}
    return any(isinstance(node, Load) and node.buffer in written for node in walk(tree.body))


def split(tree: Tree, cut: Cut = large) -> Split | None:
    """The replacement of ``tree``, or None where it is better left alone: each reduction that
    ``cut`` names an axis and a number of pieces for is computed in parts."""
    points = prod(axis.extent for axis in tree.axes)
    if not points or tree.locals or in_order(tree):
        return None
    trees: list[Tree] = []
    temporaries: list[MemRefType[Attribute]] = []
    values: list[SSAValue] = []
    done: set[int] = set()
    rest = tree
    while (found := _candidate(rest, done, cut)) is not None:
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


def spot(tree: Tree, piece: Axis) -> Affine:
    """Where a partial result is kept: row-major over the parallel axes, then the pieces."""
    return _point(tree).scaled(piece.extent) + Affine.of(piece)


def _point(tree: Tree) -> Affine:
    """The number of a point of the parallel axes."""
    total = Affine()
    for axis in tree.axes:
        total = total.scaled(axis.extent) + Affine.of(axis)
    return total


def _place(tree: Tree, piece: Axis) -> Affine:
    """Where a partial result is kept: where there are many points piece by piece, so that their
    sums run along neighbours."""
    if not _many(tree):
        return spot(tree, piece)
    points = prod(axis.extent for axis in tree.axes)
    return Affine.of(piece).scaled(points) + _point(tree)


def _many(tree: Tree) -> bool:
    return prod(axis.extent for axis in tree.axes) >= MANY_POINTS


def _partial(
    tree: Tree, position: int, axis: Axis, count: int, buffers: list[SSAValue], name: str
) -> Tree:
    """One partial result per piece: what comes before the loop is computed again in each."""
    before = copied(tree.body[:position], stores=False)
    (loop,) = copied([tree.body[position]])
    assert isinstance(loop, Loop)
    piece = Axis(f"{axis.name}_piece", count)
    inside = Axis(axis.name, axis.extent // count)
    place = Affine.of(piece).scaled(inside.extent) + Affine.of(inside)
    substitute_axis(loop.body, axis, place)
    loop.axes[loop.axes.index(axis)] = inside
    where = _place(tree, piece)
    stores: list[Node] = [
        Store(result, buffer, where, [])
        for result, buffer in zip(loop.results, buffers, strict=True)
    ]
    axes = [piece, *tree.axes] if _many(tree) else [*tree.axes, piece]
    return replace(tree, name=name, axes=axes, body=[*before, loop, *stores])


def _combining(
    tree: Tree, position: int, count: int, buffers: list[SSAValue]
) -> tuple[Tree, Loop | None]:
    """The kernel with the loop reading partial results instead."""
    loop = tree.body[position]
    assert isinstance(loop, Loop)
    if not loop.results:
        body = [*tree.body[:position], *tree.body[position + 1 :]]
        return replace(tree, body=body, lanes=None, copies=None), None
    piece = Axis("piece", count)
    combined = combining_loop(loop, piece, _place(tree, piece), buffers)
    body = [*tree.body[:position], combined, *tree.body[position + 1 :]]
    return replace(tree, body=body, lanes=None, copies=None), combined


def combining_loop(loop: Loop, piece: Axis, where: Affine, buffers: Sequence[SSAValue]) -> Loop:
    """A reduction of the partial results of another, in order; each lies at ``where``."""
    elements = list(Block(arg_types=[result.type for result in loop.results]).args)
    loads: list[Node] = [
        Load(element, buffer, where, []) for element, buffer in zip(elements, buffers, strict=True)
    ]
    return Loop("reduce", [piece], loop.kinds, loads, list(elements), loop.results)
