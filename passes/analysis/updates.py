"""Updates in place: which elements of a result a kernel need not write, since the buffer that the
result takes over holds them already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import KeepOp
from plait.passes.analysis.access import Access, canonical
from plait.passes.analysis.affine import ZERO, Expr, Space, index
from plait.passes.analysis.index_maps import Condition, Point, sources
from plait.passes.analysis.rows import Rows, core_of

_MAX_PIECES = 64

Conditions = tuple[Condition, ...]


@dataclass(frozen=True)
class Piece:
    """What a part of a result is: ``value[point]`` where the conditions hold. The indices are the
    axes of the result."""

    value: SSAValue
    point: Point
    conditions: Conditions
    kept: bool
    """Whether it is the element at the same place of the updated buffer."""


def pieces_of(result: SSAValue, buffer: SSAValue) -> tuple[Piece, ...] | None:
    """The pieces of a result that is to take over ``buffer``, which has as many elements: through
    concatenations and other movement operations. None if they are too many, or padding."""
    shape = lazy.shape_of(result)
    space = Space.of_extents(shape)
    start = tuple(index(axis) if extent != 1 else ZERO for axis, extent in enumerate(shape))
    here = space.linearize(start, shape)
    found: list[Piece] = []
    pending: list[tuple[SSAValue, Point, Conditions]] = [(result, start, ())]
    while pending:
        value, point, conditions = pending.pop()
        op = value.owner
        if value is buffer:
            same = space.linearize(point, lazy.shape_of(value)) == here
            found.append(Piece(value, point, conditions, same))
        elif isinstance(op, lazy.MovementOp):
            if isinstance(op, lazy.PadOp):
                return None
            for source in sources(op, point, space):
                both = canonical((*conditions, *source.conditions), space)
                if both is not None:
                    pending.append((source.value, source.point, both))
        else:
            found.append(Piece(value, point, conditions, False))
        if len(found) + len(pending) > _MAX_PIECES:
            return None
    return tuple(found)


def kept_elements(result: SSAValue, buffer: SSAValue) -> int:
    """How many elements of a result are in the buffer already."""
    shape = lazy.shape_of(result)
    return sum(
        Access(buffer, shape, piece.point, piece.conditions).distinct_elements
        for piece in pieces_of(result, buffer) or ()
        if piece.kept
    )


def may_update(
    results: Sequence[SSAValue], number: int, buffer: SSAValue, rows: Rows | None = None
) -> bool:
    """Whether a kernel can write one of its results over a buffer that it reads: wherever it reads
    the buffer for an element, it is the element that it writes, or one that is not written, or a
    row of its own ``rows`` that it keeps before it writes any of it."""
    shape = lazy.shape_of(results[number])
    if prod(shape) != prod(lazy.shape_of(buffer)):
        return False
    pieces = pieces_of(results[number], buffer)
    if pieces is None:
        return False
    written = [_range(_position(shape), shape, p.conditions) for p in pieces if not p.kept]
    own = _kept_rows(results[number], buffer, rows)
    if not all(p.kept or _reads_safely(p, buffer, shape, written, own) for p in pieces):
        return False
    whole = [(0, prod(shape))]
    for other, result in enumerate(results):
        if other != number and needs(result, buffer, own):
            extents = lazy.shape_of(result)
            point = tuple(index(a) if e != 1 else ZERO for a, e in enumerate(extents))
            alike = prod(extents) == prod(shape) and _same_row(results[number], result, rows)
            if not alike or not _reads_safely(
                Piece(result, point, (), False), buffer, extents, whole, own
            ):
                return False
    return True


def _kept_rows(result: SSAValue, buffer: SSAValue, rows: Rows | None) -> frozenset[SSAValue]:
    """The views of a buffer that a kernel keeps rows of, each at the places where the result has
    the same row: no other row reads what this one writes."""
    while isinstance(result.owner, lazy.ReshapeOp):
        result = result.owner.operand
    if rows is None or result not in rows.of_result:
        return frozenset()
    place = _strides(result, rows.of_result[result])
    return frozenset(
        view
        for view, row_of in rows.of_value.items()
        if _base(view) is buffer
        and len(place) == len(rows.extents)
        and _strides(view, row_of) == place
    )


def _same_row(one: SSAValue, other: SSAValue, rows: Rows | None) -> bool:
    """Whether a kernel stores equal positions of two results in one row, in one loop."""
    if rows is None:
        return True
    places = list[tuple[list[int], dict[int, int]]]()
    for core in map(core_of, (one, other)):
        extents = [extent for extent in lazy.shape_of(core) if extent != 1]
        places.append((extents, _strides(core, rows.of_result[core])))
    return places[0] == places[1]


def _base(view: SSAValue) -> SSAValue:
    return view.owner.operand if isinstance(view.owner, lazy.ReshapeOp) else view


def _strides(value: SSAValue, row_of: Mapping[int, int]) -> dict[int, int]:
    """How far apart the elements of two neighbouring rows are, for each of the rows' axes."""
    shape = lazy.shape_of(value)
    return {row: prod(shape[axis + 1 :]) for axis, row in row_of.items()}


def _position(shape: tuple[int, ...]) -> Expr:
    space = Space.of_extents(shape)
    point = tuple(index(axis) if extent != 1 else ZERO for axis, extent in enumerate(shape))
    return space.linearize(point, shape)


def _range(position: Expr, shape: tuple[int, ...], conditions: Conditions) -> tuple[int, int]:
    """The least and the largest a position can be where conditions on single axes hold."""
    bounds = list(Space.of_extents(shape).bounds)
    for condition in conditions:
        terms = condition.expr.terms
        axis, factor = terms[0] if len(terms) == 1 else (None, 0)
        if condition.equality or not isinstance(axis, int):
            continue
        low, high = bounds[axis]
        if factor > 0:
            low = max(low, -(condition.expr.constant // factor))
        else:
            high = min(high, condition.expr.constant // -factor)
        bounds[axis] = (low, high)
    return Space(bounds).bounds_of(position)


def _reads_safely(
    piece: Piece,
    buffer: SSAValue,
    shape: tuple[int, ...],
    written: list[tuple[int, int]],
    own: frozenset[SSAValue],
) -> bool:
    space = Space.of_extents(shape)
    here = _position(shape)
    seen = {(piece.value, piece.point)}
    pending = [(piece.value, piece.point)]
    while pending:
        value, point = pending.pop()
        op = value.owner
        if value is buffer:
            at = space.linearize(point, lazy.shape_of(value))
            low, high = _range(at, shape, piece.conditions)
            if at != here and any(low <= last and first <= high for first, last in written):
                return False
            continue
        if not isinstance(op, Operation) or (isinstance(op, KeepOp) and op.operand in own):
            continue
        if isinstance(op, lazy.MovementOp):
            reached = [(source.value, source.point) for source in sources(op, point, space)]
        elif isinstance(op, lazy.ElementwiseOp | lazy.MaterializeOp | KeepOp):
            reached = [(operand, point) for operand in op.operands]
        elif needs(value, buffer, own):
            return False
        else:
            continue
        for state in reached:
            if state not in seen:
                seen.add(state)
                pending.append(state)
        if len(seen) > 4096:
            return False
    return True


def needs(value: SSAValue, buffer: SSAValue, own: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a buffer is behind a value, other than through what is kept of ``own``."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        if value is buffer:
            return True
        op = value.owner
        if isinstance(op, Operation) and not (isinstance(op, KeepOp) and op.operand in own):
            for operand in op.operands:
                if operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
    return False
