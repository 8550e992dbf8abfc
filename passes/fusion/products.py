"""What products cost inside of a kernel that is not theirs alone."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xdsl.ir import SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.passes.analysis.targets import Target
from plait.passes.fusion.legality import YES, Verdict

ROW_EFFICIENCY = 0.85
"""How fast a product runs that is computed row by row, relative to one with a kernel of its own."""
NESTED_EFFICIENCY = 0.3
"""The same where it is computed inside of another reduce or beside one with other axes: its
operands cannot be tiled."""


def pays(groups: Iterable[GroupOp], saved: int, efficiency: float, target: Target) -> Verdict:
    """Whether the time that merging groups saves, a launch and the bytes that are no longer moved,
    is more than what their products lose."""
    gained = target.time_us(saved, 0)
    lost = sum(_products_us(group, target) for group in groups) * (1 / efficiency - 1)
    if gained >= lost:
        return YES
    message = "the products would lose more time than is saved"
    facts = {"saved_us": round(gained, 2), "lost_us": round(lost, 2)}
    return Verdict("fuse.product-slower", message, dict(facts))


def _products_us(group: GroupOp, target: Target) -> float:
    """Modelled time of the arithmetic of a group's sums of products."""
    total = 0.0
    largest = max(map(_points, group.inputs), default=1)
    for op in group.body_ops():
        if isinstance(op, lazy.ReduceOp) and _points(op.operand) > 2 * largest:
            type = lazy.element_type_of(op.result)
            work = 2 * _points(op.operand)
            total += target.time_us(0, work, type, matrix=True) - target.launch_us
    return total


def _points(value: SSAValue) -> int:
    return prod(lazy.shape_of(value))
