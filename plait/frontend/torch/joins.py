"""Concatenation, and views written back into what they show."""

from __future__ import annotations

from collections.abc import Sequence

from plait.dtypes import type_of_name
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.table import lowers
from plait.frontend.torch.views import diagonal_last, sliced, square_of

_I64 = type_of_name("int64")


@lowers("cat", result=True)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, result: Tensor) -> Tensor:
    kept = [x for x in tensors if x.shape != (0,)]
    if not kept:
        return result.full_like(0)
    first, *rest = [x.cast(result.element) for x in kept]
    return first.cat(*rest, axis=dim)


@lowers("stack", result=True)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, result: Tensor) -> Tensor:
    first, *rest = [x.cast(result.element) for x in tensors]
    return first.stack(*rest, axis=dim)


@lowers("slice_scatter")
def slice_scatter(
    x: Tensor,
    source: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    axis = x.axis(dim)
    box = sliced(x, axis, start, end, step)
    count = len(range(box.start, box.stop, step))
    if not count:
        return x
    extent = x.shape[axis]
    low, high, gaps = [0] * x.ndim, [0] * x.ndim, [0] * x.ndim
    low[axis], gaps[axis] = box.start, step - 1
    high[axis] = extent - box.start - (count - 1) * step - 1
    spread = source.cast(x.element).expand((*x.shape[:axis], count, *x.shape[axis + 1 :]))
    at = x.counting(axis, _I64, x.shape) - box.start
    inside = (at >= 0) & (at <= (count - 1) * step) & (at % step == 0)
    return inside.where(spread.pad_axes(low, high, gaps), x)


@lowers("select_scatter")
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    axis = x.axis(dim)
    here = x.counting(axis, _I64, x.shape) == index % x.shape[axis]
    return here.where(source.cast(x.element).unsqueeze(axis).expand(x.shape), x)


@lowers("diagonal_scatter")
def diagonal_scatter(
    x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    moved, order = diagonal_last(x, dim1, dim2)
    row, column, count = square_of(moved, offset)
    if not count:
        return x
    lead = moved.shape[:-2]
    rows, columns = moved.shape[-2:]
    square = source.cast(x.element).unsqueeze(-2).expand((*lead, count, count))
    low = [*[0] * len(lead), row, column]
    high = [*[0] * len(lead), rows - row - count, columns - column - count]
    there = moved.counting(moved.ndim - 1, _I64, moved.shape) - offset
    on = there == moved.counting(moved.ndim - 2, _I64, moved.shape)
    written = on.where(square.pad_axes(low, high), moved)
    return written.permute(sorted(range(x.ndim), key=order.__getitem__))


@lowers("copy")
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.cast(x.element).expand(x.shape)


@lowers("fill.Scalar", "fill.Tensor")
def fill(x: Tensor, value: Tensor | float) -> Tensor:
    if isinstance(value, Tensor):
        return value.cast(x.element).expand(x.shape)
    if not x.is_floating and not float(value).is_integer():
        raise UnsupportedError("a fraction in a tensor of integers")
    return x.full_like(value)
