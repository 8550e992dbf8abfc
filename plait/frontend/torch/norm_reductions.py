"""Norms, distances, and running extremes."""

from __future__ import annotations

import math

from plait.dialects.lazy import ScanKind
from plait.dtypes import type_of_name
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.reductions import Dims, accumulated, axes_of
from plait.frontend.torch.table import common, lowers
from plait.frontend.torch.types import Number

_I64 = type_of_name("int64")


@lowers("linalg_vector_norm", result=True)
def vector_norm(
    x: Tensor,
    ord: Number = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    result: Tensor,
    **options: object,
) -> Tensor:
    value = accumulated(x.cast(result.element)).abs()
    axes = axes_of(x, dim)
    if ord == math.inf:
        made = value.max(axes, keepdim)
    elif ord == -math.inf:
        made = value.min(axes, keepdim)
    elif ord == 0:
        made = (value != 0).cast(value.element).sum(axes, keepdim)
    elif ord == 1:
        made = value.sum(axes, keepdim)
    elif ord == 2:
        made = (value * value).sum(axes, keepdim).sqrt()
    else:
        made = value.pow(float(ord)).sum(axes, keepdim).pow(1 / ord)
    return made.cast(result.element)


@lowers("dist", result=True)
def dist(x: Tensor, y: Tensor, p: Number = 2, *, result: Tensor) -> Tensor:
    (a, b), _ = common([x, y], "DEFAULT")
    return vector_norm(a - b, p, result=result)


def _running(x: Tensor, dim: int, kind: ScanKind) -> tuple[Tensor, Tensor]:
    """Running extremes, and the last place each of them was met."""
    if x.dtype == "bool":
        raise UnsupportedError("running extremes of booleans")
    if not x.shape:
        return x, x.full_like(0, _I64)
    values = x.scan(kind, dim)
    at = x.counting(x.axis(dim), _I64, x.shape)
    met = x == values
    met = met | x.isnan() if x.is_floating else met
    return values, met.where(at, 0).scan(ScanKind.MAX, dim)


@lowers("cummax")
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running(x, dim, ScanKind.MAX)


@lowers("cummin")
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running(x, dim, ScanKind.MIN)


@lowers("round.decimals")
def round_decimals(x: Tensor, *, decimals: int = 0) -> Tensor:
    if not x.is_floating:
        raise UnsupportedError("decimals of integers")
    (value,), result = common([x], "DEFAULT")
    scale = 10.0 ** abs(decimals)
    made = (value * scale).round() / scale if decimals >= 0 else (value / scale).round() * scale
    return made.cast(result)


@lowers("ldexp.Tensor")
def ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    power = exponent.as_float().exp2()
    (a, b), result = common([x, power], "DEFAULT")
    return (a * b).cast(result)
