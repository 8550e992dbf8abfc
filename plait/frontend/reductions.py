"""Reductions and scans of tensors, and what is made of them: softmax, products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from plait.dialects import lazy
from plait.dialects.lazy import ints
from plait.dtypes import is_bool, is_float, type_of_name
from plait.errors import PlaitError
from plait.frontend.elementwise import Elementwise, broadcast_shape
from plait.frontend.node import i64_attr

Axes = int | Sequence[int] | None


class Reductions(Elementwise):
    """Methods that combine elements."""

    __slots__ = ()

    def reduce(self, kind: lazy.ReduceKind, axis: Axes, keepdim: bool) -> Self:
        """Combines along axes, all of them for None; ``keepdim`` leaves them with extent 1."""
        axes = tuple(sorted(self.axes(axis)))
        kept = [extent for k, extent in enumerate(self.shape) if k not in axes]
        result = self
        if axes:
            attr = lazy.ReduceKindAttr(kind)
            result = self.make(lazy.ReduceOp, [self], tuple(kept), kind=attr, axes=ints(axes))
        if not keepdim:
            return result
        return result.reshape([1 if k in axes else e for k, e in enumerate(self.shape)])

    def sum(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Sum; booleans and narrow integers are summed as int64."""
        return self._summable().reduce(lazy.ReduceKind.SUM, axis, keepdim)

    def prod(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Product; booleans and narrow integers are multiplied as int64."""
        return self._summable().reduce(lazy.ReduceKind.PROD, axis, keepdim)

    def _summable(self) -> Self:
        return self if is_float(self.element) else self.cast("int64")

    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        return self._extreme(lazy.ReduceKind.MAX, axis, keepdim)

    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        return self._extreme(lazy.ReduceKind.MIN, axis, keepdim)

    amax, amin = max, min

    def _extreme(self, kind: lazy.ReduceKind, axis: Axes, keepdim: bool) -> Self:
        if is_bool(self.element):
            logical = {lazy.ReduceKind.MAX: lazy.ReduceKind.ANY}.get(kind, lazy.ReduceKind.ALL)
            return self.reduce(logical, axis, keepdim)
        return self.reduce(kind, axis, keepdim)

    def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
        return self.bool().reduce(lazy.ReduceKind.ANY, axis, keepdim)

    def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
        return self.bool().reduce(lazy.ReduceKind.ALL, axis, keepdim)

    def count_of(self, axis: Axes) -> int:
        """How many elements a reduction over axes combines."""
        return math.prod(self.shape[k] for k in self.axes(axis))

    def mean(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Mean; NaN over no elements."""
        count = self.count_of(axis)
        total = self.as_float().sum(axis, keepdim)
        return total / (float(count) if count else 0.0)

    def var(self, axis: Axes = None, correction: float = 1, keepdim: bool = False) -> Self:
        """Variance around the mean, over the number of elements less ``correction``."""
        x = self.as_float()
        centred = x - x.mean(axis, keepdim=True)
        divisor = max(self.count_of(axis) - correction, 0)
        total = (centred * centred).sum(axis, keepdim)
        return total / float(divisor)

    def std(self, axis: Axes = None, correction: float = 1, keepdim: bool = False) -> Self:
        return self.var(axis, correction, keepdim).sqrt()

    def norm(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Euclidean norm."""
        return (self * self).sum(axis, keepdim).sqrt()

    def _arg(self, op: type[lazy.LazyOp], axis: int | None, keepdim: bool) -> Self:
        if axis is None:
            return self.flatten()._arg(op, 0, False)
        axis = self.axis(axis)
        if not self.shape:
            return self.full_like(0, type_of_name("int64"))
        if not self.shape[axis]:
            raise PlaitError(f"axis {axis} of shape {self.shape} is empty: no element is extreme")
        kept = (*self.shape[:axis], *self.shape[axis + 1 :])
        found = self.make(op, [self], kept, type_of_name("int64"), axis=i64_attr(axis))
        return found.unsqueeze(axis) if keepdim else found

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Where the largest element is, the first if several; int64."""
        return self._arg(lazy.ArgmaxOp, axis, keepdim)

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Where the smallest element is, the first if several; int64."""
        return self._arg(lazy.ArgminOp, axis, keepdim)

    def scan(self, kind: lazy.ScanKind, axis: int) -> Self:
        """Running combination along an axis, inclusive."""
        if not self.shape:
            return self
        attr = lazy.ScanKindAttr(kind)
        source = self._summable() if kind in (lazy.ScanKind.SUM, lazy.ScanKind.PROD) else self
        at = i64_attr(self.axis(axis))
        return source.make(lazy.ScanOp, [source], self.shape, kind=attr, axis=at)

    def cumsum(self, axis: int) -> Self:
        return self.scan(lazy.ScanKind.SUM, axis)

    def cumprod(self, axis: int) -> Self:
        return self.scan(lazy.ScanKind.PROD, axis)

    def cummax(self, axis: int) -> Self:
        return self.scan(lazy.ScanKind.MAX, axis)

    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """log(sum(exp(x))) without overflow."""
        x = self.as_float()
        top = x.max(axis, keepdim=True).detach()
        shift = top.isfinite().where(top, 0.0)
        total = (x - shift).exp().sum(axis, keepdim=True).log() + shift
        return total if keepdim else total.squeeze(self.axes(axis)) if self.axes(axis) else total

    def softmax(self, axis: int = -1) -> Self:
        x = self.as_float()
        shifted = (x - x.max(axis, keepdim=True).detach()).exp()
        return shifted / shifted.sum(axis, keepdim=True)

    def log_softmax(self, axis: int = -1) -> Self:
        x = self.as_float()
        shifted = x - x.max(axis, keepdim=True).detach()
        return shifted - shifted.exp().sum(axis, keepdim=True).log()

    def detach(self) -> Self:
        """The same value, through which no gradient flows."""
        copy = type(self)(self.op, self.sources, self.shape, self.element, self.properties)
        if self.op is None:
            return self
        copy.vjp, copy.vjp_sources = _no_gradient, ()
        return copy

    # Products of matrices

    def matmul(self, other: Self) -> Self:
        """Matrix product over the last two axes, with broadcasting of the others; a tensor of one
        axis is a row on the left, a column on the right."""
        if not self.shape or not other.shape:
            raise PlaitError(f"matmul needs axes, found shapes {self.shape} and {other.shape}")
        a = self.unsqueeze(0) if self.ndim == 1 else self
        b = other.unsqueeze(1) if other.ndim == 1 else other
        if a.shape[-1] != b.shape[-2]:
            raise PlaitError(
                f"cannot multiply matrices of shapes {self.shape} and {other.shape}: the last axis "
                f"of the first ({a.shape[-1]}) and the second to last of the second "
                f"({b.shape[-2]}) differ"
            )
        lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
        rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
        full = (*lead, rows, columns, inner)
        left = a.unsqueeze(-2).expand(full)
        right = b.mT.unsqueeze(-3).expand(full)
        product = (left * right).sum(-1)
        if self.ndim == 1:
            product = product.squeeze(-2)
        return product.squeeze(-1) if other.ndim == 1 else product

    dot = matmul

    def __matmul__(self, other: Self) -> Self:
        return self.matmul(other)

    def __rmatmul__(self, other: Self) -> Self:
        return other.matmul(self)


def _no_gradient(gradient: object) -> tuple[object, ...]:
    return ()
