"""Canonical forms of ``lazy`` operations: chains of movement operations become one."""

from __future__ import annotations

from typing import Any, cast

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from plait.dialects import lazy
from plait.dialects.lazy import shape_of


def patterns_of(cls: type[lazy.LazyOp]) -> tuple[RewritePattern, ...]:
    """The canonicalization patterns of an operation class."""
    return _PATTERNS.get(cls, ())


def _ints(attribute: object) -> tuple[int, ...]:
    return tuple(cast(Any, attribute).get_values())


class _Pattern(RewritePattern):
    """Replaces an operation by the one that :meth:`replacement` makes of it."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        new = self.replacement(op)
        if new is not None:
            new.results[0].name_hint = op.results[0].name_hint
            rewriter.replace(op, new)

    def replacement(self, op: Operation) -> Operation | None:
        raise AssertionError("a pattern makes replacements")


class ReshapeOfReshape(_Pattern):
    """`reshape(reshape(x))` is one reshape of x."""

    def replacement(self, op: Operation) -> Operation | None:
        if isinstance(op, lazy.ReshapeOp) and isinstance(op.operand.owner, lazy.ReshapeOp):
            return lazy.ReshapeOp(op.operand.owner.operand, shape_of(op.result))
        return None


class PermuteOfPermute(_Pattern):
    """`permute(permute(x, p), q)` is `permute(x, p[q])`."""

    def replacement(self, op: Operation) -> Operation | None:
        if isinstance(op, lazy.PermuteOp) and isinstance(op.operand.owner, lazy.PermuteOp):
            inner = _ints(op.operand.owner.permutation)
            order = [inner[axis] for axis in _ints(op.permutation)]
            return lazy.PermuteOp(op.operand.owner.operand, order)
        return None


class PermuteOfOnes(_Pattern):
    """A permute that keeps the order of the axes longer than 1 is a reshape."""

    def replacement(self, op: Operation) -> Operation | None:
        if not isinstance(op, lazy.PermuteOp):
            return None
        extents = shape_of(op.operand)
        moved = [axis for axis in _ints(op.permutation) if extents[axis] != 1]
        if moved == sorted(moved):
            return lazy.ReshapeOp(op.operand, shape_of(op.result))
        return None


class ExpandOfExpand(_Pattern):
    """`expand(expand(x))` is one expand of x."""

    def replacement(self, op: Operation) -> Operation | None:
        if isinstance(op, lazy.ExpandOp) and isinstance(op.operand.owner, lazy.ExpandOp):
            return lazy.ExpandOp(op.operand.owner.operand, shape_of(op.result))
        return None


class SliceOfSlice(_Pattern):
    """Starts add up and steps multiply."""

    def replacement(self, op: Operation) -> Operation | None:
        if not (isinstance(op, lazy.SliceOp) and isinstance(op.operand.owner, lazy.SliceOp)):
            return None
        inner = op.operand.owner
        starts: list[int] = []
        stops: list[int] = []
        steps: list[int] = []
        for a, s, b, t, extent in zip(
            _ints(inner.starts),
            _ints(inner.steps),
            _ints(op.starts),
            _ints(op.steps),
            shape_of(op.result),
            strict=True,
        ):
            start = a + b * s
            starts.append(start if extent else 0)
            stops.append(start + (extent - 1) * s * t + 1 if extent else 0)
            steps.append(s * t)
        return lazy.SliceOp(inner.operand, starts, stops, steps)


class FlipOfFlip(_Pattern):
    """Axes flipped twice are not flipped."""

    def replacement(self, op: Operation) -> Operation | None:
        if isinstance(op, lazy.FlipOp) and isinstance(op.operand.owner, lazy.FlipOp):
            axes = set(_ints(op.axes)) ^ set(_ints(op.operand.owner.axes))
            return lazy.FlipOp(op.operand.owner.operand, sorted(axes))
        return None


class PadOfPad(_Pattern):
    """Pads with one value and no interior add up."""

    def replacement(self, op: Operation) -> Operation | None:
        if not (isinstance(op, lazy.PadOp) and isinstance(op.operand.owner, lazy.PadOp)):
            return None
        inner = op.operand.owner
        if op.value != inner.value or any(_ints(op.interior)):
            return None
        low = [a + b for a, b in zip(_ints(op.low), _ints(inner.low), strict=True)]
        high = [a + b for a, b in zip(_ints(op.high), _ints(inner.high), strict=True)]
        value = cast(Any, op.value)
        return lazy.PadOp(inner.operand, low, high, _ints(inner.interior), value)


class ReduceOfOnes(_Pattern):
    """Reducing axes of extent 1 only is a reshape."""

    def replacement(self, op: Operation) -> Operation | None:
        if not isinstance(op, lazy.ReduceOp):
            return None
        extents = shape_of(op.operand)
        if all(extents[axis] == 1 for axis in _ints(op.axes)):
            return lazy.ReshapeOp(op.operand, shape_of(op.result))
        return None


class ConstantToTheRight(_Pattern):
    """Commutative operations take their constant on the right."""

    def replacement(self, op: Operation) -> Operation | None:
        if (
            isinstance(op, lazy.BinaryOp)
            and op.COMMUTATIVE
            and isinstance(op.lhs.owner, lazy.ConstantOp)
            and not isinstance(op.rhs.owner, lazy.ConstantOp)
        ):
            return op.__class__(op.rhs, op.lhs)
        return None


_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    lazy.ReshapeOp: (ReshapeOfReshape(),),
    lazy.PermuteOp: (PermuteOfPermute(), PermuteOfOnes()),
    lazy.ExpandOp: (ExpandOfExpand(),),
    lazy.SliceOp: (SliceOfSlice(),),
    lazy.FlipOp: (FlipOfFlip(),),
    lazy.PadOp: (PadOfPad(),),
    lazy.ReduceOp: (ReduceOfOnes(),),
    **{
        op: (ConstantToTheRight(),)
        for op in lazy.Lazy.operations
        if issubclass(op, lazy.BinaryOp) and op.COMMUTATIVE
    },
}
