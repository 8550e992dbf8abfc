"""Lists the values of an index expression where conditions hold, over as few indices as possible.

Indices that appear in one and the same combination everywhere (``2 * d0 + d1`` of a strided
window) are one index: the combination. The positions of a window over a padded axis are then a
list as long as the axis, however many windows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from plait.passes.analysis.affine import Expr, Quotient, Space, combine, constant, index
from plait.passes.analysis.index_maps import Condition
from plait.passes.analysis.values import LIMIT, Array, Values, from_sorted, progression, total

Answer = tuple[Values | None, int | None]
Again = Callable[[Space, Expr, Sequence[Condition]], Answer | None]

_FEW = 1 << 12
"""Up to this many points, listing is cheaper than thinking."""


@dataclass(frozen=True)
class Domain:
    """The values of a combined index."""

    numbers: Array
    weights: Array | None = None
    """How many points of the combined indices have each value; None for one each."""


def solve_piece(space: Space, expr: Expr, conditions: Sequence[Condition], again: Again) -> Answer:
    """The values of ``expr`` over the points at which the conditions hold (None if there are
    none), and the number of these points.

    ``again`` solves the problem with its indices split, if that is possible.
    """
    exprs = [expr, *(condition.expr for condition in conditions)]
    size = prod(space.extent(number) for number in _used(exprs))
    counted = True
    domains: dict[int, Domain] = {}
    if size > _FEW:
        grouped = _Grouping(space, exprs)
        expr, *rest = [grouped.rewrite(e) for e in exprs]
        conditions = [Condition(e, c.equality) for e, c in zip(rest, conditions, strict=True)]
        domains, counted = grouped.domains, grouped.counted
        exprs = [expr, *rest]
        size = prod(
            len(domains[k].numbers) if k in domains else space.extent(k) for k in _used(exprs)
        )
        if size > _FEW and not domains:
            answer = again(space, expr, conditions)
            if answer is not None:
                return answer if counted else (answer[0], None)
    if size <= LIMIT:
        values, points = _list(space, expr, conditions, domains)
        return values, points if counted else None
    return _bound(space, expr, size), None


def _used(exprs: Iterable[Expr]) -> set[int]:
    return set[int]().union(*(expr.indices() for expr in exprs))


def _bound(space: Space, expr: Expr, size: int) -> Values:
    low, high = space.bounds_of(expr)
    step = 0
    for _, factor in expr.terms:
        step = gcd(step, factor)
    interval = progression(low, max(step, 1), min(size, (high - low) // max(step, 1) + 1))
    return Values(interval.base, interval.levels, exact=False)


def _list(
    space: Space, expr: Expr, conditions: Sequence[Condition], domains: dict[int, Domain]
) -> Answer:
    used = sorted(_used([expr, *(condition.expr for condition in conditions)]))
    arrays: dict[int, Array] = {}
    held = np.ones((1,) * len(used), dtype=np.bool_)
    weights = np.ones((1,) * len(used), dtype=np.int64)
    for axis, number in enumerate(used):
        shape = [1] * len(used)
        shape[axis] = -1
        domain = domains.get(number)
        low, high = space.bounds[number]
        numbers = np.arange(low, high + 1) if domain is None else domain.numbers
        arrays[number] = numbers.reshape(shape)
        if domain is not None and domain.weights is not None:
            weights = weights * domain.weights.reshape(shape)
    for condition in conditions:
        value = evaluate(condition.expr, arrays)
        held = held & (value == 0 if condition.equality else value >= 0)
    everywhere = np.broadcast_shapes(*(array.shape for array in arrays.values()), held.shape)
    held = np.broadcast_to(held, everywhere)
    points = int(np.broadcast_to(weights, everywhere)[held].sum())
    if not points:
        return None, 0
    found = np.broadcast_to(evaluate(expr, arrays), everywhere)[held]
    return from_sorted(_distinct(found)), points


def _distinct(numbers: Array) -> Array:
    """Sorted and without repetition; by marking where that is shorter than sorting."""
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < 8 * len(numbers) + 1024:
        marked = np.zeros(high - low + 1, dtype=np.bool_)
        marked[numbers - low] = True
        return np.flatnonzero(marked) + low
    return np.unique(numbers)


def evaluate(expr: Expr, arrays: dict[int, Array]) -> Array:
    """An expression at arrays of index values, with numpy broadcasting."""
    result = np.array(expr.constant, dtype=np.int64)
    for atom, factor in expr.terms:
        if isinstance(atom, int):
            value = arrays[atom]
        elif isinstance(atom, Quotient):
            value = evaluate(atom.expr, arrays) // atom.divisor
        else:
            value = evaluate(atom.expr, arrays) % atom.divisor
        result = result + factor * value
    return result


class _Grouping:
    """Combinations of indices that expressions cannot tell apart, each as an index of its own."""

    def __init__(self, space: Space, exprs: Sequence[Expr]):
        self.space = space
        self.domains: dict[int, Domain] = {}
        self.counted = True
        """Whether the weights in the domains are all there."""
        self._group_of: dict[int, tuple[Expr, int]] = {}
        for members in _proportional(exprs).values():
            if len(members) > 1:
                self._combine(members)

    def _combine(self, members: Sequence[tuple[int, int]]) -> None:
        common = gcd(*(times for _, times in members))
        scaled = [(number, times // common) for number, times in members]
        space = self.space
        parts = [progression(0, times, space.extent(number)) for number, times in scaled]
        values = total(parts)
        points = prod(space.extent(number) for number, _ in scaled)
        reach = values.last - values.base
        if values.exact and values.is_interval and points == values.size:
            combined = index(space.new_index((0, reach)))
        elif reach <= LIMIT:
            number = space.new_index((0, reach))
            combined = index(number)
            weights = _weights(scaled, space, reach)
            numbers = np.flatnonzero(weights)
            self.domains[number] = Domain(numbers, weights[numbers])
        elif values.exact and values.is_interval:
            combined = index(space.new_index((0, reach)))
            self.counted = False
        else:
            return
        for number, times in scaled:
            self._group_of[number] = (combine(combined, constant(values.base)), times)

    def rewrite(self, expr: Expr) -> Expr:
        """The expression in terms of the combinations."""
        parts: list[Expr | tuple[Expr, int]] = [Expr(expr.constant)]
        done: set[Expr] = set()
        for atom, factor in expr.terms:
            if not isinstance(atom, int):
                inner = self.rewrite(atom.expr)
                divide = self.space.floordiv if isinstance(atom, Quotient) else self.space.mod
                parts.append((divide(inner, atom.divisor), factor))
            elif atom not in self._group_of:
                parts.append((index(atom), factor))
            else:
                combined, times = self._group_of[atom]
                if combined not in done:
                    done.add(combined)
                    parts.append((combined, factor // times))
        return combine(*parts)


def _proportional(exprs: Sequence[Expr]) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """Indices by the direction of their factors in all linear forms, with their multiples of it."""
    forms: dict[Expr, int] = {}
    factors: dict[int, dict[int, int]] = {}
    pending = list(exprs)
    while pending:
        expr = pending.pop()
        if expr in forms:
            continue
        form = forms[expr] = len(forms)
        for atom, factor in expr.terms:
            if isinstance(atom, int):
                factors.setdefault(atom, {})[form] = factor
            else:
                pending.append(atom.expr)
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for number in sorted(factors):
        row = [factors[number].get(form, 0) for form in range(len(forms))]
        times = gcd(*row) * (1 if next(filter(None, row)) > 0 else -1)
        groups.setdefault(tuple(factor // times for factor in row), []).append((number, times))
    return groups


def _weights(members: Sequence[tuple[int, int]], space: Space, reach: int) -> Array:
    """For every sum from the least up, the number of points with it."""
    counts = np.zeros(reach + 1, dtype=np.int64)
    counts[0] = 1
    for number, times in members:
        counts = _spread(counts, abs(times), space.extent(number))
    return counts


def _spread(counts: Array, step: int, count: int) -> Array:
    """``result[v] = sum of counts[v - step * t] for 0 <= t < count``."""
    rows = -(-len(counts) // step)
    padded = np.zeros(rows * step, dtype=np.int64)
    padded[: len(counts)] = counts
    sums = np.cumsum(padded.reshape(rows, step), axis=0)
    if count < rows:
        sums[count:] -= sums[:-count].copy()
    return sums.ravel()[: len(counts)]
