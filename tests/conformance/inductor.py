"""Small graphs with the elements that PyTorch Inductor's own tests say it moves.

``V`` is a vector of 10, ``S`` is 10x10, float32. Elements are the distinct elements each kernel
reads and writes, summed over kernels. *Wanted* rows are numbers its authors state and do not reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import plait
from plait import Tensor

Make = Callable[[], list[Tensor]]


@dataclass(frozen=True)
class Row:
    """One graph, and the elements it may move."""

    id: str
    graph: str
    elements: int
    make: Make
    wanted: bool = False


ROWS: list[Row] = []


def row(id: str, graph: str, elements: int, wanted: bool = False) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        ROWS.append(Row(id, graph, elements, make, wanted))
        return make

    return add


def _v() -> Tensor:
    return plait.empty(10)


def _s() -> Tensor:
    return plait.empty(10, 10)


def _train(output: Tensor, *inputs: Tensor) -> list[Tensor]:
    """The output, and the gradients of the inputs for a given output gradient."""
    seed = plait.empty(*output.shape)
    return [output, *plait.grad((output * seed).sum(), list(inputs))]


@row("1", "cos V", 20)
def _() -> list[Tensor]:
    return [_v().cos()]


@row("3", "S + V (broadcast)", 210)
def _() -> list[Tensor]:
    return [_s() + _v()]


@row("5", "a + a.T, S", 200)
def _() -> list[Tensor]:
    a = _s()
    return [a + a.transpose(0, 1)]


@row("7", "sum over dim 1 of S", 110)
def _() -> list[Tensor]:
    return [_s().sum(1)]


@row("9", "a @ a, S", 200)
def _() -> list[Tensor]:
    a = _s()
    return [a @ a]


@row("11", "cos, then matrix product with itself, then cos, S", 600)
def _() -> list[Tensor]:
    a = _s().cos()
    return [(a @ a).cos()]


@row("13", "concat(sin a, sin b), V", 40)
def _() -> list[Tensor]:
    return [_v().sin().cat(_v().sin())]


@row("15", "concat(a @ a, sin b), S", 400)
def _() -> list[Tensor]:
    a = _s()
    return [(a @ a).cat(_s().sin())]


@row("19", "concat(softmax a, softmax b), S", 400)
def _() -> list[Tensor]:
    return [_s().softmax(1).cat(_s().softmax(1))]


@row("21", "cos(concat(cos a, b @ b)), S", 600)
def _() -> list[Tensor]:
    b = _s()
    return [_s().cos().cat(b @ b).cos()]


@row("25", "outputs sum over dim 1 and cos, S", 210)
def _() -> list[Tensor]:
    a = _s()
    return [a.sum(1), a.cos()]


@row("26", "outputs sum over dim 1 and max over dim 1, S", 120)
def _() -> list[Tensor]:
    a = _s()
    return [a.sum(1), a.max(1)]


@row("28", "cos, sum over dim 1, cos, S", 110)
def _() -> list[Tensor]:
    return [_s().cos().sum(1).cos()]


def _normalised(x: Tensor) -> Tensor:
    return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)


@row("29", "norm chain of three (x - mean) / std over dim 1, S", 200)
def _() -> list[Tensor]:
    return [_normalised(_normalised(_normalised(_s())))]


@row("30", "softmax over dim 1, S", 200)
def _() -> list[Tensor]:
    return [_s().softmax(1)]


@row("31", "softmax of softmax, S", 200)
def _() -> list[Tensor]:
    return [_s().softmax(1).softmax(1)]


@row("33", "softmax backward over dim 1, S, from saved output and output gradient", 300)
def _() -> list[Tensor]:
    output, gradient = _s(), _s()
    return [output * (gradient - (output * gradient).sum(1, keepdim=True))]


@row("34", "((a - b)^2).sum(-1).max over dim 1, a 10x1x4, b 1x10x4", 90)
def _() -> list[Tensor]:
    a, b = plait.empty(10, 1, 4), plait.empty(1, 10, 4)
    return [(a - b).square().sum(-1).max(1)]


@row("36", "cos(a[b]), a of S, b of 20 row indices", 320)
def _() -> list[Tensor]:
    return [_s()[plait.empty(20, dtype="int64")].cos()]


@row("45", "a + b.T, S", 300)
def _() -> list[Tensor]:
    return [_s() + _s().transpose(0, 1)]


@row("47", "train: cos cos cos, V", 50)
def _() -> list[Tensor]:
    x = _v()
    return _train(x.cos().cos().cos(), x)


@row("49", "train: (x < 0) * x, 100", 450)
def _() -> list[Tensor]:
    x = plait.empty(100)
    return _train((x < 0) * x, x)


@row("51", "train: relu, 16", 72)
def _() -> list[Tensor]:
    x = plait.empty(16)
    return _train(x.relu(), x)


@row("53", "a = cos x; a[b] = 1; V, b of 2 indices", 26)
def _() -> list[Tensor]:
    index = plait.empty(2, dtype="int64")
    return [_v().cos().scatter(0, index, plait.ones(2))]


@row("W1", "outputs sum over dim 0 and cos, S", 210, wanted=True)
def _() -> list[Tensor]:
    a = _s()
    return [a.sum(0), a.cos()]


@row("W2", "softmax over dim 0, S", 200, wanted=True)
def _() -> list[Tensor]:
    return [_s().softmax(0)]
