"""Convolutions as sums over products of sliding windows, with gradients that are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.tensor import Tensor

Sizes = int | Sequence[int]


def per_axis(value: Sizes, count: int, name: str) -> tuple[int, ...]:
    """One number for every spatial axis, or one for each."""
    values = tuple(value) if isinstance(value, Sequence) else (value,) * count
    if len(values) != count:
        raise PlaitError(f"'{name}' takes one number or {count}, found {values}")
    least = 0 if "padding" in name else 1
    if not all(least <= each < 2**31 for each in values):
        raise PlaitError(f"'{name}' takes numbers of {least} or more in 31 bits, found {values}")
    return values


def convolve(
    x: Tensor, weight: Tensor, strides: Sequence[int], dilations: Sequence[int], groups: int
) -> Tensor:
    """``x`` (N, C, *S), already padded, with ``weight`` (O, C / groups, *K): (N, O, *out)."""
    batch, channels, out = x.shape[0], x.shape[1], weight.shape[0]
    kernel = weight.shape[2:]
    rank = len(kernel)
    windows = x.window(range(2, 2 + rank), kernel, strides, dilations)
    spatial = windows.shape[2 : 2 + rank]
    each, made = channels // groups, out // groups
    # (N, g, C/g, *out, *K) -> (N, g, 1, *out, C/g, *K)
    split = windows.reshape(batch, groups, each, *spatial, *kernel)
    order = [0, 1, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)]
    moved = split.permute(order).unsqueeze(2)
    full = (batch, groups, made, *spatial, each, *kernel)
    ones = (1,) * rank
    spread = weight.reshape(1, groups, made, *ones, each, *kernel).expand(full)
    axes = range(3 + rank, 4 + 2 * rank)
    total = (moved.expand(full) * spread).sum(list(axes))
    return total.reshape(batch, out, *spatial)


def transposed(
    g: Tensor,
    weight: Tensor,
    spatial: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> Tensor:
    """The input gradient of a convolution with these parameters: a convolution of ``g``, spread by
    the stride, with the flipped weights. ``spatial`` are the extents of the input."""
    kernel = weight.shape[2:]
    low, high = [0, 0], [0, 0]
    for extent, out, size, stride, pad, dilation in zip(
        spatial, g.shape[2:], kernel, strides, padding, dilations, strict=True
    ):
        reach = (size - 1) * dilation
        low.append(reach - pad)
        high.append(extent + pad - (out - 1) * stride - 1)
    gaps = [0, 0, *(stride - 1 for stride in strides)]
    spread = g.pad_axes(low, high, gaps)
    out, each = weight.shape[:2]
    swapped = weight.reshape(groups, out // groups, each, *kernel).transpose(1, 2)
    flipped = swapped.reshape(groups * each, out // groups, *kernel).flip(
        list(range(2, 2 + len(kernel)))
    )
    return convolve(spread, flipped, (1,) * len(kernel), dilations, groups)


def weight_gradient(
    x: Tensor,
    g: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> Tensor:
    """The weight gradient: windows of the padded input as large as the output, by the gradient."""
    batch, channels, rank = x.shape[0], x.shape[1], len(kernel)
    out, spatial = g.shape[1], g.shape[2:]
    windows = x.window(range(2, 2 + rank), spatial, dilations, strides)
    for axis, size in enumerate(kernel):
        windows = windows.narrow(2 + axis, 0, size)
    each, made = channels // groups, out // groups
    split = windows.reshape(batch, groups, each, *kernel, *spatial)
    # (N, g, C/g, *K, *out) -> (g, 1, C/g, *K, N, *out)
    order = [1, 2, *range(3, 3 + rank), 0, *range(3 + rank, 3 + 2 * rank)]
    moved = split.permute(order).unsqueeze(1)
    full = (groups, made, each, *kernel, batch, *spatial)
    ones = (1,) * rank
    spread = g.reshape(batch, groups, made, *spatial).permute(1, 2, 0, *range(3, 3 + rank))
    spread = spread.reshape(groups, made, 1, *ones, batch, *spatial).expand(full)
    axes = range(3 + rank, 4 + 2 * rank)
    return (moved.expand(full) * spread).sum(list(axes)).reshape(out, each, *kernel)


def check(x: Tensor, weight: Tensor, groups: int, rank: int) -> None:
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise PlaitError(
            f"a {rank}-d convolution takes an input and a weight of {rank + 2} axes, found shapes "
            f"{x.shape} and {weight.shape}"
        )
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise PlaitError(
            f"channels do not match: input {x.shape}, weight {weight.shape}, {groups} groups"
        )


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
    rank: int,
) -> Tensor:
    """A convolution over the last ``rank`` axes."""
    check(x, weight, groups, rank)
    strides, dilations = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    kernel = weight.shape[2:]
    if padding == "same":
        total = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
        low, high = [t // 2 for t in total], [t - t // 2 for t in total]
    else:
        given: Any = 0 if padding == "valid" else padding
        low = high = list(per_axis(cast(Sizes, given), rank, "padding"))
    padded = x.pad_axes([0, 0, *low], [0, 0, *high])
    result = convolve(padded, weight, strides, dilations, groups)

    def gradients(g: Tensor) -> Sequence[Tensor]:
        back = transposed(g, weight, x.shape[2:], strides, low, dilations, groups)
        return back, weight_gradient(padded, g, kernel, strides, dilations, groups)

    result = as_composite(result, (x, weight), gradients)
    return result if bias is None else result + bias.reshape(1, -1, *(1,) * rank)


def as_composite(result: Tensor, sources: Sequence[Tensor], gradients: Any) -> Tensor:
    """A copy of ``result`` that has gradients of its own with respect to ``sources``."""
    copy = Tensor(result.op, result.sources, result.shape, result.element, result.properties)
    copy.vjp, copy.vjp_sources = gradients, tuple(sources)
    return copy


def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
    rank: int,
) -> Tensor:
    """A transposed convolution; ``weight`` is (C, O / groups, *K), as in PyTorch."""
    strides, dilations = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    pads, extra = per_axis(padding, rank, "padding"), per_axis(output_padding, rank, "padding")
    spatial = [
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(
            x.shape[2:], strides, pads, dilations, weight.shape[2:], extra, strict=True
        )
    ]
    result = transposed(x, weight, spatial, strides, pads, dilations, groups)

    def gradients(g: Tensor) -> Sequence[Tensor]:
        padded = g.pad_axes([0, 0, *pads], [0, 0, *pads])
        forward = convolve(padded, weight, strides, dilations, groups)
        kernel = weight.shape[2:]
        forward = forward.shrink([None, None, *((0, n) for n in x.shape[2:])])
        return forward, weight_gradient(padded, x, kernel, strides, dilations, groups)

    result = as_composite(result, (x, weight), gradients)
    return result if bias is None else result + bias.reshape(1, -1, *(1,) * rank)


make_public(globals())
