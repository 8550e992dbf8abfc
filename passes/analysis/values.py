"""Sets of integers that affine expressions take, with exact sizes.

A set is kept as a sum of levels: arithmetic progressions (or listed sets) whose gaps exceed the
reach of all finer levels, so every combination is a different number and the size is the product
of the sizes. Row-major positions of strided boxes are such sets, whatever their extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]

LIMIT = 1 << 22
"""The most elements that are ever listed."""


@dataclass(frozen=True)
class Progression:
    """``0, step, 2 * step, ...``: ``count`` numbers; ``step`` is positive, ``count`` above 1."""

    step: int
    count: int

    @property
    def gap(self) -> int:
        return self.step

    @property
    def reach(self) -> int:
        """The greatest number; the least is 0."""
        return self.step * (self.count - 1)

    def listed(self) -> Array:
        return np.arange(self.count, dtype=np.int64) * self.step


class Listed:
    """Given numbers, the least of which is 0, in increasing order."""

    __slots__ = ("_bytes", "gap", "numbers")

    def __init__(self, numbers: Array):
        self.numbers = numbers
        self.gap = int(np.diff(numbers).min()) if len(numbers) > 1 else 1
        self._bytes = numbers.tobytes()

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def reach(self) -> int:
        return int(self.numbers[-1])

    def listed(self) -> Array:
        return self.numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)


Level = Progression | Listed


@dataclass(frozen=True)
class Values:
    """``base`` plus one number of every level; levels from fine to coarse."""

    base: int
    levels: tuple[Level, ...] = ()
    exact: bool = True
    """If not, the set is contained in the levels."""

    @property
    def size(self) -> int:
        return prod(level.count for level in self.levels)

    @property
    def last(self) -> int:
        return self.base + sum(level.reach for level in self.levels)

    @property
    def is_interval(self) -> bool:
        """Whether every number from the least to the greatest is in the set."""
        return self.last - self.base + 1 == self.size

    def listed(self) -> Array:
        """The numbers in increasing order."""
        numbers = np.array([self.base], dtype=np.int64)
        for level in self.levels:
            numbers = np.add.outer(level.listed(), numbers).ravel()
        return numbers


def single(value: int) -> Values:
    return Values(value)


def progression(start: int, step: int, count: int) -> Values:
    """``start, start + step, ...``; the step may be negative or 0."""
    if count <= 1 or step == 0:
        return Values(start)
    if step < 0:
        return Values(start + step * (count - 1), (Progression(-step, count),))
    return Values(start, (Progression(step, count),))


def from_sorted(numbers: NDArray[Any]) -> Values:
    """The set of distinct numbers given in increasing order; not empty."""
    base = int(numbers[0])
    if len(numbers) == 1:
        return Values(base)
    steps = np.diff(numbers)
    if (steps == steps[0]).all():
        return Values(base, (Progression(int(steps[0]), len(numbers)),))
    return Values(base, (Listed(numbers - base),))


def total(parts: Iterable[Values]) -> Values:
    """All sums of one number of each part."""
    base, exact = 0, True
    levels: list[Level] = []
    for part in parts:
        base += part.base
        exact &= part.exact
        levels.extend(part.levels)
    stacked = _stack(sorted(levels, key=lambda level: level.gap))
    if stacked is None:
        return Values(base, _enclosing(levels), exact=False)
    return Values(base, tuple(stacked), exact)


def _enclosing(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Levels with at least the size of the sum of levels; a bound, not the set."""
    step = 0
    for level in levels:
        step = gcd(step, level.gap if isinstance(level, Progression) else 1)
    reach = sum(level.reach for level in levels)
    count = min(prod(level.count for level in levels), reach // step + 1)
    return (Progression(step, count),) if count > 1 else ()


def _stack(levels: Sequence[Level]) -> list[Level] | None:
    """Joins levels until each one's gap is above the reach of those before it."""
    stack: list[Level] = []
    for level in levels:
        joined = level
        while stack and joined.gap <= sum(below.reach for below in stack):
            merged = _join(stack.pop(), joined)
            if merged is None:
                return None
            joined = merged
        top = stack[-1] if stack else None
        if (
            isinstance(top, Progression)
            and isinstance(joined, Progression)
            and joined.step == top.step * top.count
        ):
            stack[-1] = Progression(top.step, top.count * joined.count)
        else:
            stack.append(joined)
    return stack


def _join(fine: Level, coarse: Level) -> Level | None:
    """The sums of two levels as one, or None if there are too many to list."""
    if isinstance(fine, Progression) and isinstance(coarse, Progression):
        times, left = divmod(coarse.step, fine.step)
        if left == 0 and times <= fine.count:
            return Progression(fine.step, fine.count + times * (coarse.count - 1))
    common = gcd(_step(fine), _step(coarse))
    reach = (fine.reach + coarse.reach) // common
    if reach > 8 * LIMIT or min(fine.count, coarse.count) > LIMIT:
        return None
    few, many = sorted((fine, coarse), key=lambda level: level.count)
    if not isinstance(few, Progression) and few.count > 4096:
        return None
    held = np.zeros(reach + 1, dtype=np.bool_)
    held[many.listed() // common] = True
    if isinstance(few, Progression):
        _spread(held, few.step // common, few.count)
    else:
        shifts = few.listed() // common
        held = np.logical_or.reduce([_shifted(held, int(shift)) for shift in shifts])
    numbers = np.flatnonzero(held).astype(np.int64) * common
    values = from_sorted(numbers)
    return values.levels[0]


def _step(level: Level) -> int:
    if isinstance(level, Progression):
        return level.step
    return int(np.gcd.reduce(level.numbers))


def _shifted(held: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    if by == 0:
        return held
    moved = np.zeros_like(held)
    moved[by:] = held[:-by]
    return moved


def _spread(held: NDArray[np.bool_], step: int, count: int) -> None:
    """Adds every number plus each multiple of ``step`` below ``count`` times it, by doubling."""
    done = 1
    while done < count:
        more = min(done, count - done)
        held |= _shifted(held, more * step)
        done += more
