"""Indexing: slices, positions, and positions given by data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np

from plait.dialects import lazy, lazy_shapes
from plait.dtypes import is_bool, is_float, type_of_name
from plait.errors import PlaitError
from plait.frontend.api import is_integer, shown
from plait.frontend.node import checked, i64_attr
from plait.frontend.reductions import Reductions

_I64 = type_of_name("int64")


class Indexing(Reductions):
    """Methods that pick elements."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Self:
        """Integers, slices (with any step), None, Ellipsis, and one integer tensor, array or list;
        raises :class:`PlaitError` for anything else, and for positions that are out of range."""
        keys = self._keys(key)
        used = sum(1 for k in keys if k is not None and k is not Ellipsis)
        if used > self.ndim:
            raise PlaitError(f"{used} indices are too many for shape {self.shape}")
        if not any(k is Ellipsis for k in keys):
            keys.append(Ellipsis)
        at = next(number for number, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (self.ndim - used)
        result, axis = self, 0
        for k in keys:
            if k is None:
                result = result.unsqueeze(axis)
                axis += 1
            elif isinstance(k, slice):
                result = result._sliced(axis, cast(Any, k))
                axis += 1
            elif isinstance(k, Indexing):
                result = result.index_select(axis, cast(Any, k))
                axis += k.ndim
            else:
                result = result._at(axis, int(k))
        return result

    def _keys(self, key: Any) -> list[Any]:
        """Indices one by one, those given by data as tensors."""
        from plait.frontend.creation import tensor

        given: list[Any] = list(cast(Any, key)) if isinstance(key, tuple) else [key]
        keys = [tensor(k) if isinstance(k, list | np.ndarray) else k for k in given]
        for k in keys:
            plain = k is None or k is Ellipsis or isinstance(k, slice | Indexing)
            if not plain and (isinstance(k, bool) or not is_integer(cast(object, k))):
                raise PlaitError(f"an index is an integer, a slice, None or ..., found {shown(k)}")
        if sum(isinstance(k, Indexing) for k in keys) > 1:
            raise PlaitError("only one index may be a tensor")
        if sum(k is Ellipsis for k in keys) > 1:
            raise PlaitError("only one index may be '...'")
        return keys

    def _at(self, axis: int, position: int) -> Self:
        extent = self.shape[axis]
        if not -extent <= position < extent:
            raise PlaitError(
                f"index {position} is out of range for axis {axis} of shape {self.shape}"
            )
        return self.narrow(axis, position % extent, 1).reshape(
            *self.shape[:axis], *self.shape[axis + 1 :]
        )

    def _sliced(self, axis: int, key: slice) -> Self:
        start, stop, step = key.indices(self.shape[axis])
        count = len(range(start, stop, step))
        if step < 0:
            last = start + (count - 1) * step
            flipped = self.flip(axis)
            offset = self.shape[axis] - 1
            if not count:
                return self.narrow(axis, 0, 0)
            return flipped._strided(axis, offset - start, offset - last + 1, -step)
        if not count:
            return self.narrow(axis, 0, 0)
        return self._strided(axis, start, start + (count - 1) * step + 1, step)

    def _strided(self, axis: int, start: int, stop: int, step: int) -> Self:
        starts, stops, steps = [0] * self.ndim, list(self.shape), [1] * self.ndim
        starts[axis], stops[axis], steps[axis] = start, stop, step
        return self.slice(starts, stops, steps)

    def wrapped(self, extent: int) -> Self:
        """Positions with negative ones counted from the end."""
        if is_float(self.element) or is_bool(self.element):
            raise PlaitError(f"positions must be integers, found {self.dtype}")
        return (self < 0).where(self + extent, self)

    def gather(self, axis: int, index: Self) -> Self:
        """``result[i] = self[i with i[axis] = index[i]]``; ``index`` may be shorter elsewhere."""
        axis = self.own_axis(axis)
        if index.ndim != self.ndim:
            raise PlaitError(f"gather from {self.shape} needs as many axes, found {index.shape}")
        bounds = [None if k == axis else (0, extent) for k, extent in enumerate(index.shape)]
        source = self.shrink(bounds)
        shape = checked(lambda: lazy_shapes.gather(source.shape, index.shape, axis))
        positions = index.wrapped(self.shape[axis])
        return source.make(lazy.GatherOp, [source, positions], shape, axis=i64_attr(axis))

    def index_select(self, axis: int, index: Self) -> Self:
        """Slices along an axis at positions; the axes of ``index`` take the axis's place."""
        axis = self.own_axis(axis)
        flat = index.flatten() if index.ndim else index.reshape(1)
        lead, trail = self.shape[:axis], self.shape[axis + 1 :]
        full = (*lead, flat.shape[0], *trail)
        spread = flat.reshape((1,) * len(lead) + flat.shape + (1,) * len(trail)).expand(full)
        return self.gather(axis, spread).reshape(*lead, *index.shape, *trail)

    def scatter_kind(self, kind: lazy.ScatterKind, axis: int, index: Self, source: Self) -> Self:
        """This tensor with ``source`` combined into positions along an axis."""
        axis = self.own_axis(axis)
        if index.shape != source.shape:
            raise PlaitError(
                f"scatter needs positions and values of one shape, found {index.shape} and "
                f"{source.shape}"
            )
        low = [0] * self.ndim
        high = [
            0 if k == axis else e - n
            for k, (e, n) in enumerate(zip(self.shape, index.shape, strict=True))
        ]
        positions = index.wrapped(self.shape[axis]).pad_axes(low, high, value=-1)
        values = source.cast(self.element).pad_axes(low, high)
        attr = lazy.ScatterKindAttr(kind)
        return self.make(
            lazy.ScatterOp, [self, positions, values], self.shape, kind=attr, axis=i64_attr(axis)
        )

    def scatter(self, axis: int, index: Self, source: Self) -> Self:
        """This tensor with ``source`` at positions along an axis; the last of several stays."""
        return self.scatter_kind(lazy.ScatterKind.SET, axis, index, source)

    def scatter_add(self, axis: int, index: Self, source: Self) -> Self:
        return self.scatter_kind(lazy.ScatterKind.ADD, axis, index, source)

    def one_hot(self, classes: int) -> Self:
        """1 at this position along a new last axis; int64."""
        spread = self.unsqueeze(-1).cast("int64")
        shape = (*self.shape, classes)
        counted = self.counting(self.ndim, _I64, shape)
        return (counted == spread.expand(shape)).cast("int64")

    def _triangle(self, lower: bool, diagonal: int) -> Self:
        rows = self.counting(self.ndim - 2, _I64, self.shape)
        columns = self.counting(self.ndim - 1, _I64, self.shape)
        kept = columns <= rows + diagonal if lower else columns >= rows + diagonal
        return kept.where(self, self.full_like(0))

    def tril(self, diagonal: int = 0) -> Self:
        """The lower triangle of the last two axes, 0 elsewhere."""
        return self._triangle(True, diagonal)

    def triu(self, diagonal: int = 0) -> Self:
        """The upper triangle of the last two axes, 0 elsewhere."""
        return self._triangle(False, diagonal)

    def stack(self, *others: Self, axis: int = 0) -> Self:
        """Joins tensors of one shape along a new axis."""
        parts: Sequence[Self] = [self, *others]
        first, *rest = [part.unsqueeze(axis) for part in parts]
        return first.cat(*rest, axis=self.axis(axis, extra=1))
