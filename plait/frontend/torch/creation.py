"""Tensors from nothing."""

from __future__ import annotations

from typing import Any

from plait.dtypes import type_of_name
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.table import lowers, representable
from plait.frontend.torch.types import Number


def filled(value: Any, result: Tensor) -> Tensor:
    """One number everywhere, in the shape and type of the result."""
    if not isinstance(value, int | float):
        raise UnsupportedError("a value that is no real number")
    return result.full_like(representable(value, result.dtype))


@lowers("full", "full_like", "new_full", result=True)
def full(like: Any, size: Any, value: Any = None, *, result: Tensor, **options: Any) -> Tensor:
    return filled(size if value is None else value, result)


@lowers("empty.memory_format", "empty_like", "new_empty", "empty_permuted", result=True)
@lowers("empty_strided", "new_empty_strided", result=True)
@lowers("zeros", "zeros_like", "new_zeros", result=True)
def zeros(*args: Any, result: Tensor, **options: Any) -> Tensor:
    """Also where PyTorch leaves memory as it finds it."""
    return result.full_like(0)


@lowers("ones", "ones_like", "new_ones", result=True)
def ones(*args: Any, result: Tensor, **options: Any) -> Tensor:
    return result.full_like(1)


@lowers("scalar_tensor", result=True)
def scalar_tensor(value: Any, *, result: Tensor, **options: Any) -> Tensor:
    return filled(value, result)


@lowers("arange", "arange.start", "arange.start_step", result=True)
def arange(
    start: Number,
    end: Number | None = None,
    step: Number = 1,
    *,
    result: Tensor,
    **options: Any,
) -> Tensor:
    first: Number = 0 if end is None else start
    whole = isinstance(first, int) and isinstance(step, int)
    if not whole and not result.is_floating:
        raise UnsupportedError("integers counted in fractions")
    counted = Tensor.counting(0, type_of_name("int64"), result.shape)
    counted = counted if whole else counted.cast("float64")
    return (counted * step + first).cast(result.element)


@lowers("eye", "eye.m", result=True)
def eye(*args: Any, result: Tensor, **options: Any) -> Tensor:
    from plait.frontend.creation import eye as identity

    rows, columns = result.shape
    return identity(rows, columns, dtype=result.dtype)
