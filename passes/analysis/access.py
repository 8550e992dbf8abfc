"""Accesses: which elements of a value are read at the points of an iteration space.

An :class:`Access` is an affine map from the points of a space to the indices of a value, and the
conditions (from padding and concatenation) under which it is read at all. Where a gather takes an
index from data, the map has an index of its own for it: such an access is ``irregular``, and counts
of it are upper bounds. :mod:`plait.passes.analysis.reads` finds the accesses of a group.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import gcd, prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineMap,
    AffineSet,
)

from plait.dialects import lazy
from plait.passes.analysis.affine import Expr, Quotient, Space, add, scale, to_affine
from plait.passes.analysis.image import Extents, Image, image_of
from plait.passes.analysis.index_maps import Condition, Point
from plait.passes.analysis.union import union_size


class AccessKind(StrEnum):
    """How points of the space and elements of the value correspond."""

    BIJECTIVE = "bijective"
    """One to one, from the whole space onto the whole value."""
    INJECTIVE = "injective"
    """One to one, from part of the space or onto part of the value."""
    BROADCAST = "broadcast"
    """Some elements are read at several points."""
    IRREGULAR = "irregular"
    """Data says which elements are read."""


@dataclass(frozen=True)
class Free:
    """An index taken from data."""

    extent: int
    """Its values are 0 to ``extent - 1``."""
    limit: int
    """It has no more different values than this."""
    source: Hashable
    """Tells indices from different data apart."""


@dataclass(frozen=True)
class Access:
    """``value[point]`` at the points of ``space`` where all conditions hold."""

    value: SSAValue
    space: Extents
    point: Point
    """For each axis of the value, an expression in the indices of the space; index ``rank + k`` is
    the one from data number ``k``."""
    conditions: tuple[Condition, ...] = ()
    """In canonical form: without those that always hold, the tightest of several."""
    free: tuple[Free, ...] = ()

    @property
    def shape(self) -> Extents:
        return lazy.shape_of(self.value)

    @property
    def irregular(self) -> bool:
        return bool(self.free)

    @cached_property
    def image(self) -> Image:
        """The elements that are read; a superset if indices come from data."""
        extents = (*self.space, *(index.extent for index in self.free))
        return image_of(self.point, self.conditions, extents, self.shape)

    @cached_property
    def kind(self) -> AccessKind:
        return _classify(self)

    @cached_property
    def distinct_elements(self) -> int:
        """How many different elements are read; an upper bound unless :attr:`exact`."""
        image = self.image
        if not self.free:
            return image.size
        rank, size = len(self.space), 1
        for part in image.parts:
            used = set[int]().union(*(self.point[axis].indices() for axis in part.axes))
            bound = prod(
                self.space[number] if number < rank else self.free[number - rank].limit
                for number in used
            )
            size *= min(part.values.size, bound)
        points = prod(self.space)
        return 0 if image.empty else min(size, points)

    @property
    def exact(self) -> bool:
        """Whether :attr:`distinct_elements` is the number, not a bound."""
        return not self.free and self.image.exact

    @property
    def map(self) -> AffineMap:
        """The map in xDSL's form; indices from data are its last dimensions."""
        count = len(self.space) + len(self.free)
        identity = {k: k for k in range(count)}
        return AffineMap(count, 0, tuple(to_affine(expr, identity) for expr in self.point))

    @property
    def where(self) -> AffineSet | None:
        """The conditions in xDSL's form, over the dimensions of :attr:`map`; None if none."""
        if not self.conditions:
            return None
        count = len(self.space) + len(self.free)
        identity = {k: k for k in range(count)}
        constraints = [
            AffineConstraintExpr(
                AffineConstraintKind.eq if c.equality else AffineConstraintKind.ge,
                to_affine(c.expr, identity),
                to_affine(Expr(0), identity),
            )
            for c in self.conditions
        ]
        return AffineSet(count, 0, tuple(constraints))


def _classify(access: Access) -> AccessKind:
    if access.irregular:
        return AccessKind.IRREGULAR
    image = access.image
    if not image.exact or image.points != image.size:
        return AccessKind.BROADCAST
    onto = image.size == prod(access.shape)
    everywhere = image.points == prod(access.space)
    return AccessKind.BIJECTIVE if onto and everywhere else AccessKind.INJECTIVE


def elements_read(accesses: Sequence[Access]) -> tuple[int, bool]:
    """How many elements of one value several accesses read together, and whether that is exact; it
    is an upper bound otherwise."""
    if len(accesses) == 1:
        return accesses[0].distinct_elements, accesses[0].exact
    shape = accesses[0].shape
    regular = [access.image for access in accesses if not access.free]
    size, exact = union_size(regular, shape)
    irregular = dict.fromkeys(access for access in accesses if access.free)
    if irregular and size < prod(shape):
        size += sum(access.distinct_elements for access in irregular)
        size, exact = min(size, prod(shape)), False
    return size, exact


def canonical(conditions: Sequence[Condition], space: Space) -> tuple[Condition, ...] | None:
    """The conditions in canonical form, or None if one never holds."""
    tightest: dict[tuple[bool, object], Condition] = {}
    for condition in dict.fromkeys(conditions):
        condition = _reduced(condition, space)
        verdict = condition.decide(space)
        if verdict is False:
            return None
        if verdict is None:
            key = (condition.equality, condition.expr.terms)
            other = tightest.get(key)
            if other is None or condition.expr.constant < other.expr.constant:
                tightest[key] = condition
            if condition.equality and other is not None and other != condition:
                return None
    return tuple(sorted(tightest.values(), key=lambda c: (c.equality, str(c.expr))))


def _reduced(condition: Condition, space: Space) -> Condition:
    """Divides by the common factor, and takes a lone quotient apart: ``e floordiv d >= k`` is
    ``e >= d * k``."""
    expr = condition.expr
    while not condition.equality and expr.terms:
        common = gcd(*(factor for _, factor in expr.terms))
        if common > 1:
            terms = tuple((atom, factor // common) for atom, factor in expr.terms)
            expr = Expr(expr.constant // common, terms)
        atom, sign = expr.terms[0]
        if len(expr.terms) > 1 or not isinstance(atom, Quotient):
            break
        if sign > 0:
            expr = add(atom.expr, atom.divisor * expr.constant)
        else:
            expr = add(scale(atom.expr, -1), atom.divisor * (expr.constant + 1) - 1)
    return Condition(expr, condition.equality)
