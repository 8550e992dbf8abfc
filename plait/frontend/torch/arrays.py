"""Tensors of PyTorch as numpy arrays and back, without copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.dtypes import Array
from plait.frontend.torch.api import torch


def to_array(tensor: Any) -> Array:
    """The memory of a CPU tensor; bfloat16 as bit patterns."""
    tensor = tensor.detach().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()


def to_tensor(array: Array, dtype: Any, stride: tuple[int, ...]) -> Any:
    """A tensor on the memory of an array, or a copy where it must have other strides."""
    if not array.flags.writeable or any(step < 0 for step in array.strides):
        array = array.copy()
    if dtype == torch.bfloat16:
        made = torch.from_numpy(array.view(np.int16)).view(dtype)
    else:
        made = torch.from_numpy(array)
    if made.stride() == stride:
        return made
    moved = torch.empty_strided(made.shape, stride, dtype=dtype)
    return moved.copy_(made)
