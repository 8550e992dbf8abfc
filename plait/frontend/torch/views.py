"""Movement: views, copies of views, concatenation and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait.dtypes import type_of_name
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.table import lowers
from plait.frontend.torch.types import Number, dtype_name

_I64 = type_of_name("int64")


@lowers("view", "_unsafe_view", "reshape", "view_copy", "_reshape_alias", result=True)
def view(x: Tensor, size: Any, *rest: Any, result: Tensor) -> Tensor:
    return x.reshape(result.shape)


@lowers("alias", "detach", "clone", "lift_fresh_copy", "lift_fresh", "contiguous", "alias_copy")
def same(x: Tensor, **options: Any) -> Tensor:
    return x


@lowers("view.dtype")
def bits(x: Tensor, dtype: Any) -> Tensor:
    return x.bitcast(dtype_name(dtype))


@lowers("expand", "expand_copy")
def expand(x: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    return x.expand(tuple(size))


@lowers("permute", "permute_copy")
def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.permute(tuple(dims)) if x.shape else x


@lowers("t", "t_copy")
def t(x: Tensor) -> Tensor:
    return x.transpose(0, 1) if x.ndim == 2 else x


@lowers("transpose.int", "transpose_copy.int")
def transpose(x: Tensor, first: int, second: int) -> Tensor:
    return x.transpose(first, second) if x.shape else x


@lowers("squeeze", "squeeze.dim", "squeeze.dims", "squeeze_copy.dim", result=True)
def squeeze(x: Tensor, dim: Any = None, *, result: Tensor) -> Tensor:
    return x.reshape(result.shape)


@lowers("unsqueeze", "unsqueeze_copy")
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    return x.unsqueeze(dim)


def sliced(x: Tensor, dim: int, start: int | None, end: int | None, step: int) -> slice:
    """A slice as non-negative numbers within the axis."""
    first, last, _ = slice(start, end).indices(x.shape[dim])
    return slice(first, max(first, last), step)


@lowers("slice.Tensor", "slice_copy.Tensor")
def slice_(
    x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    axis = x.axis(dim)
    return x[(*[slice(None)] * axis, sliced(x, axis, start, end, step))]


@lowers("select.int", "select_copy.int")
def select(x: Tensor, dim: int, index: int) -> Tensor:
    return x[(*[slice(None)] * x.axis(dim), index)]


@lowers("narrow", "narrow_copy")
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return x.narrow(dim, start % max(x.shape[x.axis(dim)], 1), length)


@lowers("split.Tensor", "split_with_sizes", "split_with_sizes_copy", "split_copy.Tensor")
def split(x: Tensor, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(x.split(sizes if isinstance(sizes, int) else list(sizes), dim))


@lowers("unbind.int", "unbind_copy.int")
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(x, dim, k) for k in range(x.shape[x.axis(dim)]))


@lowers("unfold", "unfold_copy")
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    if not x.shape:
        raise UnsupportedError("windows of a tensor without axes")
    return x.window([dimension], [size], [step])


def square_of(x: Tensor, offset: int) -> tuple[int, int, int]:
    """Where a diagonal of the last two axes begins, and its length."""
    rows, columns = x.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    return row, column, max(min(rows - row, columns - column), 0)


def diagonal_last(x: Tensor, dim1: int, dim2: int) -> tuple[Tensor, list[int]]:
    """With the axes of a diagonal last, and the permutation that puts them there."""
    a, b = x.axis(dim1), x.axis(dim2)
    order = [k for k in range(x.ndim) if k not in (a, b)] + [a, b]
    return x.permute(order), order


@lowers("diagonal", "diagonal_copy")
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    moved, _ = diagonal_last(x, dim1, dim2)
    row, column, count = square_of(moved, offset)
    if not count:
        return moved.narrow(-1, 0, 0).reshape(*moved.shape[:-2], 0)
    square = moved.narrow(-2, row, count).narrow(-1, column, count)
    flat = square.reshape(*moved.shape[:-2], count * count)
    return flat[..., slice(0, count * count, count + 1)]


@lowers("flip")
def flip(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.flip(tuple(dims)) if x.shape else x


@lowers("roll")
def roll(x: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if not x.shape:
        return x
    if not dims:
        return x.flatten().roll(shifts[0], 0).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = x.roll(shift, dim)
    return x


@lowers("repeat")
def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    return x.repeat(tuple(repeats))


@lowers("as_strided", "as_strided_copy", result=True, contiguous=True)
def as_strided(
    x: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int | None = None,
    *,
    result: Tensor,
) -> Tensor:
    """Elements picked from memory in which ``x`` lies in row-major order."""
    start, at = offset or 0, 1
    dense = True
    for extent, step in zip(reversed(size), reversed(stride), strict=True):
        dense &= extent == 1 or step == at
        at *= extent
    flat = x.flatten()
    last = start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if last >= x.size:
        raise UnsupportedError("memory beyond the tensor's own")
    if dense:
        return flat.narrow(0, start, result.size).reshape(result.shape)
    place = Tensor.constant(start, _I64, result.shape)
    for axis, step in enumerate(stride):
        place = place + Tensor.counting(axis, _I64, result.shape) * step
    return flat.index_select(0, place)


@lowers("constant_pad_nd")
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor:
    return x.pad(tuple(pad), value)


@lowers("tril")
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    return x.tril(diagonal)


@lowers("triu")
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    return x.triu(diagonal)
