"""Sums over masks that movement operations make of one value: how many elements are inside.

``arange`` and its kin arrive as one value, padded, expanded, reshaped and sliced into a triangle,
and summed. The access analysis says where the value is and where the padding, as conditions on the
indices; if each condition bounds one summed index by a linear function of the kept ones, the sum is
a product of interval lengths and no element of the triangle has to exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy import ReduceKind
from plait.passes.analysis.affine import Expr, Space, add, combine, constant, index, scale
from plait.passes.analysis.index_maps import Condition
from plait.passes.simplify.builder import Builder, owner_of, splat_value
from plait.passes.simplify.reduces import axes_of, kept_axes
from plait.passes.simplify.views import masked_view


def count_mask(op: Operation, build: Builder) -> SSAValue | None:
    """The closed form of a sum over a mask, or None."""
    if not isinstance(op, lazy.ReduceOp) or op.kind.data != ReduceKind.SUM:
        return None
    if not isinstance(owner_of(op.operand), lazy.MovementOp) or 0 in lazy.shape_of(op.operand):
        return None
    space = Space.of_extents(lazy.shape_of(op.operand))
    view = masked_view(op.operand, space)
    if view is None or view.padding != 0 or not view.conditions:
        return None
    value = splat_value(view.value)
    if value is None:
        return None
    lengths = _interval_lengths(op, view.conditions, space)
    if lengths is None:
        return None
    numbers = TensorType(_index_type(op), lazy.shape_of(op.result))
    axis_of = {axis: place for place, axis in enumerate(kept_axes(op))}
    emit = _Emitter(build, numbers, axis_of, space)
    total = emit.product(lengths)
    result = TensorType(lazy.element_type_of(op.result), lazy.shape_of(op.result))
    if numbers != result:
        total = build.add(lazy.CastOp(total, result))
    return build.add(lazy.MulOp(total, build.splat(value, result)))


def _index_type(op: lazy.ReduceOp) -> Attribute:
    large = prod(lazy.shape_of(op.operand)) >= 1 << 31
    return i64 if large else i32


@dataclass
class _Interval:
    """Bounds of one summed index, inclusive, as functions of the kept indices."""

    lower: list[Expr]
    upper: list[Expr]


def _interval_lengths(
    op: lazy.ReduceOp, conditions: list[Condition], space: Space
) -> list[_Interval] | None:
    shape = lazy.shape_of(op.operand)
    summed = axes_of(op)
    intervals = {axis: _Interval([constant(0)], [constant(shape[axis] - 1)]) for axis in summed}
    for condition in conditions:
        expr = condition.expr
        inside = [axis for axis in summed if axis in expr.indices()]
        if condition.equality or len(inside) != 1:
            return None
        (axis,) = inside
        factor = dict(expr.terms).get(axis)
        if factor not in (1, -1) or any(not isinstance(atom, int) for atom, _ in expr.terms):
            return None
        rest = combine(expr, (index(axis), -factor))
        if factor == 1:
            intervals[axis].lower.append(scale(rest, -1))
        else:
            intervals[axis].upper.append(rest)
    return list(intervals.values())


@dataclass
class _Emitter:
    """Builds integer tensors for linear functions of the kept indices."""

    build: Builder
    type: TensorType[Attribute]
    axis_of: dict[int, int]
    space: Space

    def product(self, intervals: list[_Interval]) -> SSAValue:
        total: SSAValue | None = None
        factor = 1
        for interval in intervals:
            length = self._length(interval)
            if isinstance(length, int):
                factor *= length
            else:
                total = length if total is None else self.build.add(lazy.MulOp(total, length))
        scaled = self.build.splat(factor, self.type)
        if total is None:
            return scaled
        return total if factor == 1 else self.build.add(lazy.MulOp(total, scaled))

    def _length(self, interval: _Interval) -> SSAValue | int:
        lower = self._pruned(interval.lower, largest=True)
        upper = self._pruned(interval.upper, largest=False)
        if len(lower) == len(upper) == 1:
            length = add(combine(upper[0], (lower[0], -1)), 1)
            if self.space.bounds_of(length)[0] >= 0:
                return length.constant if length.is_constant else self._linear(length)
            value = self._linear(length)
        else:
            low, high = self._extreme(lower, lazy.MaxOp), self._extreme(upper, lazy.MinOp)
            one = self.build.splat(1, self.type)
            value = self.build.add(lazy.AddOp(self.build.add(lazy.SubOp(high, low)), one))
        return self.build.add(lazy.MaxOp(value, self.build.splat(0, self.type)))

    def _pruned(self, bounds: list[Expr], largest: bool) -> list[Expr]:
        """The bounds without those that another one always implies."""
        kept = list[Expr]()
        for bound in dict.fromkeys(bounds):
            if any(self._implied(bound, other, largest) for other in kept):
                continue
            kept = [other for other in kept if not self._implied(other, bound, largest)]
            kept.append(bound)
        return kept

    def _implied(self, weak: Expr, strong: Expr, largest: bool) -> bool:
        difference = combine(strong, (weak, -1)) if largest else combine(weak, (strong, -1))
        return self.space.bounds_of(difference)[0] >= 0

    def _extreme(self, bounds: list[Expr], op: type[lazy.MaxOp] | type[lazy.MinOp]) -> SSAValue:
        value = self._linear(bounds[0])
        for bound in bounds[1:]:
            value = self.build.add(op(value, self._linear(bound)))
        return value

    def _linear(self, expr: Expr) -> SSAValue:
        build = self.build
        value: SSAValue | None = None
        for atom, factor in expr.terms:
            assert isinstance(atom, int)
            term = build.add(lazy.IotaOp(self.axis_of[atom], self.type))
            if factor != 1:
                term = build.add(lazy.MulOp(term, build.splat(factor, self.type)))
            value = term if value is None else build.add(lazy.AddOp(value, term))
        offset = build.splat(expr.constant, self.type)
        if value is None:
            return offset
        return value if expr.constant == 0 else build.add(lazy.AddOp(value, offset))
