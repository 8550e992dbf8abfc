"""Chooses the parallel axes that are jammed: copies of a reduction's body that share loads.

With one accumulator per copy, a load that does not depend on a jammed axis is made once for all
copies along it. A product of two operands gains most when both are shared: the copies then form a
tile whose sides are loaded once.
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_tree import Load

_REGISTERS = 12
"""Vector registers for accumulators, of the 16 of the smallest machine."""


@dataclass
class SharingWork:
    """The loads inside a kernel's reductions, each with the axis its vectors run along."""

    loads: list[tuple[Load, Axis]]
    axes: list[Axis]
    """Parallel axes that may be jammed."""
    results: int
    """Accumulators per copy."""
    lanes: int
    parallel: bool
    """Whether vectors run along a parallel axis (then some loads are scalars)."""


def _touches(node: Load, axis: Axis) -> bool:
    return node.offset.depends(axis) or any(c.value.depends(axis) for c in node.conditions)


def _saved(node: Load, lane_axis: Axis) -> float:
    """What is saved when the copies of the body share a load."""
    vector = 3.0 if _touches(node, lane_axis) else 1.0
    return vector * (2.0 if node.conditions else 1.0)


def _best(work: SharingWork, loads: list[tuple[Load, Axis]], axes: list[Axis]) -> Axis | None:
    best: tuple[float, Axis] | None = None
    for axis in axes:
        if any(node.offset.hidden(axis) for node, _ in work.loads):
            continue
        saved = sum(_saved(node, lane) for node, lane in loads if not _touches(node, axis))
        if saved and (best is None or saved > best[0]):
            best = (saved, axis)
    return None if best is None else best[1]


def _size(axis: Axis, limit: int) -> int:
    """At most ``limit`` copies: a divisor of the extent if a large one exists."""
    sizes = [size for size in range(limit, 1, -1) if axis.extent % size == 0]
    return sizes[0] if sizes and sizes[0] * 2 >= limit else min(limit, axis.extent)


def choose_jams(work: SharingWork, vector_bytes: int) -> list[tuple[Axis, int]]:
    """The jammed axes, outermost first, with their numbers of copies; may narrow the lanes."""
    first = _best(work, work.loads, work.axes)
    if first is None:
        return []
    per_copy = max(1, work.lanes * 4 // vector_bytes) * work.results
    if work.parallel:
        return [(first, _size(first, max(2, min(6, _REGISTERS // per_copy))))]
    rest = [(node, lane) for node, lane in work.loads if _touches(node, first)]
    second = _best(work, rest, [axis for axis in work.axes if axis is not first])
    narrow = max(1, vector_bytes // 4)
    if second is None or work.lanes < narrow or work.results > 2:
        return [(first, _size(first, max(2, min(4, _REGISTERS // per_copy))))]
    work.lanes = narrow
    outer = _size(first, 4 // work.results)
    return [(first, outer), (second, _size(second, max(2, min(3, 8 // (outer * work.results)))))]
