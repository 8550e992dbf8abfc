"""Movement of tensors: pure index maps, which cost nothing until something computes with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self, cast

from plait.dialects import lazy, lazy_shapes
from plait.dialects.lazy import ints
from plait.errors import PlaitError
from plait.frontend.api import is_integer, shown
from plait.frontend.node import (
    Node,
    Scalar,
    Shape,
    checked,
    extents,
    i64_attr,
    scalar_attr,
)


def flat(args: Sequence[Any]) -> tuple[int, ...]:
    """Shapes and axes may be given as one sequence or as separate arguments."""
    given: Sequence[Any] = args
    if len(args) == 1 and isinstance(args[0], Sequence) and not isinstance(args[0], str | bytes):
        given = cast(Sequence[Any], args[0])
    if not all(is_integer(each) for each in given):
        raise PlaitError(f"expected integers, found {', '.join(map(shown, args))}")
    return tuple(int(each) for each in given)


def _pair(pair: Any) -> tuple[int, int]:
    """The padding of an axis on both sides; None for none."""
    given = tuple(cast(Sequence[Any], pair)) if isinstance(pair, list | tuple) else (pair,)
    if pair is None or len(given) == 2:
        low, high = flat(given if pair is not None else (0, 0))
        return low, high
    raise PlaitError(f"padding takes a (low, high) pair or None for an axis, found {shown(pair)}")


class Movement(Node):
    """Methods that move elements."""

    __slots__ = ()

    def reshape(self, *shape: Any) -> Self:
        """The same elements in row-major order; one extent may be -1."""
        target = flat(shape)
        if target.count(-1) > 1:
            raise PlaitError(f"cannot infer more than one extent of {target}")
        if -1 in target:
            known = math.prod(extent for extent in target if extent != -1)
            if any(extent < -1 for extent in target):
                raise PlaitError(f"expected extents of 0 or more, or one -1, found {target}")
            if known == 0 or self.size % known:
                raise PlaitError(f"cannot reshape {self.shape} ({self.size} elements) to {target}")
            target = tuple(self.size // known if extent == -1 else extent for extent in target)
        shape_ = checked(lambda: lazy_shapes.reshape(self.shape, extents(target)))
        return self if shape_ == self.shape else self.make(lazy.ReshapeOp, [self], shape_)

    view = reshape

    def flatten(self, start: int = 0, end: int = -1) -> Self:
        """Joins the axes from ``start`` to ``end``, both included."""
        if not self.shape:
            return self.reshape(1)
        first, last = self.axis(start), self.axis(end)
        joined = math.prod(self.shape[first : last + 1])
        return self.reshape(*self.shape[:first], joined, *self.shape[last + 1 :])

    def unflatten(self, axis: int, sizes: Sequence[int]) -> Self:
        """Splits an axis into several."""
        axis = self.own_axis(axis)
        extent, known = self.shape[axis], math.prod(size for size in sizes if size != -1)
        inferred = list(sizes).count(-1)
        whole = known and not extent % known if inferred == 1 else known == extent and not inferred
        if not whole or any(size < -1 for size in sizes):
            raise PlaitError(
                f"cannot split axis {axis} of shape {self.shape} ({extent} elements) into "
                f"{tuple(sizes)}"
            )
        full = tuple(extent // known if size == -1 else size for size in sizes)
        return self.reshape(*self.shape[:axis], *full, *self.shape[axis + 1 :])

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Self:
        """Removes axes of extent 1: all of them, or the given ones that have it."""
        axes = set(self.axes(axis))
        return self.reshape(
            [extent for k, extent in enumerate(self.shape) if extent != 1 or k not in axes]
        )

    def unsqueeze(self, axis: int) -> Self:
        """Adds an axis of extent 1."""
        axis = self.axis(axis, extra=1)
        return self.reshape(*self.shape[:axis], 1, *self.shape[axis:])

    def permute(self, *order: Any) -> Self:
        """Axis ``k`` of the result is axis ``order[k]``."""
        order_ = self.axes(flat(order))
        shape = checked(lambda: lazy_shapes.permute(self.shape, order_))
        if order_ == tuple(range(self.ndim)):
            return self
        return self.make(lazy.PermuteOp, [self], shape, permutation=ints(order_))

    def transpose(self, first: int = 1, second: int = 0) -> Self:
        """Swaps two axes."""
        order = list(range(self.ndim))
        a, b = self.axis(first), self.axis(second)
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    @property
    def T(self) -> Self:
        """All axes reversed."""
        return self.permute(list(reversed(range(self.ndim))))

    @property
    def mT(self) -> Self:
        """The last two axes swapped."""
        return self.transpose(-1, -2)

    def expand(self, *shape: Any) -> Self:
        """Broadcasts: leading axes are added, axes of extent 1 grow; -1 keeps an extent."""
        target = flat(shape)
        if len(target) < self.ndim:
            raise PlaitError(f"cannot expand {self.shape} to {target}: it has fewer axes")
        lead = len(target) - self.ndim
        want = tuple(
            self.shape[k - lead] if extent == -1 and k >= lead else extent
            for k, extent in enumerate(target)
        )
        aligned = self.reshape((1,) * lead + self.shape)
        final = checked(lambda: lazy_shapes.expand(aligned.shape, want))
        if final == aligned.shape:
            return aligned
        return self.make(lazy.ExpandOp, [aligned], final)

    broadcast_to = expand

    def repeat(self, *times: Any) -> Self:
        """The tensor laid side by side ``times[k]`` times along axis ``k``."""
        counts = flat(times)
        lead = len(counts) - self.ndim
        if lead < 0:
            raise PlaitError(f"repeat needs a count per axis of {self.shape}, found {counts}")
        shape = (1,) * lead + self.shape
        split = [extent for each in shape for extent in (1, each)]
        full = [x for each, count in zip(shape, counts, strict=True) for x in (count, each)]
        joined = [each * count for each, count in zip(shape, counts, strict=True)]
        return self.reshape(split).expand(full).reshape(joined)

    def repeat_interleave(self, times: int, axis: int = 0) -> Self:
        """Every element ``times`` times in a row along an axis."""
        axis = self.own_axis(axis)
        moved = self.unsqueeze(axis + 1)
        full = [*moved.shape[: axis + 1], times, *moved.shape[axis + 2 :]]
        return moved.expand(full).flatten(axis, axis + 1)

    def flip(self, *axes: Any) -> Self:
        """Reverses axes."""
        flipped = self.axes(flat(axes))
        return self.make(lazy.FlipOp, [self], self.shape, axes=ints(flipped)) if flipped else self

    def slice(
        self, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int] | None = None
    ) -> Self:
        """Every ``steps[k]``-th element from ``starts[k]`` up to ``stops[k]`` along axis ``k``."""
        steps = (1,) * self.ndim if steps is None else steps
        shape = checked(lambda: lazy_shapes.slice(self.shape, starts, stops, steps))
        if shape == self.shape and all(step == 1 for step in steps):
            return self
        return self.make(
            lazy.SliceOp,
            [self],
            shape,
            starts=ints(starts),
            stops=ints(stops),
            steps=ints(steps),
        )

    def shrink(self, bounds: Sequence[tuple[int, int] | None]) -> Self:
        """The box between ``bounds[k]`` along axis ``k``; None keeps an axis."""
        full = [b or (0, extent) for b, extent in zip(bounds, self.shape, strict=True)]
        return self.slice([low for low, _ in full], [high for _, high in full])

    def narrow(self, axis: int, start: int, length: int) -> Self:
        """``length`` elements from ``start`` along one axis."""
        axis = self.own_axis(axis)
        bounds: list[tuple[int, int] | None] = [None] * self.ndim
        bounds[axis] = (start, start + length)
        return self.shrink(bounds)

    def pad_axes(
        self,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
        value: Scalar = 0,
    ) -> Self:
        """Pads every axis; negative amounts cut elements off. ``interior`` goes between
        neighbours."""
        interior = (0,) * self.ndim if interior is None else interior
        grown = self
        if any(interior) or any(x > 0 for x in (*low, *high)):
            before, after = ([max(x, 0) for x in side] for side in (low, high))
            shape = checked(lambda: lazy_shapes.pad(self.shape, before, after, interior))
            grown = self.make(
                lazy.PadOp,
                [self],
                shape,
                low=ints(before),
                high=ints(after),
                interior=ints(interior),
                value=scalar_attr(value, self.element),
            )
        starts = [max(-x, 0) for x in low]
        stops = [extent - max(-x, 0) for extent, x in zip(grown.shape, high, strict=True)]
        return grown.slice(starts, stops)

    def pad(self, padding: Sequence[Any], value: Scalar = 0) -> Self:
        """Pads the last axes: ``(left, right, top, bottom, ...)`` from the last axis on as in
        PyTorch, or a ``(low, high)`` pair for every axis as in tinygrad."""
        if padding and not isinstance(padding[0], int):
            pairs = [_pair(pair) for pair in padding]
        else:
            if len(padding) % 2 or len(padding) > 2 * self.ndim:
                raise PlaitError(
                    f"padding of shape {self.shape} takes two numbers per axis from the last on, "
                    f"found {tuple(padding)}"
                )
            given = [(padding[k], padding[k + 1]) for k in range(0, len(padding), 2)]
            pairs = [(0, 0)] * (self.ndim - len(given)) + given[::-1]
        return self.pad_axes([low for low, _ in pairs], [high for _, high in pairs], None, value)

    def window(
        self,
        axes: Sequence[int],
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
    ) -> Self:
        """Sliding windows over axes; the axes within a window come last."""
        axes = self.axes(axes)
        strides = (1,) * len(axes) if strides is None else strides
        dilations = (1,) * len(axes) if dilations is None else dilations
        shape = checked(lambda: lazy_shapes.window(self.shape, axes, sizes, strides, dilations))
        return self.make(
            lazy.WindowOp,
            [self],
            shape,
            axes=ints(axes),
            sizes=ints(sizes),
            strides=ints(strides),
            dilations=ints(dilations),
        )

    def roll(self, shift: int, axis: int = 0) -> Self:
        """Moves elements along an axis; those that leave come in at the other end."""
        axis = self.own_axis(axis)
        extent = self.shape[axis]
        shift = shift % extent if extent else 0
        if not shift:
            return self
        return self.narrow(axis, extent - shift, shift).cat(
            self.narrow(axis, 0, extent - shift), axis=axis
        )

    def cat(self, *others: Self, axis: int = 0) -> Self:
        """Joins tensors along an axis."""
        parts = [self, *others]
        axis = self.own_axis(axis)
        shape: Shape = checked(lambda: lazy_shapes.concat([p.shape for p in parts], axis))
        if len(parts) == 1:
            return self
        return self.make(lazy.ConcatOp, parts, shape, axis=i64_attr(axis))

    def split(self, sizes: int | Sequence[int], axis: int = 0) -> list[Self]:
        """Pieces of ``sizes`` along an axis; a last piece may be shorter for a single size."""
        axis = self.own_axis(axis)
        extent = self.shape[axis]
        if not isinstance(sizes, Sequence):
            if sizes < 1:
                raise PlaitError(f"split takes pieces of 1 or more elements, found {sizes}")
            sizes = [min(sizes, extent - start) for start in range(0, extent, sizes)]
        if sum(sizes) != extent or any(size < 0 for size in sizes):
            raise PlaitError(f"pieces of {list(sizes)} do not make up axis {axis} of {self.shape}")
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        return [self.narrow(axis, a, n) for a, n in zip(starts, sizes, strict=True)]

    def chunk(self, count: int, axis: int = 0) -> list[Self]:
        """At most ``count`` pieces of equal size along an axis; the last may be shorter."""
        extent = self.shape[self.own_axis(axis)]
        if count < 1:
            raise PlaitError(f"chunk makes 1 or more pieces, found {count}")
        return self.split(max(-(-extent // count), 1), axis)

    def contiguous(self) -> Self:
        """This value must exist in memory."""
        return self.make(lazy.MaterializeOp, [self], self.shape)
