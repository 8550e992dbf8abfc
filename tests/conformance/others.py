"""Small graphs with the kernels that XLA, Inductor, nvFuser and IREE make of them, or whose users
ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import plait
from plait import Tensor
from plait.nn import functional as F
from plait.optim import adam

Make = Callable[[], list[Tensor]]


@dataclass(frozen=True)
class Row:
    """One graph, the kernels it may take, and whose figure that is."""

    id: str
    graph: str
    kernels: int
    system: str
    make: Make


ROWS: list[Row] = []


def row(id: str, graph: str, kernels: int, system: str) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        ROWS.append(Row(id, graph, kernels, system, make))
        return make

    return add


@row("two-reduces", "two reductions of [128,512,28,28] over axes 0,2,3", 1, "XLA")
def _() -> list[Tensor]:
    x = plait.empty(128, 512, 28, 28)
    return [x.sum((0, 2, 3)), x.square().sum((0, 2, 3))]


@row("three-reduces", "three reductions of [128,512,28,28] over axes 0,2,3", 1, "XLA")
def _() -> list[Tensor]:
    x = plait.empty(128, 512, 28, 28)
    return [x.sum((0, 2, 3)), x.square().sum((0, 2, 3)), x.max((0, 2, 3))]


@row("exp-and-reduce", "exp of [32,32,32] and a reduce of it, both live", 1, "XLA")
def _() -> list[Tensor]:
    y = plait.empty(32, 32, 32).exp()
    return [y, y.sum(2)]


@row("square-exp-log", "square feeding exp and log, 16384 elements", 2, "XLA")
def _() -> list[Tensor]:
    y = plait.empty(16384).square()
    return [y.exp(), y.log()]


@row("row-and-column-sum", "x.sum(-1) and x.sum(0), 32768x768", 1, "Inductor")
def _() -> list[Tensor]:
    x = plait.empty(32768, 768)
    return [x.sum(-1), x.sum(0)]


@row("sum-and-transpose", "x.sum(-1) and x.T made contiguous, 1024x2048", 1, "Inductor")
def _() -> list[Tensor]:
    x = plait.empty(1024, 2048)
    return [x.sum(-1), x.transpose(0, 1).contiguous()]


@row("cast-and-transpose", "a cast and its transpose, both stored, 4096x4096", 1, "Inductor")
def _() -> list[Tensor]:
    y = (plait.empty(4096, 4096) * plait.empty(1)).half()
    return [y, y.transpose(0, 1).contiguous()]


@row("three-small", "relu of 10x10, sigmoid of 20x20, tanh of 10x10", 1, "Inductor")
def _() -> list[Tensor]:
    return [
        plait.empty(10, 10).relu(),
        plait.empty(20, 20).sigmoid(),
        plait.empty(10, 10).tanh(),
    ]


@row("adam-list", "Adam step over a list of parameters", 2, "Inductor")
def _() -> list[Tensor]:
    shapes = [(64, 32), (64,), (10, 64), (10,), (33, 7), (5, 3, 2)]
    groups = [[plait.empty(*shape) for shape in shapes] for _ in range(4)]
    return _flat(adam(*groups, step=plait.empty(1)))


def _flat(nested: object) -> list[Tensor]:
    if isinstance(nested, Tensor):
        return [nested]
    assert isinstance(nested, list | tuple)
    return [tensor for part in nested for tensor in _flat(part)]  # pyright: ignore


@row("inner-and-outer", "x.sum(-1)+x together with x.sum of the leading axes", 1, "nvFuser")
def _() -> list[Tensor]:
    x = plait.empty(8, 16, 32)
    return [x.sum(-1, keepdim=True) + x, x.sum((0, 1))]


@row("softmax", "softmax written out (max, sub, exp, sum, div)", 1, "IREE")
def _() -> list[Tensor]:
    x = plait.empty(64, 128)
    e = (x - x.max(-1, keepdim=True)).exp()
    return [e / e.sum(-1, keepdim=True)]


@row("reduce-two-consumers", "a reduction with two elementwise consumers", 1, "IREE")
def _() -> list[Tensor]:
    total = plait.empty(64, 128).sum(-1)
    return [total.exp(), total.sqrt()]


@row("layer-norm", "layer norm, training forward", 1, "users of IREE")
def _() -> list[Tensor]:
    x, weight, bias = plait.empty(64, 256), plait.empty(256), plait.empty(256)
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    scale = (variance + 1e-5).rsqrt()
    return [(x - mean) * scale * weight + bias, mean, scale]


@row("abs-max-mean-square", "max|x|, mean|x| and mean x^2 of one tensor", 1, "users of PyTorch")
def _() -> list[Tensor]:
    x = plait.empty(1024, 1024)
    return [x.abs().max(), x.abs().mean(), x.square().mean()]


@row("pad-and-cast", "concat(x, 0) and x.half()", 1, "users of PyTorch")
def _() -> list[Tensor]:
    x = plait.empty(1024, 1000)
    return [x.pad((0, 24)), x.half()]


@row("gather-reduce", "gather then reduce", 1, "users of XLA")
def _() -> list[Tensor]:
    table, rows = plait.empty(1000, 64), plait.empty(256, 16, dtype="int64")
    return [F.embedding(rows, table).sum(1)]


@row("rotary", "rotary embedding of queries and keys", 2, "users of nvFuser")
def _() -> list[Tensor]:
    cos, sin = plait.empty(128, 64), plait.empty(128, 64)
    return [_rotary(plait.empty(2, 8, 128, 64), cos, sin) for _ in range(2)]


def _rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = (-x[..., half:]).cat(x[..., :half], axis=-1)
    return x * cos + turned * sin
