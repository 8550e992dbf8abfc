"""Pooling: reductions of sliding windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plait.dtypes import type_of_name
from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.tensor import Tensor
from plait.nn.conv import Sizes, as_composite, per_axis

LARGEST_COUNT = 4096
"""Pieces of different extents along an axis; each is a slice of its own in the program."""


def windows_of(
    x: Tensor,
    sizes: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    value: float,
    ceil_mode: bool = False,
) -> Tensor:
    """Windows over the last axes of ``x``, padded with ``value``."""
    rank = len(sizes)
    x.require_axes(rank)
    lead = x.ndim - rank
    high = list(padding)
    if ceil_mode:
        for k, extent in enumerate(x.shape[lead:]):
            span = (sizes[k] - 1) * dilations[k] + 1
            total = extent + 2 * padding[k]
            count = -(-(total - span) // strides[k]) + 1
            if (count - 1) * strides[k] >= extent + padding[k]:
                count -= 1
            high[k] += max((count - 1) * strides[k] + span - total, 0)
    padded = x.pad_axes([0] * lead + list(padding), [0] * lead + high, value=value)
    return padded.window(range(lead, x.ndim), sizes, strides, dilations)


def max_pool(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    rank: int,
) -> Tensor:
    """The largest element of each window; the gradient goes to the first one."""
    sizes = per_axis(kernel_size, rank, "kernel_size")
    strides = sizes if stride is None else per_axis(stride, rank, "stride")
    pads, steps = per_axis(padding, rank, "padding"), per_axis(dilation, rank, "dilation")
    windows = windows_of(x, sizes, strides, pads, steps, -math.inf, ceil_mode)
    places = windows.flatten(windows.ndim - rank)
    result = places.max(-1)

    def gradients(g: Tensor) -> Sequence[Tensor]:
        from plait.frontend.grad import grad

        first = places.argmax(-1, keepdim=True).expand(places.shape)
        at = places.counting(places.ndim - 1, type_of_name("int64"), places.shape)
        spread = g.unsqueeze(-1).expand(places.shape)
        share = (first == at).where(spread, g.full_like(0).sum())
        return grad(places, [x], share)

    return as_composite(result, (x,), gradients)


def avg_pool(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    rank: int,
) -> Tensor:
    """The mean of each window."""
    sizes = per_axis(kernel_size, rank, "kernel_size")
    strides = sizes if stride is None else per_axis(stride, rank, "stride")
    pads, ones = per_axis(padding, rank, "padding"), (1,) * rank
    axes = list(range(-rank, 0))
    total = windows_of(x, sizes, strides, pads, ones, 0.0, ceil_mode).sum(axes)
    if (not any(pads) and not ceil_mode) or (count_include_pad and not ceil_mode):
        return total * (1.0 / math.prod(sizes))
    counted = x.full_like(1.0)
    if count_include_pad:
        lead = x.ndim - rank
        around = [0] * lead + list(pads)
        counted = counted.pad_axes(around, around, value=1.0)
        pads = (0,) * rank
    count = windows_of(counted, sizes, strides, pads, ones, 0.0, ceil_mode).sum(axes)
    return total / count


def adaptive_avg_pool(x: Tensor, output_size: Sizes, rank: int) -> Tensor:
    """The means of ``output_size`` near-equal pieces along each of the last axes."""
    sizes = per_axis(output_size, rank, "output_size")
    x.require_axes(rank)
    for k, size in enumerate(sizes):
        axis = x.ndim - rank + k
        extent = x.shape[axis]
        if extent % size == 0:
            x = x.unflatten(axis, (size, extent // size)).mean(axis + 1)
            continue
        if size > LARGEST_COUNT:
            raise PlaitError(f"'output_size' takes up to {LARGEST_COUNT} pieces, found {size}")
        pieces = [
            x.narrow(axis, i * extent // size, -(-(i + 1) * extent // size) - i * extent // size)
            for i in range(size)
        ]
        first, *rest = [piece.mean(axis, keepdim=True) for piece in pieces]
        x = first.cat(*rest, axis=axis)
    return x


make_public(globals())
