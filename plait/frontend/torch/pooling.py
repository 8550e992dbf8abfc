"""Pooling and upsampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plait.dtypes import type_of_name
from plait.frontend.grad import grad
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.convolutions import full
from plait.frontend.torch.reductions import accumulated
from plait.frontend.torch.table import lowers
from plait.nn.pool import adaptive_avg_pool, avg_pool, windows_of

Sizes = Sequence[int]
_I64 = type_of_name("int64")


def linear_gradient(function: Callable[[Tensor], Tensor], like: Tensor, g: Tensor) -> Tensor:
    """The gradient of a linear function, which needs no values of its argument."""
    wide = Tensor(None, (), like.shape, accumulated(like).element)
    made = grad(function(wide), [wide], g.cast(wide.element))[0]
    return made.cast(like.element)


def _window(kernel_size: Sizes, stride: Sizes, padding: Sizes, rank: int) -> tuple[Sizes, ...]:
    sizes = full(kernel_size, rank)
    return sizes, full(stride, rank) if stride else sizes, full(padding, rank)


def _max_pool(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    rank: int,
) -> tuple[Tensor, Tensor]:
    if not x.is_floating or not x.size:
        raise UnsupportedError("pooling of integers, or of nothing")
    sizes, strides, pads = _window(kernel_size, stride, padding, rank)
    steps = full(dilation, rank)
    windows = windows_of(x, sizes, strides, pads, steps, -math.inf, ceil_mode)
    places = windows.flatten(windows.ndim - rank)
    found = places.argmax(-1)
    lead = x.ndim - rank
    at = found.full_like(0)
    left = found
    offsets: list[Tensor] = []
    for size in reversed(sizes):
        offsets.insert(0, left % size)
        left = left // size
    for k in range(rank):
        start = found.counting(lead + k, _I64, found.shape) * strides[k] - pads[k]
        first = ((-start).maximum(0) + (steps[k] - 1)) // steps[k]
        at = at * x.shape[lead + k] + start + offsets[k].maximum(first) * steps[k]
    return places.max(-1), at


@lowers("max_pool2d_with_indices")
def max_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    dilation: Sizes = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    return _max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, 2)


@lowers("max_pool3d_with_indices")
def max_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    dilation: Sizes = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    return _max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, 3)


@lowers("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward")
def max_pool_backward(
    g: Tensor,
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    if len(kernel_size) == 1:
        raise UnsupportedError("one size for all axes")
    first = x.ndim - len(kernel_size)
    lead, area = math.prod(x.shape[:first]), math.prod(x.shape[first:])
    values = accumulated(g).reshape(lead, -1)
    zero = Tensor.constant(0, values.element, (lead, area))
    made = zero.scatter_add(1, indices.reshape(values.shape), values)
    return made.reshape(x.shape).cast(x.element)


@lowers("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool_(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    if not x.is_floating or not x.size:
        raise UnsupportedError("pooling of integers, or of nothing")
    rank = len(kernel_size)
    sizes, strides, pads = _window(kernel_size, stride, padding, rank)
    if divisor_override is not None:
        ones = (1,) * rank
        windows = windows_of(accumulated(x), sizes, strides, pads, ones, 0.0, ceil_mode)
        return (windows.sum(list(range(-rank, 0))) / divisor_override).cast(x.element)
    pooled = avg_pool(accumulated(x), sizes, strides, pads, ceil_mode, count_include_pad, rank)
    return pooled.cast(x.element)


@lowers("avg_pool2d_backward")
def avg_pool2d_backward(g: Tensor, x: Tensor, *options: Any) -> Tensor:
    return linear_gradient(lambda y: avg_pool_(y, *options), x, g)


@lowers("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    if not x.size or 0 in output_size:
        raise UnsupportedError("pooling of nothing")
    return adaptive_avg_pool(accumulated(x), full(output_size, 2), 2).cast(x.element)


@lowers("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(g: Tensor, x: Tensor) -> Tensor:
    return linear_gradient(lambda y: adaptive_avg_pool2d(y, g.shape[-2:]), x, g)
