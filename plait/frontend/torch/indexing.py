"""Elements at positions given by data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from plait.dialects.lazy import ScatterKind
from plait.frontend.elementwise import broadcast_shape
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.checks import within
from plait.frontend.torch.creation import filled
from plait.frontend.torch.reductions import accumulated
from plait.frontend.torch.table import lowers
from plait.frontend.torch.types import Number


def positions(index: Tensor, extent: int, negative: bool = False) -> Tensor:
    """Checked positions along an axis; ``negative`` ones may count from its end."""
    if index.dtype not in ("int32", "int64"):
        raise UnsupportedError(f"positions of type {index.dtype}")
    if not extent and index.size:
        raise UnsupportedError("positions along an axis of extent 0")
    within(index, -extent if negative else 0, extent)
    index = index.cast("int64")
    return (index < 0).where(index + extent, index) if negative else index


@lowers("gather")
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    if not x.shape:
        within(index, 0, 1)
        return x.expand(index.shape)
    if not index.shape:
        index = index.reshape(1)
        return x.gather(dim, positions(index, x.shape[0])).reshape(())
    return x.gather(dim, positions(index, x.shape[x.axis(dim)]))


@lowers("index_select")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    if not x.shape:
        at = positions(index, 1)
        return x.reshape(1).index_select(0, at).reshape(())
    at = positions(index, x.shape[x.axis(dim)])
    return x.index_select(dim, at if at.shape else at.reshape(1))


@lowers("take")
def take(x: Tensor, index: Tensor) -> Tensor:
    at = positions(index, x.size, negative=True)
    return x.flatten().index_select(0, at)


@lowers("embedding")
def embedding(
    weight: Tensor,
    index: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    if sparse or not weight.size:
        raise UnsupportedError("sparse gradients")
    return weight.index_select(0, positions(index, weight.shape[0]))


@lowers("embedding_dense_backward")
def embedding_dense_backward(
    g: Tensor, index: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    if scale_grad_by_freq or not g.size or not num_weights:
        raise UnsupportedError("gradients scaled by frequency")
    size = g.shape[-1]
    at = positions(index, num_weights).reshape(-1, 1).expand((index.size, size))
    values = accumulated(g).reshape(index.size, size)
    values = (at == padding_idx).where(values.full_like(0), values)
    zero = Tensor.constant(0, values.element, (num_weights, size))
    return zero.scatter_add(0, at, values).cast(g.element)


def _indexed_first(x: Tensor, indices: Sequence[Tensor | None]) -> tuple[list[int], int]:
    """The axes with the indexed ones first, and where their results go."""
    axes = [k for k, index in enumerate(indices) if index is not None]
    rest = [k for k in range(x.ndim) if k not in axes]
    adjacent = axes == list(range(axes[0], axes[-1] + 1))
    return [*axes, *rest], axes[0] if adjacent else 0


def _linear(x: Tensor, indices: Sequence[Tensor | None], order: Sequence[int]) -> Tensor:
    """One position within the indexed axes joined, for every element of the indices."""
    given = [index for index in indices if index is not None]
    shape = broadcast_shape(*(index.shape for index in given))
    total: Tensor | None = None
    for axis, index in zip(order, given, strict=False):
        at = positions(index, x.shape[axis], negative=True).expand(shape)
        total = at if total is None else total * x.shape[axis] + at
    assert total is not None
    return total


@lowers("index.Tensor", "_unsafe_index.Tensor")
def index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    order, place = _indexed_first(x, indices)
    at = _linear(x, indices, order)
    if not at.size or not x.size:
        raise UnsupportedError("no elements")
    count = sum(each is not None for each in indices)
    moved = x.permute(order)
    flat = moved.reshape(math.prod(moved.shape[:count]), *moved.shape[count:])
    picked = flat.index_select(0, at.reshape(at.size))
    picked = picked.reshape(*at.shape, *moved.shape[count:])
    if not place:
        return picked
    k = at.ndim
    return picked.permute(*range(k, k + place), *range(k), *range(k + place, picked.ndim))


@lowers("index_put", "_unsafe_index_put")
def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    order, place = _indexed_first(x, indices)
    at = _linear(x, indices, order)
    if not at.size or not x.size or (accumulate and x.dtype == "bool"):
        raise UnsupportedError("no elements")
    count = sum(each is not None for each in indices)
    moved = x.permute(order)
    rest = moved.shape[count:]
    flat = accumulated(moved).reshape(math.prod(moved.shape[:count]), *rest)
    k = at.ndim
    spread = values.cast(flat.element).expand((*rest[:place], *at.shape, *rest[place:]))
    spread = spread.permute(*range(place, place + k), *range(place), *range(place + k, spread.ndim))
    spread = spread.reshape(at.size, *rest)
    where = at.reshape(at.size, *(1,) * len(rest)).expand(spread.shape)
    kind = ScatterKind.ADD if accumulate else ScatterKind.SET
    written = flat.scatter_kind(kind, 0, where, spread).cast(x.element).reshape(moved.shape)
    return written.permute(sorted(range(x.ndim), key=order.__getitem__))


_KINDS = {
    "sum": ScatterKind.ADD,
    "mean": ScatterKind.ADD,
    "prod": ScatterKind.MUL,
    "amax": ScatterKind.MAX,
    "amin": ScatterKind.MIN,
}
_NOTHING = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}
"""What leaves the other operand as it is."""


def _scattered(kind: ScatterKind, x: Tensor, dim: int, at: Tensor, source: Tensor) -> Tensor:
    if x.dtype == "bool":
        raise UnsupportedError("scattering booleans")
    if not at.size:
        return x
    if not x.shape:
        flat = (each.reshape(1) for each in (at, source))
        return _scattered(kind, x.reshape(1), 0, *flat).reshape(())
    at = positions(at, x.shape[x.axis(dim)])
    part = source.shrink([(0, extent) for extent in at.shape])
    made = accumulated(x).scatter_kind(kind, dim, at, accumulated(part))
    return made.cast(x.element)


@lowers("put")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    kind = ScatterKind.ADD if accumulate else ScatterKind.SET
    at = positions(index.flatten(), x.size, negative=True)
    return _scattered(kind, x.flatten(), 0, at, source.flatten()).reshape(x.shape)


@lowers("scatter.src")
def scatter(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return _scattered(ScatterKind.SET, x, dim, index, src)


@lowers("scatter.value")
def scatter_value(x: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    source = filled(value, Tensor.constant(0, x.element, index.shape))
    return _scattered(ScatterKind.SET, x, dim, index, source)


@lowers("scatter.reduce")
def scatter_and_combine(x: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    kind = ScatterKind.ADD if reduce == "add" else ScatterKind.MUL
    return _scattered(kind, x, dim, index, src)


@lowers("scatter.value_reduce")
def scatter_value_and_combine(
    x: Tensor, dim: int, index: Tensor, value: Number, *, reduce: str
) -> Tensor:
    source = filled(value, Tensor.constant(0, x.element, index.shape))
    return scatter_and_combine(x, dim, index, source, reduce=reduce)


@lowers("scatter_add")
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return _scattered(ScatterKind.ADD, x, dim, index, src)


@lowers("scatter_reduce.two")
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if not x.is_floating:
        raise UnsupportedError("combining integers")
    start = accumulated(x)
    one = Tensor.constant(1, start.element, index.shape)
    count = _scattered(ScatterKind.ADD, start.full_like(0), dim, index, one)
    if not include_self:
        start = (count > 0).where(start.full_like(_NOTHING[reduce]), start)
    made = _scattered(_KINDS[reduce], start, dim, index, accumulated(src))
    if reduce == "mean":
        made = made / (count + 1 if include_self else count.maximum(1))
    return made.cast(x.element)


@lowers("index_add")
def index_add(x: Tensor, dim: int, index: Tensor, source: Any, *, alpha: Number = 1) -> Tensor:
    if not x.shape:
        return index_add(x.reshape(1), 0, index, source.reshape(1), alpha=alpha).reshape(())
    if not source.shape:
        raise UnsupportedError("adding an element without axes")
    axis = x.axis(dim)
    lead, trail = (1,) * axis, (1,) * (x.ndim - axis - 1)
    at = index.reshape(*lead, index.size, *trail).expand(source.shape)
    scaled = source if alpha == 1 else source * alpha
    return _scattered(ScatterKind.ADD, x, dim, at, scaled.cast(x.element))
