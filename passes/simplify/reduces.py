"""Reduces that collapse: over nothing, over one element, over copies, over another reduce."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import TensorType, bf16, f16, f32
from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy import ReduceKind
from plait.dialects.lazy_constants import Scalar
from plait.dtypes import is_float
from plait.passes.simplify.builder import Builder, owner_of, splat_value


def axes_of(op: lazy.ReduceOp) -> tuple[int, ...]:
    """The reduced axes, sorted."""
    return tuple(sorted(cast(Any, op.axes).get_values()))


def kept_axes(op: lazy.ReduceOp) -> tuple[int, ...]:
    """The axes of the operand that the result still has, in order."""
    reduced = set(axes_of(op))
    return tuple(k for k in range(len(lazy.shape_of(op.operand))) if k not in reduced)


def simplify_reduce(op: Operation, build: Builder) -> SSAValue | None:
    """A simpler value for a reduce, or None."""
    if not isinstance(op, lazy.ReduceOp) or 0 in lazy.shape_of(op.result):
        return None
    for rule in (_of_nothing, _of_single_elements, _of_splat, _of_copies, _of_reduce, _of_negated):
        found = rule(op, build)
        if found is not None:
            return found
    return None


def _of_nothing(op: lazy.ReduceOp, build: Builder) -> SSAValue | None:
    if not axes_of(op):
        return op.operand
    if 0 not in lazy.shape_of(op.operand):
        return None
    identity = _identity(op)
    return None if identity is None else build.splat(identity, op.result.type)


def _identity(op: lazy.ReduceOp) -> Scalar | None:
    match op.kind.data:
        case ReduceKind.SUM | ReduceKind.ANY:
            return 0
        case ReduceKind.PROD | ReduceKind.ALL:
            return 1
        case ReduceKind.MAX if is_float(lazy.element_type_of(op.result)):
            return float("-inf")
        case ReduceKind.MIN if is_float(lazy.element_type_of(op.result)):
            return float("inf")
        case _:
            return None


def _of_single_elements(op: lazy.ReduceOp, build: Builder) -> SSAValue | None:
    """Axes of extent 1 are dropped by a reshape."""
    shape = lazy.shape_of(op.operand)
    axes = axes_of(op)
    single = {axis for axis in axes if shape[axis] == 1}
    if not single:
        return None
    left = [axis for axis in range(len(shape)) if axis not in single]
    operand = build.reshape(op.operand, [shape[axis] for axis in left])
    rest = [left.index(axis) for axis in axes if axis not in single]
    if not rest:
        return operand
    return build.add(lazy.ReduceOp(op.kind.data, operand, rest))


def _repeated(kind: ReduceKind, value: SSAValue, count: int, build: Builder) -> SSAValue | None:
    """``count`` copies of every element, combined."""
    match kind:
        case ReduceKind.SUM:
            return _scaled(value, count, build)
        case ReduceKind.PROD:
            if not is_float(lazy.element_type_of(value)):
                return None
            return build.add(lazy.PowOp(value, build.splat(count, value.type)))
        case _:
            return value


def _scaled(value: SSAValue, count: int, build: Builder) -> SSAValue:
    """``count * value``, in float32 where 16 bits could not hold the count, as sums do."""
    if lazy.element_type_of(value) not in (f16, bf16):
        return build.add(lazy.MulOp(value, build.splat(count, value.type)))
    wide = TensorType(f32, lazy.shape_of(value))
    product = lazy.MulOp(build.add(lazy.CastOp(value, wide)), build.splat(count, wide))
    narrow = TensorType(lazy.element_type_of(value), lazy.shape_of(value))
    return build.add(lazy.CastOp(build.add(product), narrow))


def _of_splat(op: lazy.ReduceOp, build: Builder) -> SSAValue | None:
    value = splat_value(op.operand)
    if value is None:
        return None
    shape = lazy.shape_of(op.operand)
    count = prod(shape[axis] for axis in axes_of(op))
    match op.kind.data:
        case ReduceKind.SUM:
            value = value * count
        case ReduceKind.PROD:
            if count > 1 and value not in (0, 1):
                return None
        case _:
            pass
    return build.splat(value, op.result.type)


def _of_copies(op: lazy.ReduceOp, build: Builder) -> SSAValue | None:
    """A reduce over axes that an expand has grown: ``sum`` scales, ``max`` takes one."""
    inner = owner_of(op.operand)
    if not isinstance(inner, lazy.ExpandOp):
        return None
    source, shape = lazy.shape_of(inner.operand), lazy.shape_of(inner.result)
    axes = axes_of(op)
    copied = [axis for axis in axes if source[axis] != shape[axis]]
    if not copied:
        return None
    smaller = [1 if axis in copied else extent for axis, extent in enumerate(shape)]
    operand = inner.operand
    if lazy.shape_of(operand) != tuple(smaller):
        operand = build.add(lazy.ExpandOp(operand, tuple(smaller)))
    reduced = build.add(lazy.ReduceOp(op.kind.data, operand, axes))
    return _repeated(op.kind.data, reduced, prod(shape[axis] for axis in copied), build)


def _of_reduce(op: lazy.ReduceOp, build: Builder) -> SSAValue | None:
    """Two reduces of one kind in a row are one, unless something else uses the first."""
    chain = list[Operation]()
    value = op.operand
    while isinstance(inner := owner_of(value), lazy.ReshapeOp | lazy.PermuteOp):
        if value.has_more_than_one_use():
            return None
        chain.append(inner)
        value = inner.operands[0]
    first = owner_of(value)
    if (
        not isinstance(first, lazy.ReduceOp)
        or first.kind != op.kind
        or first.result.has_more_than_one_use()
    ):
        return None
    places = _trace(first, list(reversed(chain)))
    if places is None:
        return None
    taken = axes_of(op)
    both = {*axes_of(first), *(axis for k in taken for axis in places[k])}
    order = [axis for k, group in enumerate(places) if k not in taken for axis in group]
    merged = build.add(lazy.ReduceOp(op.kind.data, first.operand, sorted(both)))
    kept = [axis for axis in range(len(lazy.shape_of(first.operand))) if axis not in both]
    order.extend(axis for axis in kept if axis not in order)
    if order != kept:
        merged = build.add(lazy.PermuteOp(merged, [kept.index(axis) for axis in order]))
    return build.reshape(merged, lazy.shape_of(op.result))


def _of_negated(op: lazy.ReduceOp, build: Builder) -> SSAValue | None:
    """A sum of negated values is the sum, negated."""
    inner = owner_of(op.operand)
    if op.kind.data != ReduceKind.SUM or not isinstance(inner, lazy.NegOp):
        return None
    return build.add(lazy.NegOp(build.add(lazy.ReduceOp(op.kind.data, inner.operand, axes_of(op)))))


def _trace(first: lazy.ReduceOp, chain: list[Operation]) -> list[list[int]] | None:
    """For each axis after the chain of views, the axes of the first reduce's operand it holds.

    None if a reshape splits an axis, or takes two apart and joins them differently.
    """
    extents = lazy.shape_of(first.operand)
    places = [[axis] for axis in kept_axes(first)]
    for view in chain:
        if isinstance(view, lazy.PermuteOp):
            order: Sequence[int] = cast(Any, view.permutation).get_values()
            places = [places[axis] for axis in order]
            continue
        regrouped = _regroup(places, extents, lazy.shape_of(view.results[0]))
        if regrouped is None:
            return None
        places = regrouped
    return places


def _regroup(
    places: list[list[int]], extents: tuple[int, ...], shape: tuple[int, ...]
) -> list[list[int]] | None:
    """Deals the axes out again, in order, to the axes of a new shape."""
    flat = [axis for group in places for axis in group if extents[axis] != 1]
    result = list[list[int]]()
    position = 0
    for extent in shape:
        group = list[int]()
        while prod(extents[axis] for axis in group) < extent and position < len(flat):
            group.append(flat[position])
            position += 1
        if prod(extents[axis] for axis in group) != extent:
            return None
        result.append(group)
    return result
