"""Merges sweeps of a kernel that read the same elements and need nothing of each other.

The loads, and what both compute from them, are then done once.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from plait.lowering.nest_to_loops_affine import Affine
from plait.lowering.nest_to_loops_tree import (
    Load,
    Loop,
    Node,
    Store,
    Tree,
    copied,
    operands_of,
    results_of,
    substitute_axis,
    walk,
)

_NODES = 60
"""Most nodes of a merged body: beyond it registers run out."""


def merge_loops(tree: Tree) -> None:
    """Merges every loop into the first that it can be merged into."""
    read = {node.buffer for node in walk(tree.body) if isinstance(node, Load)}
    written = {node.buffer for node in walk(tree.body) if isinstance(node, Store)}
    updated = read & written
    place = 1
    while place < len(tree.body):
        for earlier in range(place):
            merged = _merged(tree.body, earlier, place, updated)
            if merged is not None:
                tree.body[earlier : place + 1] = merged
                # What was between may be in another order now: look at all of it again.
                place = earlier
                break
        place += 1


def _merged(
    body: list[Node], earlier: int, later: int, updated: set[SSAValue]
) -> list[Node] | None:
    """The nodes from one loop to the other with both in one; None where they stay apart."""
    first, second = body[earlier], body[later]
    if not isinstance(first, Loop) or not isinstance(second, Loop):
        return None
    if not _alike(first, second) or _touched([first, second]) & updated:
        return None
    between = body[earlier + 1 : later]
    needed = operands_of([second])
    before: list[Node] = []
    after: list[Node] = []
    for node in reversed(between):
        if needed.isdisjoint(results_of(node)):
            after.insert(0, node)
        else:
            before.insert(0, node)
            needed |= operands_of([node])
    if not needed.isdisjoint(first.results) or any(_touched([node]) & updated for node in between):
        return None
    (inside,) = copied([second])
    assert isinstance(inside, Loop)
    for old, new in zip(second.axes, first.axes, strict=True):
        substitute_axis(inside.body, old, Affine.of(new))
    if not _shared(first, inside):
        return None
    loop = replace(
        first,
        kinds=[*first.kinds, *second.kinds],
        body=[*first.body, *inside.body],
        yielded=[*first.yielded, *second.yielded],
        results=[*first.results, *second.results],
    )
    return [*before, loop, *after]


def _alike(first: Loop, second: Loop) -> bool:
    """Whether both run over the same extents, with nothing in order and no loops inside."""
    nodes = [*first.body, *second.body]
    return (
        first.mode == second.mode == "reduce"
        and [axis.extent for axis in first.axes] == [axis.extent for axis in second.axes]
        and not any(isinstance(node, Loop) for node in nodes)
        and len(nodes) <= _NODES
    )


def _touched(nodes: list[Node]) -> set[SSAValue]:
    return {node.buffer for node in walk(nodes) if isinstance(node, Load | Store)}


def _shared(first: Loop, second: Loop) -> bool:
    """Whether they read an element in common."""
    loads = [node for node in first.body if isinstance(node, Load)]
    return any(
        node.buffer is load.buffer and node.offset == load.offset
        for node in second.body
        if isinstance(node, Load)
        for load in loads
    )
