"""Element types of PyTorch as those of plait, and PyTorch's rules of promotion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from plait.dtypes import TYPE_OF_NAME, ElementType
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError, prims, torch

Number = bool | int | float


def dtype_name(dtype: Any) -> str:
    """``torch.float32`` as ``float32``; complex and quantised types are unsupported."""
    name = str(dtype).removeprefix("torch.")
    if name not in TYPE_OF_NAME:
        raise UnsupportedError(f"element type {name}")
    return name


def element(dtype: Any) -> ElementType:
    """The element type of a ``torch.dtype``."""
    return TYPE_OF_NAME[dtype_name(dtype)]


def torch_dtype(tensor: Tensor) -> Any:
    """The ``torch.dtype`` of a tensor."""
    return getattr(torch, tensor.dtype)


@cache
def _probe(dtype: str, axes: bool) -> Any:
    """A tensor that promotes as one of this type, with axes or without, does."""
    return torch.empty((1,) if axes else (), dtype=getattr(torch, dtype), device="meta")


def promotion(args: Sequence[Tensor | Number], kind: str) -> tuple[str, str]:
    """The types that an element-wise operator computes in and returns.

    ``kind`` is one of PyTorch's ``ELEMENTWISE_TYPE_PROMOTION_KIND``. Tensors without axes and
    numbers only change the category of the others; 16-bit floats are computed in float32.
    """
    probes = [_probe(a.dtype, bool(a.shape)) if isinstance(a, Tensor) else a for a in args]
    chosen = prims.ELEMENTWISE_TYPE_PROMOTION_KIND[kind]
    computed, result = prims.elementwise_dtypes(*probes, type_promotion_kind=chosen)
    return dtype_name(computed), dtype_name(result)
