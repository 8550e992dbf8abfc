"""Affine index expressions over bounded indices, kept in a canonical form.

An :class:`Expr` is a constant plus multiples of atoms. An atom is an index (a number), or the
floor quotient or remainder of an expression by a positive constant. Operations simplify with the
bounds of the indices, so that the maps of equal accesses are equal expressions: a reshape there
and back disappears, a quotient of a split axis is the axis again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from xdsl.ir.affine import AffineExpr

Bounds = tuple[int, int]
"""Least and greatest value, both inclusive."""


@dataclass(frozen=True)
class Quotient:
    """``expr floordiv divisor``."""

    expr: Expr
    divisor: int


@dataclass(frozen=True)
class Remainder:
    """``expr mod divisor``, from 0 to ``divisor - 1``."""

    expr: Expr
    divisor: int


Atom = int | Quotient | Remainder


@dataclass(frozen=True)
class Expr:
    """``constant + sum(factor * atom)``; atoms are distinct, factors are not 0, order is fixed."""

    constant: int = 0
    terms: tuple[tuple[Atom, int], ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.constant, self.terms)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def indices(self) -> set[int]:
        """Every index the expression depends on."""
        found: set[int] = set()
        pending: list[Expr] = [self]
        while pending:
            for atom, _ in pending.pop().terms:
                if isinstance(atom, int):
                    found.add(atom)
                else:
                    pending.append(atom.expr)
        return found

    def __str__(self) -> str:
        cached = self.__dict__.get("_str")
        if cached is None:
            parts = [_str_term(atom, factor) for atom, factor in self.terms]
            if self.constant or not parts:
                parts.append(str(self.constant))
            cached = " + ".join(parts)
            object.__setattr__(self, "_str", cached)
        return cached


def _str_term(atom: Atom, factor: int) -> str:
    match atom:
        case int():
            text = f"d{atom}"
        case Quotient(expr, divisor):
            text = f"({expr}) floordiv {divisor}"
        case Remainder(expr, divisor):
            text = f"({expr}) mod {divisor}"
    return text if factor == 1 else f"{factor} * ({text})"


def constant(value: int) -> Expr:
    return Expr(value)


ZERO = Expr(0)


def index(number: int) -> Expr:
    """The index with this number."""
    return Expr(0, ((number, 1),))


def _order(term: tuple[Atom, int]) -> tuple[int, int, str]:
    atom, _ = term
    match atom:
        case int():
            return (0, atom, "")
        case Quotient(expr, divisor):
            return (1, divisor, str(expr))
        case Remainder(expr, divisor):
            return (2, divisor, str(expr))


def _normal(constant: int, factors: Mapping[Atom, int]) -> Expr:
    """The canonical expression: no zero factors, fixed order, quotients and remainders that add up
    to something simpler joined."""
    kept = {atom: factor for atom, factor in factors.items() if factor}
    for atom in kept:
        if isinstance(atom, Remainder):
            joined = _joined(kept, atom)
            if joined is not None:
                gone, whole = joined
                factor = kept[atom]
                rest = {a: f for a, f in kept.items() if a != atom and a != gone}
                return combine(Expr(constant, tuple(rest.items())), (whole, factor))
    terms = tuple(kept.items())
    return Expr(constant, terms if len(terms) < 2 else tuple(sorted(terms, key=_order)))


def _joined(kept: Mapping[Atom, int], low: Remainder) -> tuple[Atom, Expr] | None:
    """The term that continues a remainder, and what both are, by the remainder's factor:
    ``e mod c + c * (e floordiv c)`` is ``e``;
    ``e mod c + c * ((e floordiv c + r) mod b)`` is ``(e + c * r) mod (c * b)``."""
    wanted = kept[low] * low.divisor
    expr, divisor = low.expr, low.divisor
    plain = Quotient(expr, divisor)
    if kept.get(plain) == wanted:
        return plain, expr
    flat = _flattened(expr)
    if flat is not None:
        merged = Quotient(flat[0], flat[1] * divisor)
        if kept.get(merged) == wanted:
            return merged, expr
    for high, factor in kept.items():
        if factor == wanted and isinstance(high, Remainder) and high != low:
            parts = dict(high.expr.terms)
            if parts.pop(plain, 0) == 1:
                rest = Expr(high.expr.constant, tuple(parts.items()))
                whole = combine(expr, (rest, divisor))
                return high, Expr(0, ((Remainder(whole, divisor * high.divisor), 1),))
    return None


def _flattened(expr: Expr) -> tuple[Expr, int] | None:
    """``(e, d)`` with ``expr = e floordiv d``, if a term is a quotient: ``k + e floordiv d`` is
    ``(d * k + e) floordiv d``."""
    for atom, factor in expr.terms:
        if factor == 1 and isinstance(atom, Quotient):
            rest = combine(expr, (Expr(0, ((atom, 1),)), -1))
            return combine((rest, atom.divisor), atom.expr), atom.divisor
    return None


def combine(*parts: Expr | tuple[Expr, int]) -> Expr:
    """The sum of expressions, each by its factor (1 if none is given)."""
    total = 0
    factors: dict[Atom, int] = {}
    for part in parts:
        expr, by = part if isinstance(part, tuple) else (part, 1)
        total += expr.constant * by
        for atom, factor in expr.terms:
            factors[atom] = factors.get(atom, 0) + factor * by
    return _normal(total, factors)


def add(lhs: Expr, rhs: Expr | int) -> Expr:
    if isinstance(rhs, int):
        return Expr(lhs.constant + rhs, lhs.terms) if rhs else lhs
    return combine(lhs, rhs)


def scale(expr: Expr, factor: int) -> Expr:
    if factor == 0:
        return ZERO
    if factor == 1:
        return expr
    return Expr(expr.constant * factor, tuple((atom, f * factor) for atom, f in expr.terms))


class Space:
    """Indices with their bounds; quotients and remainders are simplified by them.

    ``bounds[k]`` are those of index ``k``; more indices may be added at any time.
    """

    def __init__(self, bounds: Sequence[Bounds] = ()):
        self.bounds: list[Bounds] = list(bounds)
        self._bounds_of: dict[Expr, Bounds] = {}
        self._quotients: dict[tuple[Expr, int], Expr] = {}
        self._remainders: dict[tuple[Expr, int], Expr] = {}

    @staticmethod
    def of_extents(extents: Sequence[int]) -> Space:
        """Indices from 0 to each extent, exclusive."""
        return Space([(0, max(extent - 1, 0)) for extent in extents])

    def new_index(self, bounds: Bounds) -> int:
        self.bounds.append(bounds)
        return len(self.bounds) - 1

    def extent(self, number: int) -> int:
        """How many values an index has."""
        low, high = self.bounds[number]
        return high - low + 1

    def bounds_of(self, expr: Expr) -> Bounds:
        """Bounds of an expression's values; exact where its atoms are independent."""
        cached = self._bounds_of.get(expr)
        if cached is None:
            low = high = expr.constant
            for atom, factor in expr.terms:
                a, b = self._atom_bounds(atom)
                low += factor * (a if factor > 0 else b)
                high += factor * (b if factor > 0 else a)
            cached = self._bounds_of[expr] = (low, high)
        return cached

    def _atom_bounds(self, atom: Atom) -> Bounds:
        match atom:
            case int():
                return self.bounds[atom]
            case Quotient(expr, divisor):
                low, high = self.bounds_of(expr)
                return low // divisor, high // divisor
            case Remainder(expr, divisor):
                low, high = self.bounds_of(expr)
                if low // divisor == high // divisor:
                    return low % divisor, high % divisor
                return 0, divisor - 1

    def _split(self, expr: Expr, divisor: int) -> tuple[Expr, Expr]:
        """``expr = divisor * quotient + rest`` with the fewest terms in ``rest``."""
        whole = {atom: f // divisor for atom, f in expr.terms if f % divisor == 0}
        rest = {atom: f for atom, f in expr.terms if f % divisor}
        steps, left = divmod(expr.constant, divisor)
        return _normal(steps, whole), _normal(left, rest)

    def _coarsen(self, expr: Expr, divisor: int) -> tuple[int, Expr, Expr] | None:
        """``(grain, steps, fine)`` with ``expr = grain * steps + fine``, ``0 <= fine < grain`` and
        ``grain`` a proper divisor of ``divisor``: division then only looks at ``steps``."""
        for grain in sorted({gcd(divisor, factor) for _, factor in expr.terms}, reverse=True):
            if grain == 1:
                break
            steps, fine = self._split(expr, grain)
            low, high = self.bounds_of(fine)
            if low // grain == high // grain:
                moved = low // grain
                return grain, add(steps, moved), add(fine, -moved * grain)
        return None

    def _reduced(self, rest: Expr, divisor: int) -> tuple[Expr, Expr] | None:
        """``rest = divisor * quotient + left`` with ``0 <= left < divisor``, taking factors apart:
        ``12 * i + k = 11 * i + (i + k)``, as overlapping windows made by reshapes give."""
        if all(abs(factor) < divisor for _, factor in rest.terms):
            return None
        steps = Expr(0, tuple((atom, f // divisor) for atom, f in rest.terms if f // divisor))
        left = combine(rest, (steps, -divisor))
        low, high = self.bounds_of(left)
        moved = low // divisor
        if moved != high // divisor:
            return None
        return add(steps, moved), add(left, -moved * divisor)

    def floordiv(self, expr: Expr, divisor: int) -> Expr:
        """``expr floordiv divisor``, simplified."""
        known = self._quotients.get((expr, divisor))
        if known is None:
            known = self._quotients[expr, divisor] = self._floordiv(expr, divisor)
        return known

    def mod(self, expr: Expr, divisor: int) -> Expr:
        """``expr mod divisor``, simplified."""
        known = self._remainders.get((expr, divisor))
        if known is None:
            known = self._remainders[expr, divisor] = self._mod(expr, divisor)
        return known

    def _floordiv(self, expr: Expr, divisor: int) -> Expr:
        if divisor == 1:
            return expr
        quotient, rest = self._split(expr, divisor)
        low, high = self.bounds_of(rest)
        if low // divisor == high // divisor:
            return add(quotient, low // divisor)
        reduced = self._reduced(rest, divisor)
        if reduced is not None:
            return combine(quotient, reduced[0])
        coarse = self._coarsen(rest, divisor)
        if coarse is not None:
            grain, steps, _ = coarse
            return combine(quotient, self.floordiv(steps, divisor // grain))
        flat = _flattened(rest)
        if flat is not None:
            return combine(quotient, self.floordiv(flat[0], flat[1] * divisor))
        match rest:
            case Expr(0, ((Remainder(inner, first), 1),)) if first % divisor == 0:
                inner_quotient = self.floordiv(inner, divisor)
                return combine(quotient, self.mod(inner_quotient, first // divisor))
            case _ if rest.terms[0][1] < 0:
                # floor(r / d) = -floor((d - 1 - r) / d): a flipped index is divided as it is.
                mirrored = self.floordiv(add(scale(rest, -1), divisor - 1), divisor)
                return combine(quotient, (mirrored, -1))
            case _:
                return combine(quotient, Expr(0, ((Quotient(rest, divisor), 1),)))

    def _mod(self, expr: Expr, divisor: int) -> Expr:
        if divisor == 1:
            return ZERO
        _, rest = self._split(expr, divisor)
        low, high = self.bounds_of(rest)
        if low // divisor == high // divisor:
            return add(rest, -(low // divisor) * divisor)
        reduced = self._reduced(rest, divisor)
        if reduced is not None:
            return reduced[1]
        coarse = self._coarsen(rest, divisor)
        if coarse is not None:
            grain, steps, fine = coarse
            return combine((self.mod(steps, divisor // grain), grain), fine)
        match rest:
            case Expr(0, ((Remainder(inner, first), 1),)) if first % divisor == 0:
                return self.mod(inner, divisor)
            case _ if rest.terms[0][1] < 0:
                mirrored = self.mod(add(scale(rest, -1), -1), divisor)
                return add(scale(mirrored, -1), divisor - 1)
            case _:
                return Expr(0, ((Remainder(rest, divisor), 1),))

    def rewrite(self, expr: Expr, value_of: Mapping[int, Expr]) -> Expr:
        """The expression with indices replaced by expressions in the indices of this space."""
        parts: list[Expr | tuple[Expr, int]] = [Expr(expr.constant)]
        for atom, factor in expr.terms:
            match atom:
                case int():
                    value = value_of.get(atom)
                    part = index(atom) if value is None else value
                case Quotient(inner, divisor):
                    part = self.floordiv(self.rewrite(inner, value_of), divisor)
                case Remainder(inner, divisor):
                    part = self.mod(self.rewrite(inner, value_of), divisor)
            parts.append((part, factor))
        return combine(*parts)

    def linearize(self, indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
        """The row-major position of a point of ``shape``."""
        if len(shape) == 1:
            return indices[0]
        parts: list[tuple[Expr, int]] = []
        stride = 1
        for expr, extent in zip(reversed(indices), reversed(shape), strict=True):
            parts.append((expr, stride))
            stride *= extent
        return self.tidy(combine(*parts))

    def tidy(self, expr: Expr) -> Expr:
        """The expression with its remainders simplified again, now that some were joined."""
        while any(isinstance(atom, Remainder) for atom, _ in expr.terms):
            again = [
                (self.mod(atom.expr, atom.divisor), factor)
                if isinstance(atom, Remainder)
                else (Expr(0, ((atom, 1),)), factor)
                for atom, factor in expr.terms
            ]
            result = combine(Expr(expr.constant), *again)
            if result == expr:
                break
            expr = result
        return expr

    def delinearize(self, position: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
        """The point of ``shape`` at a row-major position that is known to be within it."""
        indices: list[Expr] = []
        for number, extent in enumerate(reversed(shape)):
            last = number == len(shape) - 1
            indices.append(position if last else self.mod(position, extent) if extent else ZERO)
            position = self.floordiv(position, extent) if extent else ZERO
        return tuple(reversed(indices))


def to_affine(expr: Expr, dimension_of: Mapping[int, int]) -> AffineExpr:
    """The expression in xDSL's form, with index ``k`` as dimension ``dimension_of[k]``."""
    total: AffineExpr | None = None
    for atom, factor in expr.terms:
        match atom:
            case int():
                value = AffineExpr.dimension(dimension_of[atom])
            case Quotient(inner, divisor):
                value = to_affine(inner, dimension_of) // divisor
            case Remainder(inner, divisor):
                value = to_affine(inner, dimension_of) % divisor
        value = value if factor == 1 else value * factor
        total = value if total is None else total + value
    if total is None:
        return AffineExpr.constant(expr.constant)
    return total + expr.constant if expr.constant else total
