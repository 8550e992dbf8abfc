"""Functions of neural networks, named and parametrised as in PyTorch."""

from __future__ import annotations

import math

from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.creation import rand
from plait.frontend.tensor import Tensor
from plait.nn.conv import Sizes, conv, conv_transpose
from plait.nn.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from plait.nn.norms import (
    batch_norm,
    batch_norm_stats,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from plait.nn.pool import adaptive_avg_pool, avg_pool, max_pool

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "batch_norm_stats",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "group_norm",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "linear",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "tanh",
]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias`` for ``weight`` (out, in)."""
    product = x @ weight.T
    return product if bias is None else product + bias


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of (N, C, L) with (O, C / groups, K)."""
    return conv(x, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of (N, C, H, W) with (O, C / groups, KH, KW)."""
    return conv(x, weight, bias, stride, padding, dilation, groups, 2)


def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Transposed convolution of (N, C, L) with (C, O / groups, K)."""
    return conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, 1)


def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Transposed convolution of (N, C, H, W) with (C, O / groups, KH, KW)."""
    return conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, 2)


def max_pool1d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, 1)


def max_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, 2)


def avg_pool1d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    return avg_pool(x, kernel_size, stride, padding, ceil_mode, count_include_pad, 1)


def avg_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    return avg_pool(x, kernel_size, stride, padding, ceil_mode, count_include_pad, 2)


def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    return adaptive_avg_pool(x, output_size, 2)


def embedding(index: Tensor, weight: Tensor) -> Tensor:
    """Rows of ``weight`` (count, size) at positions of any shape."""
    return weight.index_select(0, index)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value over (..., length, size) (Vaswani et al.,
    2017). A mask of booleans says what takes part; one of floats is added."""
    for each in (query, key, value):
        each.require_axes(3 if enable_gqa else 2)
    if enable_gqa:
        if not key.shape[-3] or query.shape[-3] % key.shape[-3]:
            raise PlaitError(
                f"{query.shape[-3]} query heads are no multiple of {key.shape[-3]} key heads"
            )
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.mT) * scale
    if is_causal:
        kept = Tensor.constant(1, scores.element, scores.shape).tril() > 0
        scores = kept.where(scores, -math.inf)
    if attn_mask is not None:
        boolean = attn_mask.dtype == "bool"
        scores = attn_mask.where(scores, -math.inf) if boolean else scores + attn_mask
    return scores.softmax(-1) @ value


def dropout(x: Tensor, p: float = 0.5, training: bool = True, key: int | Tensor = 0) -> Tensor:
    """Zeroes elements with probability ``p`` and scales the rest; the same key, the same ones."""
    if not 0 <= p <= 1:
        raise PlaitError(f"dropout takes a probability from 0 to 1, found {p}")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    kept = rand(x.shape, key=key) >= p
    return kept.where(x * (1 / (1 - p)), 0.0)


def one_hot(index: Tensor, num_classes: int) -> Tensor:
    return index.one_hot(num_classes)


def interpolate(x: Tensor, scale_factor: int) -> Tensor:
    """Nearest-neighbour upsampling of (N, C, ...) by a whole factor."""
    for axis in range(2, x.ndim):
        x = x.repeat_interleave(scale_factor, axis)
    return x


def relu(x: Tensor) -> Tensor:
    return x.relu()


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


def silu(x: Tensor) -> Tensor:
    return x.silu()


def sigmoid(x: Tensor) -> Tensor:
    return x.sigmoid()


def tanh(x: Tensor) -> Tensor:
    return x.tanh()


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    return x.softmax(dim)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    return x.log_softmax(dim)


make_public(globals())
