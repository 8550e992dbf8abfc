"""Chains of movement operations that come to something simpler."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.passes.analysis.affine import ZERO, Space, index
from plait.passes.analysis.index_maps import Condition, Point, sources
from plait.passes.simplify.builder import Builder, owner_of, splat_value

_MAX_CHAIN = 64


@dataclass
class MaskedView:
    """``value[point]`` where all conditions hold, else the padding, over the space of a result."""

    value: SSAValue
    point: Point
    conditions: list[Condition] = field(default_factory=list[Condition])
    padding: float | int | None = None
    nowhere: bool = False
    """Whether the conditions hold at no point."""


def masked_view(value: SSAValue, space: Space) -> MaskedView | None:
    """Looks through the movement operations that make ``value``, at indices 0, 1, ... of it.

    None for what several operands are concatenated to, and for paddings with different values.
    """
    shape = lazy.shape_of(value)
    view = MaskedView(value, _start(shape))
    for _ in range(_MAX_CHAIN):
        op = owner_of(view.value)
        if not isinstance(op, lazy.MovementOp):
            return view
        found = sources(op, view.point, space)
        if not found and isinstance(op, lazy.PadOp):
            padding = op.value.value.data
            same = view.padding in (None, padding)
            return replace(view, padding=padding, nowhere=True) if same else None
        if len(found) != 1:
            return None
        (source,) = found
        if source.conditions:
            if not isinstance(op, lazy.PadOp):
                return None
            padding = op.value.value.data
            if view.padding not in (None, padding):
                return None
            view.padding = padding
        view.conditions.extend(source.conditions)
        view.value, view.point = source.value, source.point
    return None


def _start(shape: tuple[int, ...]) -> Point:
    return tuple(index(axis) if extent != 1 else ZERO for axis, extent in enumerate(shape))


def simplify_view(op: Operation, build: Builder) -> SSAValue | None:
    """A view of a view that is the first value again, reshaped; or one value everywhere."""
    if not isinstance(op, lazy.MovementOp):
        return None
    result = op.results[0]
    shape = lazy.shape_of(result)
    if 0 in shape or not _may_simplify(op):
        return None
    space = Space.of_extents(shape)
    view = masked_view(result, space)
    if view is None:
        return None
    if view.nowhere and view.padding is not None:
        return build.splat(view.padding, result.type)
    value = splat_value(view.value)
    if value is not None and (not view.conditions or view.padding == value):
        return build.splat(value, result.type)
    base = lazy.shape_of(view.value)
    if view.conditions or prod(base) != prod(shape):
        return None
    if space.linearize(view.point, base) != space.linearize(_start(shape), shape):
        return None
    return build.reshape(view.value, shape)


def _may_simplify(op: lazy.MovementOp) -> bool:
    """Whether a chain could come to nothing, by its operations and sizes alone."""
    size = prod(lazy.shape_of(op.results[0]))
    length, only_reshapes, pads = 0, True, False
    value = op.results[0]
    while isinstance(inner := owner_of(value), lazy.MovementOp) and length < _MAX_CHAIN:
        only_reshapes &= isinstance(inner, lazy.ReshapeOp)
        pads |= isinstance(inner, lazy.PadOp | lazy.ConcatOp)
        length += 1
        value = inner.operands[0]
    if isinstance(inner, lazy.ConstantOp):
        return pads
    if pads and isinstance(op, lazy.SliceOp):
        return True
    if prod(lazy.shape_of(value)) != size:
        return False
    if length == 1:
        return lazy.shape_of(value) == lazy.shape_of(op.results[0]) or not only_reshapes
    return not isinstance(op, lazy.ReshapeOp) or isinstance(
        owner_of(op.operand), lazy.ReshapeOp | lazy.PermuteOp
    )
