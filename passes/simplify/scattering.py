"""Scatters of one update a line into copies of one value: a comparison says where the update is.

The gradient of picking one element of each row is such a scatter. As a selection it is computed
where it is needed, in one piece with what reads it, and nothing has to be filled first.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, i1, i32
from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy import ComparePredicate, ScatterKind
from plait.passes.simplify.builder import Builder, splat_value

_COMBINED: dict[ScatterKind, type[lazy.BinaryOp]] = {
    ScatterKind.ADD: lazy.AddOp,
    ScatterKind.MUL: lazy.MulOp,
    ScatterKind.MAX: lazy.MaxOp,
    ScatterKind.MIN: lazy.MinOp,
}


def select_update(op: Operation, build: Builder) -> SSAValue | None:
    """The selection that a scatter is, or None."""
    if not isinstance(op, lazy.ScatterOp) or splat_value(op.destination) is None:
        return None
    axis = op.axis.value.data
    shape, given = lazy.shape_of(op.destination), lazy.shape_of(op.indices)
    line = tuple(1 if k == axis else extent for k, extent in enumerate(shape))
    if given != line or 0 in shape or shape[axis] >= 1 << 31:
        return None
    updates = op.updates
    combined = _COMBINED.get(op.kind.data)
    if combined is not None:
        start = build.splat(splat_value(op.destination) or 0, updates.type)
        updates = build.add(combined(start, updates))
    count = build.add(lazy.IotaOp(axis, TensorType(i32, shape)))
    place = build.add(lazy.ExpandOp(_place(op, shape[axis], build), shape))
    flags = TensorType(i1, shape)
    here = build.add(lazy.CompareOp(ComparePredicate.EQ, count, place, flags))
    value = build.add(lazy.ExpandOp(updates, shape))
    return build.add(lazy.SelectOp(here, value, op.destination))


def _place(op: lazy.ScatterOp, extent: int, build: Builder) -> SSAValue:
    """The positions as i32; -1 for those outside, whatever their width."""
    given = op.indices
    line = lazy.shape_of(given)
    flags, narrow = TensorType(i1, line), TensorType(i32, line)
    if given.type == narrow:
        return given
    zero, top = build.splat(0, given.type), build.splat(extent, given.type)
    low = build.add(lazy.CompareOp(ComparePredicate.GE, given, zero, flags))
    high = build.add(lazy.CompareOp(ComparePredicate.LT, given, top, flags))
    inside = build.add(lazy.AndOp(low, high))
    return build.add(
        lazy.SelectOp(inside, build.add(lazy.CastOp(given, narrow)), build.splat(-1, narrow))
    )
