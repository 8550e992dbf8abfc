"""Affine index expressions over loop axes, simplified with the extents of the axes.

An :class:`Affine` is ``const + sum(coefficient * atom)``. An atom is an :class:`Axis` (0 to
extent - 1), a data-dependent index value, or a floor division or remainder of another expression
that could not be simplified away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)


@dataclass(eq=False)
class Axis:
    """A loop axis; its values are 0 to ``extent - 1``."""

    name: str
    extent: int


@dataclass(frozen=True)
class Part:
    """``inner floordiv divisor`` or ``inner mod divisor``, with a positive divisor."""

    kind: str
    inner: Affine
    divisor: int


Atom = Axis | SSAValue | Part


def _order(atom: Atom) -> tuple[int, str, int]:
    if isinstance(atom, Axis):
        return (0, atom.name, id(atom))
    return (1, "", id(atom)) if isinstance(atom, SSAValue) else (2, atom.kind, atom.divisor)


@dataclass(frozen=True)
class Affine:
    """``const`` plus terms; compare and hash by value."""

    const: int = 0
    terms: frozenset[tuple[Atom, int]] = field(default_factory=frozenset[tuple[Atom, int]])

    @staticmethod
    def of(atom: Atom) -> Affine:
        """The atom itself."""
        return Affine(0, frozenset({(atom, 1)}))

    @staticmethod
    def build(const: int, terms: dict[Atom, int]) -> Affine:
        """From a dictionary; zero coefficients vanish."""
        return Affine(const, frozenset((a, c) for a, c in terms.items() if c))

    def ordered(self) -> list[tuple[Atom, int]]:
        """The terms in a fixed order, large coefficients first."""
        return sorted(self.terms, key=lambda term: (-abs(term[1]), _order(term[0])))

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + coefficient
        return Affine.build(self.const + other.const, terms)

    def scaled(self, factor: int) -> Affine:
        """Times an integer."""
        return Affine.build(self.const * factor, {a: c * factor for a, c in self.terms})

    def coefficient(self, axis: Axis) -> int:
        """The direct coefficient of ``axis``."""
        for atom, coefficient in self.terms:
            if atom is axis:
                return coefficient
        return 0

    def hidden(self, axis: Axis) -> bool:
        """Whether ``axis`` appears inside a division or remainder."""
        return any(isinstance(atom, Part) and (atom.inner.depends(axis)) for atom, _ in self.terms)

    def depends(self, axis: Axis) -> bool:
        """Whether the value may change with ``axis``."""
        return bool(self.coefficient(axis)) or self.hidden(axis)

    def data_dependent(self) -> bool:
        """Whether a data-dependent value appears anywhere."""
        return any(
            isinstance(atom, SSAValue) or (isinstance(atom, Part) and atom.inner.data_dependent())
            for atom, _ in self.terms
        )

    def bounds(self) -> tuple[int | None, int | None]:
        """The smallest and largest value, None where unknown."""
        low: int | None = self.const
        high: int | None = self.const
        for atom, coefficient in self.terms:
            a, b = _atom_bounds(atom)
            if coefficient < 0:
                a, b = b, a
            low = None if low is None or a is None else low + coefficient * a
            high = None if high is None or b is None else high + coefficient * b
        return low, high


ZERO = Affine()


def _atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    if isinstance(atom, Axis):
        return 0, max(0, atom.extent - 1)
    if isinstance(atom, SSAValue):
        return None, None
    low, high = atom.inner.bounds()
    if atom.kind == "mod":
        return 0, atom.divisor - 1
    return (
        None if low is None else low // atom.divisor,
        None if high is None else high // atom.divisor,
    )


def _split(value: Affine, divisor: int) -> tuple[Affine, Affine]:
    """``value = divisor * whole + rest`` with the rest's coefficients not multiples."""
    whole: dict[Atom, int] = {}
    rest: dict[Atom, int] = {}
    for atom, coefficient in value.terms:
        if coefficient % divisor == 0:
            whole[atom] = coefficient // divisor
        else:
            rest[atom] = coefficient
    return (
        Affine.build(value.const // divisor, whole),
        Affine.build(value.const % divisor, rest),
    )


def floordiv(value: Affine, divisor: int) -> Affine:
    """``value floordiv divisor``, as simple as the extents allow."""
    whole, rest = _split(value, divisor)
    low, high = rest.bounds()
    if low is not None and high is not None and low // divisor == high // divisor:
        return whole + Affine(low // divisor)
    return whole + Affine.of(Part("div", rest, divisor))


def mod(value: Affine, divisor: int) -> Affine:
    """``value mod divisor``, as simple as the extents allow."""
    _, rest = _split(value, divisor)
    low, high = rest.bounds()
    if low is not None and high is not None and low // divisor == high // divisor:
        return rest + Affine(-(low // divisor) * divisor)
    return Affine.of(Part("mod", rest, divisor))


def join_parts(value: Affine) -> Affine:
    """Rewrites ``d*(e floordiv d) + e mod d`` to ``e``, wherever it appears."""
    terms = dict(value.terms)
    result = Affine(value.const)
    changed = False
    for atom, coefficient in value.terms:
        if not isinstance(atom, Part) or atom.kind != "mod" or atom not in terms:
            continue
        other = Part("div", atom.inner, atom.divisor)
        if terms.get(other) == coefficient * atom.divisor:
            del terms[atom], terms[other]
            result = result + atom.inner.scaled(coefficient)
            changed = True
    if not changed:
        return value
    return join_parts(result + Affine.build(0, terms))


def from_expr(expr: AffineExpr, operands: Sequence[Affine]) -> Affine:
    """An xDSL affine expression with its dimensions replaced. Expressions are shallow."""
    if isinstance(expr, AffineConstantExpr):
        return Affine(expr.value)
    if isinstance(expr, AffineDimExpr):
        return operands[expr.position]
    assert isinstance(expr, AffineBinaryOpExpr), "symbols do not occur in nest maps"
    left, right = from_expr(expr.lhs, operands), from_expr(expr.rhs, operands)
    if expr.kind is AffineBinaryOpKind.Add:
        return left + right
    if expr.kind is AffineBinaryOpKind.Mul:
        if not right.terms:
            return left.scaled(right.const)
        assert not left.terms, "products of axes are not affine"
        return right.scaled(left.const)
    assert not right.terms and right.const > 0, "divisors are positive constants"
    if expr.kind is AffineBinaryOpKind.FloorDiv:
        return floordiv(left, right.const)
    if expr.kind is AffineBinaryOpKind.Mod:
        return mod(left, right.const)
    return floordiv(left.scaled(-1), right.const).scaled(-1)


def substitute(value: Affine, old: Axis, new: Affine) -> Affine:
    """``value`` with ``old`` replaced by ``new``, simplified again."""
    result = Affine(value.const)
    for atom, coefficient in value.terms:
        if atom is old:
            part = new
        elif isinstance(atom, Part):
            inner = substitute(atom.inner, old, new)
            part = (floordiv if atom.kind == "div" else mod)(inner, atom.divisor)
        else:
            part = Affine.of(atom)
        result = result + part.scaled(coefficient)
    return result


def linear_together(value: Affine, outer: Axis, inner: Axis) -> bool:
    """Whether ``outer`` and ``inner`` only appear as ``outer * inner.extent + inner``."""
    if value.coefficient(outer) != value.coefficient(inner) * inner.extent:
        return False
    return all(
        linear_together(atom.inner, outer, inner)
        for atom, _ in value.terms
        if isinstance(atom, Part)
    )
