"""Sums of products of views, without storing the products."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from plait.dtypes import Array


def sum_of_products(lhs: Array, rhs: Array, axes: Sequence[int]) -> Array:
    """``(lhs * rhs).sum(axes)`` for operands of one shape, as a contraction.

    Axes along which an operand repeats (stride 0) are left out of it, so that a product of
    expanded views becomes a matrix product.
    """
    rank, reduced = lhs.ndim, set(axes)
    repeats = 1
    kept: list[list[int]] = []
    operands: list[Array] = []
    for value in (lhs, rhs):
        varies = [
            axis for axis in range(rank) if value.strides[axis] != 0 and value.shape[axis] != 1
        ]
        kept.append(varies)
        operands.append(value[tuple(slice(None) if k in varies else 0 for k in range(rank))])
    used = set(kept[0]) | set(kept[1])
    for axis in reduced - used:
        repeats *= lhs.shape[axis]
    output = [axis for axis in range(rank) if axis not in reduced and axis in used]
    terms = ["".join(ascii_letters[axis] for axis in varies) for varies in (*kept, output)]
    result = np.einsum(f"{terms[0]},{terms[1]}->{terms[2]}", *operands, optimize=True)
    shape = [1 if axis not in used else lhs.shape[axis] for axis in range(rank)]
    shape = [extent for axis, extent in enumerate(shape) if axis not in reduced]
    full = [extent for axis, extent in enumerate(lhs.shape) if axis not in reduced]
    result = np.asarray(result).reshape(shape) * result.dtype.type(repeats)
    return np.broadcast_to(result, full)
