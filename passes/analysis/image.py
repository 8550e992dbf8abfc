"""The elements of a buffer that an access touches, as an exact set.

The space and the axes of the buffer fall apart into components that share no index and no
condition; the image is the product over components. Within a component the row-major position is a
sum of pieces with indices of their own; a piece without conditions that is linear is a sum of
progressions, any other is listed, over as few indices as its expressions can tell apart. Nothing
is listed beyond :data:`~plait.passes.analysis.values.LIMIT`; then the answer is an upper bound and
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from plait.passes.analysis.affine import Expr, Quotient, Remainder, Space, index
from plait.passes.analysis.index_maps import Condition, Point
from plait.passes.analysis.listing import solve_piece
from plait.passes.analysis.partition import connected
from plait.passes.analysis.values import Values, progression, total

Extents = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """What an image is along some axes of the buffer, independently of the others."""

    axes: tuple[int, ...]
    values: Values
    """Row-major positions within these axes."""


@dataclass(frozen=True)
class Image:
    """The elements that an access touches: every combination of one position of each part."""

    parts: tuple[Part, ...]
    points: int | None
    """Points of the space at which the buffer is read; None if not known."""
    empty: bool = False

    @property
    def exact(self) -> bool:
        """Whether the image is the set; otherwise it contains it."""
        return all(part.values.exact for part in self.parts)

    @property
    def size(self) -> int:
        return 0 if self.empty else prod(part.values.size for part in self.parts)


NOTHING = Image((), 0, empty=True)


@lru_cache(maxsize=1 << 16)
def image_of(
    point: Point, conditions: tuple[Condition, ...], extents: Extents, shape: Extents
) -> Image:
    """The image of a point of ``shape`` that depends on indices with the given extents, at those
    indices where all conditions hold."""
    if 0 in extents or 0 in shape:
        return NOTHING
    return _Solver(point, conditions, extents, shape).image()


class _Solver:
    def __init__(
        self,
        point: Point,
        conditions: tuple[Condition, ...],
        extents: Extents,
        shape: Extents,
    ):
        self.space = Space.of_extents(extents)
        self.shape = shape
        self.point = list(point)
        self.conditions = list(conditions)
        self.live = [number for number, extent in enumerate(extents) if extent > 1]

    def image(self) -> Image:
        self.split_indices()
        axes_exprs = [(expr.indices(), k) for k, expr in enumerate(self.point)]
        condition_exprs = [(c.expr.indices(), c) for c in self.conditions]
        parts: list[Part] = []
        points: int | None = 1
        loose = set(self.live)
        for group in connected([i for i, _ in axes_exprs] + [i for i, _ in condition_exprs]):
            axes = tuple(k for k in group if k < len(axes_exprs))
            held = [condition_exprs[k - len(axes_exprs)][1] for k in group if k >= len(axes_exprs)]
            used = {i for k in group for i in (axes_exprs + condition_exprs)[k][0]}
            loose -= used
            values, count = self.component(axes, held, used)
            if values is None:
                return NOTHING
            points = None if points is None or count is None else points * count
            if axes or not values.exact:
                parts.append(Part(axes, values))
        if points is not None:
            points *= prod(self.space.extent(number) for number in loose)
        return Image(tuple(parts), points)

    def split_indices(self) -> None:
        """Takes indices apart where quotients and remainders do, so that these vanish."""
        for _ in range(3):
            exprs = [*self.point, *(condition.expr for condition in self.conditions)]
            digits = split(exprs, self.space, set(self.live))
            if not digits:
                return
            rewrite = self.space.rewrite
            self.point = [rewrite(expr, digits) for expr in self.point]
            self.conditions = [
                Condition(rewrite(c.expr, digits), c.equality) for c in self.conditions
            ]
            self.live = [n for n in self.live if n not in digits]
            self.live.extend(sorted({n for e in digits.values() for n in e.indices()}))

    def component(
        self, axes: Sequence[int], conditions: Sequence[Condition], used: set[int]
    ) -> tuple[Values | None, int | None]:
        exprs = [self.point[axis] for axis in axes]
        position = self.space.linearize(exprs, [self.shape[axis] for axis in axes])
        return solve(self.space, position, conditions, used)


def solve(
    space: Space, position: Expr, conditions: Sequence[Condition], used: set[int]
) -> tuple[Values | None, int | None]:
    """The values of a position over the indices ``used`` where conditions hold (None if they
    never do), and at how many points that is."""
    terms = [Expr(0, (term,)) for term in position.terms]
    supports = [expr.indices() for expr in terms] + [c.expr.indices() for c in conditions]
    parts: list[Values] = []
    points: int | None = prod(space.extent(i) for i in used - set[int]().union(*supports))
    for group in connected(supports):
        held = [conditions[k - len(terms)] for k in group if k >= len(terms)]
        inside = [position.terms[k] for k in group if k < len(terms)]
        piece = Expr(0, tuple(inside))
        values, count = _piece(space, piece, held)
        if values is None:
            return None, 0
        points = None if points is None or count is None else points * count
        parts.append(values)
    return total([Values(position.constant), *parts]), points


def _piece(
    space: Space, expr: Expr, conditions: Sequence[Condition]
) -> tuple[Values | None, int | None]:
    numbers = [(atom, factor) for atom, factor in expr.terms if isinstance(atom, int)]
    if not conditions and len(numbers) == len(expr.terms):
        parts = [progression(0, factor, space.extent(atom)) for atom, factor in numbers]
        return total(parts), prod(space.extent(atom) for atom, _ in numbers)
    return solve_piece(space, expr, conditions, _again)


def _again(
    space: Space, expr: Expr, conditions: Sequence[Condition]
) -> tuple[Values | None, int | None] | None:
    """The problem with indices split once more, or None if none can be."""
    exprs = [expr, *(condition.expr for condition in conditions)]
    used = set[int]().union(*(e.indices() for e in exprs))
    digits = split(exprs, space, used)
    if not digits:
        return None
    moved = [Condition(space.rewrite(c.expr, digits), c.equality) for c in conditions]
    for number, value in digits.items():
        used.discard(number)
        used |= value.indices()
    return solve(space, space.rewrite(expr, digits), moved, used)


def split(exprs: Iterable[Expr], space: Space, within: set[int]) -> dict[int, Expr]:
    """For indices that appear divided, the sum of digits they can be replaced by: with
    ``d0 floordiv 3`` and 12 values of ``d0``, it is ``3 * d1 + d2`` of 4 and 3 values."""
    cuts: dict[int, set[int]] = {}
    pending = list(exprs)
    while pending:
        for atom, _ in pending.pop().terms:
            if isinstance(atom, int):
                continue
            pending.append(atom.expr)
            for number, size in _cut(atom):
                if number in within:
                    cuts.setdefault(number, set()).add(size)
    return {
        number: digits
        for number, sizes in cuts.items()
        if (digits := _digits(number, sizes, space)) is not None
    }


def _cut(atom: Quotient | Remainder) -> Iterable[tuple[int, int]]:
    match atom.expr:
        case Expr(0, ((int() as number, 1),)):
            yield number, atom.divisor
        case Expr(0, ((Quotient(Expr(0, ((int() as number, 1),)), first), 1),)):
            yield number, first * atom.divisor
        case _:
            return


def _digits(number: int, sizes: set[int], space: Space) -> Expr | None:
    extent = space.extent(number)
    radices = [1]
    for size in sorted(sizes):
        if size % radices[-1] == 0 and extent % size == 0 and radices[-1] < size < extent:
            radices.append(size)
    if len(radices) == 1 or space.bounds[number][0] != 0:
        return None
    digits: list[tuple[Expr, int]] = []
    for low, high in zip(radices, [*radices[1:], extent], strict=True):
        digits.append((index(space.new_index((0, high // low - 1))), low))
    return Expr(0, tuple((expr.terms[0][0], low) for expr, low in digits))
