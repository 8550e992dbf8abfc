"""Chooses the axes of a contraction that become lanes and copies, by what its factors then cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import Float64Type, MemRefType
from xdsl.utils.hints import isa

from plait.lowering.nest_to_loops_affine import Axis, Part
from plait.lowering.nest_to_loops_products import Contraction, Factor
from plait.lowering.nest_to_loops_tree import Store, Tree

COPIES = 6
"""Most copies of the body: with two registers of lanes each, 12 accumulators."""
_OVERHEAD = 0.7
"""Steps that loading a line of lanes costs, beside one a copy."""
_COPIED, _TRANSPOSED, _SCATTERED = 1.0, 4.0, 10.0
"""Steps to write an element out: in the order it is read in, in another, and lane by lane."""
_NEAR = 256
"""Bytes between the elements of successive steps, up to which memory serves them well."""


@dataclass
class Choice:
    """The vector axis and its lanes on side ``lane_side``; the copied axis on the other."""

    lane_side: int
    lane_axis: Axis
    lanes: int
    jam_axis: Axis
    copies: int


def _copies(axis: Axis, most: int) -> tuple[float, int]:
    """(steps per row and line of lanes, copies) of the best number of copies."""
    return min(
        (-(-axis.extent // size) * (size + _OVERHEAD) / axis.extent, -size)
        for size in range(1, min(most, axis.extent) + 1)
    )


def choose_axes(tree: Tree, found: Contraction, vector_bytes: int) -> Choice | None:
    """The cheapest choice; None where no axis has enough elements for lanes."""
    wide = any(isinstance(value.type, Float64Type) for value in found.loop.results)
    most = 2 * vector_bytes // (8 if wide else 4)
    steps = prod(axis.extent for axis in [*tree.axes, *found.loop.axes])
    best: tuple[float, Choice] | None = None
    for number, side in enumerate(found.sides):
        # Sums that share the copied factor take a register of lanes each.
        sums, lines = len(side.factors), len({factor.value for factor in side.factors})
        widest = max(most // 2, most // lines)
        most_copies = max(1, COPIES * most // (sums * widest))
        for axis in side.axes:
            lanes = widest if axis.extent >= widest else most // 2
            if axis.extent < lanes:
                continue
            waste = -(-axis.extent // lanes) * lanes / axis.extent
            for jam in found.sides[1 - number].axes:
                rows, copies = _copies(jam, most_copies)
                choice = Choice(number, axis, lanes, jam, -copies)
                cost = steps * len(found.loop.kinds) / lanes * rows * waste
                cost += _packing_cost(found, choice) + _storing_cost(tree, choice)
                if best is None or cost < best[0]:
                    best = cost, choice
    return None if best is None else best[1]


def _packing_cost(found: Contraction, choice: Choice) -> float:
    """Steps that writing the factors out takes."""
    total = 0.0
    inner = found.loop.axes[-1]
    for number, side in enumerate(found.sides):
        for factor in {factor.value: factor for factor in side.factors}.values():
            if direct(found, choice, number, factor):
                continue
            points = prod(axis.extent for axis in factor.axes)
            for load in factor.loads:
                assert isa(load.buffer.type, MemRefType)
                points = min(points, prod(load.buffer.type.get_shape()) * 5 // 4)
            axis = choice.lane_axis if number == choice.lane_side else inner
            total += points * (_COPIED if along(factor, axis) else _TRANSPOSED)
    return total


def _storing_cost(tree: Tree, choice: Choice) -> float:
    """Steps that writing the results takes, where they are not neighbours along the lanes."""
    points = prod(axis.extent for axis in tree.axes)
    stores = [node for node in tree.body if isinstance(node, Store)]
    apart = [node for node in stores if node.offset.coefficient(choice.lane_axis) != 1]
    return points * _SCATTERED * len(apart)


def direct(found: Contraction, choice: Choice, number: int, factor: Factor) -> bool:
    """Whether the contraction may read the factor of side ``number`` where it is."""
    if not factor.bare or any(isinstance(a, Part) for a, _ in factor.loads[0].offset.terms):
        return False
    offset = factor.loads[0].offset
    size = 8 if isinstance(factor.value.type, Float64Type) else 4
    step = abs(offset.coefficient(found.loop.axes[-1])) * size
    if number == choice.lane_side:
        return offset.coefficient(choice.lane_axis) == 1 and step <= _NEAR
    return step <= 2 * size or (offset.coefficient(choice.jam_axis) == 1 and step <= _NEAR)


def along(factor: Factor, axis: Axis) -> bool:
    """Whether neighbours along ``axis`` are neighbours in memory."""
    return all(
        load.offset.coefficient(axis) == 1 and not load.offset.hidden(axis)
        for load in factor.loads
        if load.offset.depends(axis)
    )
