"""Gradients of movement, reductions, scans, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, cast

from plait.dialects import lazy
from plait.frontend.tensor import Tensor

Gradients = Sequence[Tensor | None]
Rule = Callable[[Tensor, Sequence[Tensor], Tensor], Gradients]
"""From a result, what it was made of and its gradient to the gradients of those."""


def _ints(y: Tensor, name: str) -> tuple[int, ...]:
    return tuple(cast(Any, y.properties[name]).get_values())


def _axis(y: Tensor) -> int:
    return cast(Any, y.properties["axis"]).value.data


def _permute(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    order = _ints(y, "permutation")
    return (g.permute(sorted(range(len(order)), key=order.__getitem__)),)


def _expand(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    grown = [k for k, (a, b) in enumerate(zip(x[0].shape, y.shape, strict=True)) if a != b]
    return (g.sum(grown, keepdim=True),)


def _pad(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    low, gaps = _ints(y, "low"), _ints(y, "interior")
    extents = x[0].shape
    stops = [
        lo + (extent - 1) * (gap + 1) + 1 if extent else lo
        for lo, gap, extent in zip(low, gaps, extents, strict=True)
    ]
    return (g.slice(low, stops, [gap + 1 for gap in gaps]),)


def _slice(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    starts, steps = _ints(y, "starts"), _ints(y, "steps")
    high: list[int] = []
    for start, step, count, extent in zip(starts, steps, y.shape, x[0].shape, strict=True):
        used = start + (count - 1) * step + 1 if count else start
        high.append(extent - used)
    return (g.pad_axes(starts, high, [step - 1 for step in steps]),)


def _window(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    """The sum over the places in a window of the gradient there, back where it came from."""
    axes, sizes = _ints(y, "axes"), _ints(y, "sizes")
    strides, dilations = _ints(y, "strides"), _ints(y, "dilations")
    rank = x[0].ndim
    total: Tensor | None = None
    for place in product(*(range(size) for size in sizes)):
        part = g
        for offset in place:
            part = part.narrow(rank, offset, 1).squeeze(rank)
        low, high, gaps = [0] * rank, [0] * rank, [0] * rank
        for axis, k, stride, dilation in zip(axes, place, strides, dilations, strict=True):
            low[axis], gaps[axis] = k * dilation, stride - 1
            spread = (part.shape[axis] - 1) * stride + 1
            high[axis] = x[0].shape[axis] - low[axis] - spread
        part = part.pad_axes(low, high, gaps)
        total = part if total is None else total + part
    return (total,)


def _concat(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    axis = _axis(y)
    return g.split([source.shape[axis] for source in x], axis)


def _reduce(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    axes, source = _ints(y, "axes"), x[0]
    kept = [1 if k in axes else extent for k, extent in enumerate(source.shape)]

    def spread(value: Tensor) -> Tensor:
        return value.reshape(kept).expand(source.shape)

    match cast(Any, y.properties["kind"]).data:
        case lazy.ReduceKind.SUM:
            return (spread(g),)
        case lazy.ReduceKind.PROD:
            return (spread(g) * _others(source, axes),)
        case _:
            hit = source == spread(y)
            share = g / hit.cast(g.element).sum(axes)
            return (hit.where(spread(share), g.full_like(0).sum()),)


def _others(x: Tensor, axes: Sequence[int]) -> Tensor:
    """For each element the product of all others along axes, right with zeros among them."""
    kept = [k for k in range(x.ndim) if k not in axes]
    order = [*kept, *axes]
    moved = x.permute(order)
    rows = moved.reshape(*(x.shape[k] for k in kept), prod(x.shape[k] for k in axes))
    ones = rows.full_like(1.0).narrow(-1, 0, min(1, rows.shape[-1]))
    if not rows.shape[-1]:
        return x
    before = ones.cat(rows.narrow(-1, 0, rows.shape[-1] - 1), axis=-1).cumprod(-1)
    tail = rows.flip(-1)
    after = ones.cat(tail.narrow(-1, 0, rows.shape[-1] - 1), axis=-1).cumprod(-1).flip(-1)
    back = sorted(range(x.ndim), key=order.__getitem__)
    return (before * after).reshape(moved.shape).permute(back)


def _scan(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    axis, source = _axis(y), x[0]

    def suffix(value: Tensor) -> Tensor:
        return value.flip(axis).cumsum(axis).flip(axis)

    kind = cast(Any, y.properties["kind"]).data
    if kind == lazy.ScanKind.SUM:
        return (suffix(g),)
    extent = source.shape[axis]
    spread = g.unsqueeze(axis)
    running = y.unsqueeze(axis)
    full = [*y.shape[:axis], extent, *y.shape[axis:]]
    own = source.unsqueeze(axis + 1).expand(full)
    i64 = source.counting(axis, _I64(), tuple(full))
    reaches = source.counting(axis + 1, _I64(), tuple(full)) >= i64
    zero = g.full_like(0).sum()
    if kind == lazy.ScanKind.PROD:
        # d y_j / d x_i for i <= j is the product of x_0..x_j without x_i.
        masked = source.unsqueeze(axis).expand(full)
        without = (source.counting(axis + 1, _I64(), tuple(full)) == i64).where(1.0, masked)
        part = without.cumprod(axis + 1) * spread.expand(full)
        return (reaches.where(part, zero).sum(axis + 1),)
    hit = reaches & (own == running.expand(full))
    first = hit & (hit.cast("int64").cumsum(axis) == 1)
    return (first.where(spread.expand(full), zero).sum(axis + 1),)


def _I64() -> Any:
    from plait.dtypes import type_of_name

    return type_of_name("int64")


def _gather(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    axis, (source, positions) = _axis(y), x
    zeros = source.full_like(0.0)
    return zeros.scatter_add(axis, positions.clamp(0, max(source.shape[axis] - 1, 0)), g), None


def _scatter(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    axis, (destination, positions, updates) = _axis(y), x
    extent = destination.shape[axis]
    inside = (positions >= 0) & (positions < extent)
    zero = g.full_like(0).sum()
    taken = inside.where(g.gather(axis, positions.clamp(0, max(extent - 1, 0))), zero)
    kind = cast(Any, y.properties["kind"]).data
    if kind == lazy.ScatterKind.ADD:
        return g, None, taken
    if kind == lazy.ScatterKind.SET:
        # Only the last update of a position counts.
        number = positions.counting(axis, _I64(), positions.shape)
        last = destination.full_like(-1, _I64()).scatter_kind(
            lazy.ScatterKind.MAX, axis, positions, number
        )
        at = last.gather(axis, positions.clamp(0, max(extent - 1, 0)))
        return (last < 0).where(g, zero), None, (at == number).where(taken, zero)
    winner = y.gather(axis, positions.clamp(0, max(extent - 1, 0)))
    hit = inside & (winner == updates)
    return (destination == y).where(g, zero), None, hit.where(taken, zero)


STRUCTURE: dict[type[lazy.LazyOp], Rule] = {
    lazy.ReshapeOp: lambda y, x, g: (g.reshape(x[0].shape),),
    lazy.PermuteOp: _permute,
    lazy.ExpandOp: _expand,
    lazy.PadOp: _pad,
    lazy.SliceOp: _slice,
    lazy.FlipOp: lambda y, x, g: (g.flip(_ints(y, "axes")),),
    lazy.WindowOp: _window,
    lazy.ConcatOp: _concat,
    lazy.ReduceOp: _reduce,
    lazy.ScanOp: _scan,
    lazy.GatherOp: _gather,
    lazy.ScatterOp: _scatter,
}
