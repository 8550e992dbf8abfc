"""Small programs that the tests of planning share, by name."""

from __future__ import annotations

from collections.abc import Callable

from build import Program, T
from xdsl.dialects.builtin import ModuleOp

from plait.dialects import lazy

PROGRAMS: dict[str, Callable[[Program], list[T]]] = {}


def _program(build: Callable[[Program], list[T]]) -> Callable[[Program], list[T]]:
    PROGRAMS[build.__name__] = build
    return build


def softmax_of(x: T) -> T:
    shifted = (x - x.max(1, keepdim=True)).exp()
    return shifted / shifted.sum(1, keepdim=True)


def layer_norm_of(x: T) -> T:
    centred = x - x.mean(1, keepdim=True)
    return centred * ((centred * centred).mean(1, keepdim=True) + 1e-5).rsqrt()


@_program
def softmax(p: Program) -> list[T]:
    return [softmax_of(p.input(64, 24))]


@_program
def layer_norm(p: Program) -> list[T]:
    return [layer_norm_of(p.input(64, 24))]


@_program
def matmul_relu_matmul(p: Program) -> list[T]:
    x, w, v = p.input(6, 8), p.input(8, 5), p.input(5, 7)
    return [x.matmul(w).relu().matmul(v)]


@_program
def conv_twice(p: Program) -> list[T]:
    x, w, v = p.input(2, 3, 8, 8), p.input(4, 3, 3, 3), p.input(2, 4, 3, 3)
    return [x.conv(w).relu().pad([0, 0, 1, 1], [0, 0, 1, 1]).conv(v)]


@_program
def shared_value(p: Program) -> list[T]:
    x, y, z = (p.input(16, 16) for _ in range(3))
    total = x + y + z
    return [total.sum(0), total.sum(1), total.max(), total * 2.0]


@_program
def views_out(p: Program) -> list[T]:
    x, y = p.input(4, 6), p.input(4, 6)
    value = x + y
    return [x.T, value, value.T, value.slice([0, 0], [2, 6]), x.slice([1, 0], [3, 4]), x]


@_program
def pads_and_windows(p: Program) -> list[T]:
    x = p.input(5, 7)
    padded = x.exp().pad([1, 0], [0, 2])
    return [padded, padded.window([1], [3]).sum(2), x.window([0], [2]).max(2)]


@_program
def scan_and_argmax(p: Program) -> list[T]:
    x = p.input(4, 9)
    run = p.add(lazy.ScanOp(lazy.ScanKind.SUM, (x * 2.0).value, 1))
    best = p.add(lazy.ArgmaxOp(x.value, 1))
    return [run + 1.0, best, run.sum(1)]


@_program
def materialized(p: Program) -> list[T]:
    x = p.input(4, 6)
    kept = (x + 1.0).materialize()
    return [kept.sum(1), kept.T.materialize(), x.slice([1, 0], [3, 6]).materialize()]


@_program
def diamond_epilogue(p: Program) -> list[T]:
    x = p.input(8, 12)
    s = x.sum(1)
    return [(s * s - s).exp() + s]


@_program
def empty(p: Program) -> list[T]:
    x = p.input(0, 4)
    return [x + 1.0, x.sum(0), x.sum(1)]


@_program
def two_norms_in_a_row(p: Program) -> list[T]:
    x = p.input(40, 8)
    return [layer_norm_of(layer_norm_of(x)), softmax_of(x).sum(0)]


def module(name: str) -> ModuleOp:
    """A fresh copy of a program."""
    program = Program()
    return program.module(*PROGRAMS[name](program))
