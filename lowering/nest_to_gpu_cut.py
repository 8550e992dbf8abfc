"""Cuts the large reductions of a GPU kernel with few points over several blocks a point.

Every block computes partial results of the cut reductions and keeps them in memory. The block of a
point that is done last combines them in a fixed order and does the rest of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import MemRefType, i32
from xdsl.ir import Attribute, Block, SSAValue

from plait.lowering.nest_to_loops_affine import Affine, Axis
from plait.lowering.nest_to_loops_split import combining_loop, in_order, spot
from plait.lowering.nest_to_loops_tree import (
    Loop,
    Node,
    Store,
    Tree,
    operands_of,
    results_of,
    substitute_axis,
    walk,
)

Cut = Callable[[Loop], tuple[Axis, int] | None]
"""The axis of a reduction to cut and into how many pieces, which divide its extent; None to leave
it whole."""


@dataclass
class CutTree:
    """A kernel whose reductions are cut: ``tree`` has the points as axes and does what is
    ``before`` and then what is ``after``; it takes the buffers, the partial results and, unless
    ``after`` is empty, the tickets."""

    tree: Tree
    piece: Axis
    """The number of a block among those of its point."""
    before: list[Node]
    """What every block does, up to keeping its partial results."""
    after: list[Node]
    """What the last block of a point does."""
    partials: list[MemRefType[Attribute]]
    """The types of the partial results."""

    @property
    def points(self) -> int:
        """How many points there are, each with a ticket counter: zero before and afterwards."""
        return prod(axis.extent for axis in self.tree.axes)


def cut_tree(tree: Tree, cut: Cut) -> CutTree | None:
    """The kernel with the reductions cut that ``cut`` names an axis and a number of pieces for, as
    far as none needs the result of another; None if there is none."""
    points = prod(axis.extent for axis in tree.axes)
    chosen = _independent(tree, cut) if points and not in_order(tree) else {}
    if not chosen:
        return None
    count = next(iter(chosen.values()))[1]
    piece = Axis("piece", count)
    needed = _needed(tree.body, [node for node in tree.body if id(node) in chosen])
    kept = {id(node) for node in needed}
    after: list[Node] = []
    partials: list[SSAValue] = []
    types: list[MemRefType[Attribute]] = []
    stores: list[Node] = []
    for node in tree.body:
        if not isinstance(node, Loop) or id(node) not in chosen:
            after += [] if id(node) in kept else [node]
            continue
        own = [MemRefType(result.type, [points * count]) for result in node.results]
        buffers = [*Block(arg_types=own).args]
        where = spot(tree, piece)
        stores += [Store(r, b, where, []) for r, b in zip(node.results, buffers, strict=True)]
        again = Axis("piece", count)
        after += [combining_loop(node, again, spot(tree, again), buffers)] if buffers else []
        partials += buffers
        types += own
    for buffer in partials:
        buffer.name_hint = "partial"
    after = _needed(after, [node for node in after if _stores(node)])
    tickets = Block(arg_types=[MemRefType(i32, [points])] if after else []).args
    for counter in tickets:
        counter.name_hint = "tickets"
    arguments = [*tree.arguments, *partials, *tickets]
    before = [
        _one_piece(node, chosen[id(node)][0], piece)
        if isinstance(node, Loop) and id(node) in chosen
        else node
        for node in needed
    ]
    before += stores
    whole = replace(tree, arguments=arguments, body=[*before, *after])
    return CutTree(whole, piece, before, after, types)


def _independent(tree: Tree, cut: Cut) -> dict[int, tuple[Axis, int]]:
    """The axis and the number of pieces of each loop to cut, by the loop's id. None needs what
    only the last block has, and all are cut into as many pieces."""
    found: dict[int, tuple[Axis, int]] = {}
    late: set[SSAValue] = set()
    for node in tree.body:
        if late.isdisjoint(operands_of([node])):
            pieces = cut(node) if isinstance(node, Loop) and node.mode == "reduce" else None
            if pieces and all(pieces[1] == count for _, count in found.values()):
                found[id(node)] = pieces
            elif not _stores(node):
                continue
        late.update(results_of(node))
    return found


def _one_piece(loop: Loop, axis: Axis, piece: Axis) -> Loop:
    """The part of a reduction that a block does."""
    inside = Axis(axis.name, axis.extent // piece.extent)
    place = Affine.of(piece).scaled(inside.extent) + Affine.of(inside)
    substitute_axis(loop.body, axis, place)
    return replace(loop, axes=[inside if own is axis else own for own in loop.axes])


def _needed(nodes: Sequence[Node], roots: Sequence[Node]) -> list[Node]:
    """The roots and what they need, in order."""
    kept = {id(node) for node in roots}
    values: set[SSAValue] = set()
    found: list[Node] = []
    for node in reversed(nodes):
        if id(node) in kept or not values.isdisjoint(results_of(node)):
            values.update(operands_of([node]))
            found.append(node)
    return found[::-1]


def _stores(node: Node) -> bool:
    return any(isinstance(inner, Store) for inner in walk([node]))
