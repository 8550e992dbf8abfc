"""Random programs over every operation and element type of the ``lazy`` dialect."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from plait.dialects import lazy
from plait.dtypes import is_bool, is_float, is_unsigned, ui8, ui16, ui32, ui64
from plait.passes.simplify.builder import splat_attribute

FLOATS = (f32, f64, f16, bf16)
INTEGERS = (i8, i16, i32, i64, ui8, ui16, ui32, ui64)
BITCASTS: dict[Attribute, Attribute] = {i32: ui32, ui32: i32, i16: ui16, ui64: i64, i8: ui8}
"""Between integers alone: which NaN an operation makes, and the sign of a 0, are not defined."""
BINARY: tuple[type[lazy.BinaryOp], ...] = (
    lazy.AddOp, lazy.SubOp, lazy.MulOp, lazy.MaxOp, lazy.MinOp, lazy.DivOp, lazy.RemOp,
    lazy.PowOp, lazy.Atan2Op, lazy.AndOp, lazy.OrOp, lazy.XorOp, lazy.ShlOp, lazy.ShrOp,
)  # fmt: skip
UNARY: tuple[type[lazy.UnaryOp], ...] = (
    lazy.NegOp, lazy.AbsOp, lazy.SignOp, lazy.TanhOp, lazy.SigmoidOp, lazy.FloorOp, lazy.CeilOp,
    lazy.RoundOp, lazy.TruncOp, lazy.NotOp, lazy.SqrtOp, lazy.SinOp, lazy.ErfOp,
    lazy.ReciprocalOp, lazy.ExpOp, lazy.LogOp,
)  # fmt: skip
Step = Callable[["Random", SSAValue], Operation | None]


class Random:
    """Builds one program, a random operation on a recent value at a time."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.block = Block()
        self.values: list[SSAValue] = []

    def input(self, type: Attribute, shape: Sequence[int]) -> SSAValue:
        argument = self.block.insert_arg(TensorType(type, shape), len(self.block.args))
        self.values.append(argument)
        return argument

    def add(self, op: Operation) -> SSAValue:
        op.verify()
        self.block.add_op(op)
        self.values.append(op.results[0])
        return op.results[0]

    def shape(self) -> list[int]:
        extents = (1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 0)
        return [self.r.choice(extents) for _ in range(self.r.randint(0, 3))]

    def like(self, type: Attribute, shape: Sequence[int]) -> SSAValue:
        """A value of a type and shape: one there is, a constant, a broadcast, or an argument."""
        wanted = TensorType(type, shape)
        found = [value for value in self.values if value.type == wanted]
        if found and self.r.random() < 0.8:
            return self.r.choice(found)
        choice = self.r.random()
        if choice < 0.25 and type != i1:
            return self.add(lazy.ConstantOp(splat_attribute(self.r.randint(0, 3), wanted)))
        if choice < 0.4 and shape:
            small = [1 if self.r.random() < 0.5 else extent for extent in shape]
            return self.add(lazy.ExpandOp(self.input(type, small), tuple(shape)))
        if choice < 0.5 and shape and type != i1:
            return self.add(lazy.IotaOp(self.r.randrange(len(shape)), wanted))
        return self.input(type, shape)

    def flags(self, count: int, chance: float = 0.5) -> list[int]:
        return [axis for axis in range(count) if self.r.random() < chance]


def _type(value: SSAValue) -> Attribute:
    return lazy.element_type_of(value)


def _binary(g: Random, v: SSAValue) -> Operation:
    pair = [v, g.like(_type(v), lazy.shape_of(v))]
    g.r.shuffle(pair)
    return g.r.choice(BINARY)(*pair)


def _unary(g: Random, v: SSAValue) -> Operation:
    return g.r.choice(UNARY)(v)


def _predicate(g: Random, v: SSAValue) -> Operation:
    kind = g.r.choice((lazy.IsNanOp, lazy.IsFiniteOp))
    return kind(v, TensorType(i1, lazy.shape_of(v)))


def _compare(g: Random, v: SSAValue) -> Operation:
    shape = lazy.shape_of(v)
    predicate = g.r.choice(list(lazy.ComparePredicate))
    return lazy.CompareOp(predicate, v, g.like(_type(v), shape), TensorType(i1, shape))


def _select(g: Random, v: SSAValue) -> Operation:
    shape = lazy.shape_of(v)
    return lazy.SelectOp(g.like(i1, shape), v, g.like(_type(v), shape))


def _cast(g: Random, v: SSAValue) -> Operation:
    return lazy.CastOp(v, TensorType(g.r.choice((*FLOATS, *INTEGERS, i1)), lazy.shape_of(v)))


def _bitcast(g: Random, v: SSAValue) -> Operation | None:
    want = BITCASTS.get(_type(v))
    return None if want is None else lazy.BitcastOp(v, TensorType(want, lazy.shape_of(v)))


def _permute(g: Random, v: SSAValue) -> Operation:
    order = list(range(len(lazy.shape_of(v))))
    g.r.shuffle(order)
    return lazy.PermuteOp(v, order)


def _reshape(g: Random, v: SSAValue) -> Operation:
    left, target = prod(lazy.shape_of(v)), list[int]()
    if left == 0:
        return lazy.ReshapeOp(v, (0, g.r.randint(0, 3)))
    for _ in range(g.r.randint(0, 3)):
        factor = g.r.choice([n for n in range(1, left + 1) if left % n == 0])
        target.append(factor)
        left //= factor
    if left > 1 or g.r.random() < 0.3:
        target.append(left)
    g.r.shuffle(target)
    return lazy.ReshapeOp(v, tuple(target))


def _expand(g: Random, v: SSAValue) -> Operation:
    shape = lazy.shape_of(v)
    return lazy.ExpandOp(v, tuple(g.r.choice((1, 2, 3)) if n == 1 else n for n in shape))


def _pad(g: Random, v: SSAValue) -> Operation:
    type: Any = _type(v)
    rank = len(lazy.shape_of(v))
    number = g.r.choice((0, 1) if is_unsigned(type) or is_bool(type) else (0, 1, -1, 2))
    value: Any = FloatAttr(float(number), type) if is_float(type) else IntegerAttr(number, type)
    low, high = ([g.r.choice((0, 0, 1, 2)) for _ in range(rank)] for _ in range(2))
    return lazy.PadOp(v, low, high, [g.r.choice((0, 0, 0, 1, 2)) for _ in range(rank)], value)


def _slice(g: Random, v: SSAValue) -> Operation:
    shape = lazy.shape_of(v)
    starts = [g.r.randint(0, max(n - 1, 0)) for n in shape]
    stops = [g.r.randint(min(s + 1, n), n) for s, n in zip(starts, shape, strict=True)]
    return lazy.SliceOp(v, starts, stops, [g.r.choice((1, 1, 2)) for _ in shape])


def _flip(g: Random, v: SSAValue) -> Operation:
    return lazy.FlipOp(v, g.flags(len(lazy.shape_of(v))))


def _window(g: Random, v: SSAValue) -> Operation | None:
    shape = lazy.shape_of(v)
    axes = [axis for axis in g.flags(len(shape), 0.6) if shape[axis] >= 2]
    if not axes:
        return None
    sizes = [g.r.randint(1, min(3, shape[axis])) for axis in axes]
    fits = [(size - 1) * 2 < shape[axis] for size, axis in zip(sizes, axes, strict=True)]
    dilations = [g.r.choice((1, 2)) if fit else 1 for fit in fits]
    return lazy.WindowOp(v, axes, sizes, [g.r.choice((1, 1, 2)) for _ in axes], dilations)


def _with_axis(g: Random, v: SSAValue, extents: Sequence[int]) -> tuple[int, list[int]]:
    shape = list(lazy.shape_of(v))
    axis = g.r.randrange(len(shape))
    shape[axis] = g.r.choice((*extents, shape[axis]))
    return axis, shape


def _concat(g: Random, v: SSAValue) -> Operation:
    axis, shape = _with_axis(g, v, (0, 1, 2))
    parts = [v, g.like(_type(v), shape)]
    g.r.shuffle(parts)
    return lazy.ConcatOp(parts, axis)


def _reduce(g: Random, v: SSAValue) -> Operation:
    kind = g.r.choice(list(lazy.ReduceKind))
    return lazy.ReduceOp(kind, v, g.flags(len(lazy.shape_of(v))))


def _arg_reduce(g: Random, v: SSAValue) -> Operation:
    kind = g.r.choice((lazy.ArgmaxOp, lazy.ArgminOp))
    return kind(v, g.r.randrange(len(lazy.shape_of(v))), g.r.choice((i32, i64)))


def _scan(g: Random, v: SSAValue) -> Operation:
    return lazy.ScanOp(g.r.choice(list(lazy.ScanKind)), v, g.r.randrange(len(lazy.shape_of(v))))


def _gather(g: Random, v: SSAValue) -> Operation:
    axis, shape = _with_axis(g, v, (1, 2, 4))
    return lazy.GatherOp(v, g.like(g.r.choice(INTEGERS), shape), axis)


def _scatter(g: Random, v: SSAValue) -> Operation:
    axis, shape = _with_axis(g, v, (0, 1, 2, 4))
    at, updates = g.like(g.r.choice(INTEGERS), shape), g.like(_type(v), shape)
    return lazy.ScatterOp(g.r.choice(list(lazy.ScatterKind)), v, at, updates, axis)


def _materialize(g: Random, v: SSAValue) -> Operation:
    return lazy.MaterializeOp(v)


STEPS: dict[str, Step] = {
    "binary": _binary, "unary": _unary, "predicate": _predicate, "compare": _compare,
    "select": _select, "cast": _cast, "bitcast": _bitcast, "permute": _permute,
    "reshape": _reshape, "expand": _expand, "pad": _pad, "slice": _slice, "flip": _flip,
    "window": _window, "concat": _concat, "reduce": _reduce, "argreduce": _arg_reduce,
    "scan": _scan, "gather": _gather, "scatter": _scatter, "materialize": _materialize,
}  # fmt: skip
LARGEST = 150
"""Elements of the largest value that operations go on from."""


def program(seed: int, steps: int, only: str | None = None) -> ModuleOp:
    """A program of about ``steps`` operations, all of the kind ``only`` if one is given."""
    g = Random(seed)
    for _ in range(g.r.randint(1, 2)):
        any_type = g.r.random() < 0.6
        g.input(g.r.choice((*FLOATS, f32, f32, *INTEGERS, i1)) if any_type else f32, g.shape())
    computed: list[SSAValue] = []
    for _ in range(200):
        if len(computed) == steps:
            break
        name = only or g.r.choice(list(STEPS))
        fitting = [v for v in g.values[-6:] if prod(lazy.shape_of(v)) <= LARGEST]
        try:
            op = STEPS[name](g, g.r.choice(fitting or g.values))
            if op is not None:
                computed.append(g.add(op))
                continue
        except (VerifyException, ValueError, IndexError):
            pass
        # This operation does not take this element type or shape: another does.
        g.input(g.r.choice((f32, i32, i1)), [g.r.randint(1, 4), g.r.randint(1, 4)])
    assert computed, only
    unused = [value for value in computed[:-1] if not list(value.uses)]
    outputs = [computed[-1], *unused][:4]
    g.r.shuffle(outputs)
    g.block.add_op(ReturnOp(*outputs))
    types = ([v.type for v in g.block.args], [v.type for v in outputs])
    module = ModuleOp([FuncOp("main", types, Region(g.block))])
    module.verify()
    return module
