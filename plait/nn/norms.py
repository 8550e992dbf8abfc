"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence

from plait.errors import PlaitError
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
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if list(x.shape[x.ndim - len(shape) :]) != shape:
        raise PlaitError(f"normalized_shape {tuple(shape)} does not end shape {x.shape}")
    axes = list(range(x.ndim - len(shape), x.ndim))
    return affine(normalised(x, axes, eps), weight, bias, shape)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Group normalisation of (N, C, ...) (Wu and He, 2018)."""
    if x.shape[1] % num_groups:
        raise PlaitError(f"{num_groups} groups do not divide the channels of shape {x.shape}")
    split = x.reshape(x.shape[0], num_groups, -1)
    scaled = normalised(split, [2], eps).reshape(x.shape)
    return affine(scaled, weight, bias, (1, -1, *(1,) * (x.ndim - 2)))


def instance_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Instance normalisation of (N, C, ...)."""
    scaled = normalised(x, list(range(2, x.ndim)), eps)
    return affine(scaled, weight, bias, (1, -1, *(1,) * (x.ndim - 2)))


def rms_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float = 1e-6,
) -> Tensor:
    """Normalisation by the root mean square over the last axes (Zhang and Sennrich, 2019)."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    axes = list(range(x.ndim - len(shape), x.ndim))
    scaled = x * ((x * x).mean(axes, keepdim=True) + eps).rsqrt()
    return affine(scaled, weight, None, shape)
