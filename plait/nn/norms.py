"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence

from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.tensor import Tensor


def affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[int]) -> Tensor:
    """``x * weight + bias``, both viewed as ``shape``."""
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def normalised(x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    """``x`` with mean 0 and variance 1 along axes."""
    centred = x - x.mean(axes, keepdim=True)
    variance = (centred * centred).mean(axes, keepdim=True)
    return centred * (variance + eps).rsqrt()


def last_axes(x: Tensor, shape: int | Sequence[int]) -> tuple[list[int], list[int]]:
    """The shape that a norm is over, and its axes; raises :class:`PlaitError` if ``x`` does not end
    in it."""
    last = list(shape) if isinstance(shape, Sequence) else [shape]
    if len(last) > x.ndim or list(x.shape[x.ndim - len(last) :]) != last:
        raise PlaitError(f"normalized_shape {tuple(last)} does not end shape {x.shape}")
    return last, list(range(x.ndim - len(last), x.ndim))


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    eps: float = 1e-5,
) -> Tensor:
    """Batch normalisation of (N, C, ...) (Ioffe and Szegedy, 2015): by the batch's statistics when
    training, else by the running ones."""
    x.require_axes(2)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    if training:
        axes = [k for k in range(x.ndim) if k != 1]
        return affine(normalised(x, axes, eps), weight, bias, shape)
    if running_mean is None or running_var is None:
        raise PlaitError("batch_norm without training=True needs running_mean and running_var")
    scaled = (x - running_mean.reshape(shape)) * (running_var.reshape(shape) + eps).rsqrt()
    return affine(scaled, weight, bias, shape)


def batch_norm_stats(
    x: Tensor, running_mean: Tensor, running_var: Tensor, momentum: float = 0.1
) -> tuple[Tensor, Tensor]:
    """The running mean and (unbiased) variance after a batch (N, C, ...)."""
    x.require_axes(2)
    axes = [k for k in range(x.ndim) if k != 1]
    mean, var = x.mean(axes), x.var(axes)
    return (
        running_mean * (1 - momentum) + mean * momentum,
        running_var * (1 - momentum) + var * momentum,
    )


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Layer normalisation over the last axes (Ba et al., 2016)."""
    shape, axes = last_axes(x, normalized_shape)
    return affine(normalised(x, axes, eps), weight, bias, shape)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Group normalisation of (N, C, ...) (Wu and He, 2018)."""
    x.require_axes(2)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise PlaitError(f"{num_groups} groups do not divide the channels of shape {x.shape}")
    split = x.reshape(x.shape[0], num_groups, -1)
    scaled = normalised(split, [2], eps).reshape(x.shape)
    return affine(scaled, weight, bias, (1, -1, *(1,) * (x.ndim - 2)))


def instance_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Instance normalisation of (N, C, ...)."""
    x.require_axes(2)
    scaled = normalised(x, list(range(2, x.ndim)), eps)
    return affine(scaled, weight, bias, (1, -1, *(1,) * (x.ndim - 2)))


def rms_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float = 1e-6,
) -> Tensor:
    """Normalisation by the root mean square over the last axes (Zhang and Sennrich, 2019)."""
    shape, axes = last_axes(x, normalized_shape)
    scaled = x * ((x * x).mean(axes, keepdim=True) + eps).rsqrt()
    return affine(scaled, weight, None, shape)


make_public(globals())
