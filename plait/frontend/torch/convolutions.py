"""Convolutions and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.reductions import accumulated
from plait.frontend.torch.table import lowers
from plait.nn.conv import conv, conv_transpose, convolve, transposed, weight_gradient


def _checked(x: Tensor, weight: Tensor) -> int:
    """The number of spatial axes."""
    rank = weight.ndim - 2
    if x.ndim != weight.ndim or not x.is_floating or not all((*x.shape, *weight.shape)):
        raise UnsupportedError("a convolution without a batch, of integers, or of nothing")
    return rank


def full(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """One number for each axis."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)


@lowers("convolution")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    rank = _checked(x, weight)
    strides, pads, steps, extra = (
        full(v, rank) for v in (stride, padding, dilation, output_padding)
    )
    a, w = accumulated(x), accumulated(weight)
    b = None if bias is None else accumulated(bias)
    if is_transposed:
        made = conv_transpose(a, w, b, strides, pads, extra, groups, steps, rank)
    else:
        made = conv(a, w, b, strides, pads, steps, groups, rank)
    return made.cast(x.element)


@lowers("convolution_backward")
def convolution_backward(
    g: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    rank = _checked(x, weight)
    strides, pads, steps = (full(v, rank) for v in (stride, padding, dilation))
    a, w, grad = accumulated(x), accumulated(weight), accumulated(g)
    kernel = weight.shape[2:]
    around = [0, 0, *pads]
    if is_transposed:
        padded = grad.pad_axes(around, around)
        forward = convolve(padded, w, strides, steps, groups)
        to_x = forward.shrink([None, None, *((0, n) for n in x.shape[2:])])
        to_weight = weight_gradient(padded, a, kernel, strides, steps, groups)
    else:
        to_x = transposed(grad, w, x.shape[2:], strides, pads, steps, groups)
        padded = a.pad_axes(around, around)
        to_weight = weight_gradient(padded, grad, kernel, strides, steps, groups)
    to_bias = grad.sum([0, *range(2, 2 + rank)])
    made = (to_x.cast(x.element), to_weight.cast(weight.element), to_bias.cast(g.element))
    return tuple(each if wanted else None for each, wanted in zip(made, output_mask, strict=True))
