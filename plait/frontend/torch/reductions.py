"""Reductions, scans, and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.table import lowers
from plait.frontend.torch.types import Number, dtype_name

Dims = int | Sequence[int] | None


def accumulated(x: Tensor) -> Tensor:
    """In the type that sums are kept in: float32 for 16-bit floats."""
    return x.cast("float32") if x.dtype in ("float16", "bfloat16") else x


def axes_of(x: Tensor, dim: Dims) -> list[int]:
    """The axes to reduce: all of them for None and for an empty list."""
    if isinstance(dim, int):
        dim = [dim]
    return list(x.axes(list(dim) if dim else None)) if x.shape else []


def typed(x: Tensor, dtype: Any) -> tuple[Tensor, str]:
    """The operand of a sum or product, and the type of the result."""
    name = dtype_name(dtype) if dtype is not None else x.dtype if x.is_floating else "int64"
    return accumulated(x.cast(name)), name


@lowers("sum", "sum.dim_IntList")
def sum_(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    value, name = typed(x, dtype)
    if name == "bool":
        raise UnsupportedError("sums of booleans as booleans")
    return value.sum(axes_of(x, dim), keepdim).cast(name)


@lowers("mean", "mean.dim")
def mean(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    value, name = typed(x, dtype)
    return value.mean(axes_of(x, dim), keepdim).cast(name)


@lowers("prod", "prod.dim_int")
def prod(x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    value, name = typed(x, dtype)
    if name == "bool":
        raise UnsupportedError("products of booleans as booleans")
    return value.prod(axes_of(x, dim), keepdim).cast(name)


@lowers("amax", "max")
def amax(x: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    return x.max(axes_of(x, dim), keepdim)


@lowers("amin", "min")
def amin(x: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    return x.min(axes_of(x, dim), keepdim)


def searchable(x: Tensor) -> Tensor:
    """Booleans as numbers, which have an order."""
    return x.cast("uint8") if x.dtype == "bool" else x


@lowers("max.dim")
def max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return amax(x, dim, keepdim), searchable(x).argmax(dim if x.shape else None, keepdim)


@lowers("min.dim")
def min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return amin(x, dim, keepdim), searchable(x).argmin(dim if x.shape else None, keepdim)


@lowers("argmax", result=True)
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False, *, result: Tensor) -> Tensor:
    found = searchable(x).argmax(dim if x.shape else None, keepdim)
    return found.reshape(result.shape)


@lowers("argmin", result=True)
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False, *, result: Tensor) -> Tensor:
    found = searchable(x).argmin(dim if x.shape else None, keepdim)
    return found.reshape(result.shape)


@lowers("any", "any.dim", "any.dims", result=True)
def any_(x: Tensor, dim: Dims = None, keepdim: bool = False, *, result: Tensor) -> Tensor:
    return (x != 0).any(axes_of(x, dim), keepdim).cast(result.dtype)


@lowers("all", "all.dim", "all.dims", result=True)
def all_(x: Tensor, dim: Dims = None, keepdim: bool = False, *, result: Tensor) -> Tensor:
    return (x != 0).all(axes_of(x, dim), keepdim).cast(result.dtype)


@lowers("var.correction")
def var(
    x: Tensor, dim: Dims = None, *, correction: Number | None = None, keepdim: bool = False
) -> Tensor:
    less = 1 if correction is None else correction
    return accumulated(x).var(axes_of(x, dim), less, keepdim).cast(x.dtype)


@lowers("std.correction")
def std(
    x: Tensor, dim: Dims = None, *, correction: Number | None = None, keepdim: bool = False
) -> Tensor:
    less = 1 if correction is None else correction
    return accumulated(x).std(axes_of(x, dim), less, keepdim).cast(x.dtype)


@lowers("var_mean.correction")
def var_mean(
    x: Tensor, dim: Dims = None, *, correction: Number | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return var(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


@lowers("cumsum")
def cumsum(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    value, name = typed(x, dtype)
    return value.cumsum(dim).cast(name)


@lowers("cumprod")
def cumprod(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    value, name = typed(x, dtype)
    return value.cumprod(dim).cast(name)


@lowers("logsumexp", result=True)
def logsumexp(x: Tensor, dim: Dims, keepdim: bool = False, *, result: Tensor) -> Tensor:
    made = accumulated(x.cast(result.dtype)).logsumexp(axes_of(x, dim), keepdim)
    return made.cast(result.dtype)


@lowers("_softmax", result=True)
def softmax(x: Tensor, dim: int, half_to_float: bool, *, result: Tensor) -> Tensor:
    return accumulated(x).softmax(dim).cast(result.dtype) if x.shape else x.full_like(1)


@lowers("_log_softmax", result=True)
def log_softmax(x: Tensor, dim: int, half_to_float: bool, *, result: Tensor) -> Tensor:
    return accumulated(x).log_softmax(dim).cast(result.dtype) if x.shape else x.full_like(0)
