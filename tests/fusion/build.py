"""A small builder of ``lazy`` programs for the tests of planning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import (
    FloatAttr,
    ModuleOp,
    TensorType,
    f32,
    i1,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dtypes import numpy_dtype
from plait.passes import remarks
from plait.passes.simplify.builder import splat_attribute
from plait.runtime.interpret import run_module


class Program:
    """Builds the function ``main`` of a module, value by value."""

    def __init__(self) -> None:
        self.block = Block()

    def input(self, *shape: int, type: Attribute = f32) -> T:
        argument = self.block.insert_arg(TensorType(type, shape), len(self.block.args))
        return T(self, argument)

    def splat(self, value: float, *shape: int, type: Attribute = f32) -> T:
        return self.add(lazy.ConstantOp(splat_attribute(value, TensorType(type, shape))))

    def add(self, op: Operation) -> T:
        self.block.add_op(op)
        return T(self, op.results[0])

    def module(self, *outputs: T) -> ModuleOp:
        values = [output.value for output in outputs]
        self.block.add_op(ReturnOp(*values))
        inputs = [argument.type for argument in self.block.args]
        function = FuncOp("main", (inputs, [value.type for value in values]), Region(self.block))
        module = ModuleOp([function])
        module.verify()
        return module


class T:
    """A tensor value with operators; shapes broadcast as in numpy."""

    def __init__(self, program: Program, value: SSAValue):
        self.program, self.value = program, value

    @property
    def shape(self) -> tuple[int, ...]:
        return lazy.shape_of(self.value)

    def _make(self, op: Operation) -> T:
        return self.program.add(op)

    def reshape(self, *shape: int) -> T:
        return self if shape == self.shape else self._make(lazy.ReshapeOp(self.value, shape))

    def expand(self, *shape: int) -> T:
        padded = self.reshape(*(1,) * (len(shape) - len(self.shape)), *self.shape)
        return padded if padded.shape == shape else self._make(lazy.ExpandOp(padded.value, shape))

    def permute(self, *order: int) -> T:
        return self._make(lazy.PermuteOp(self.value, order))

    @property
    def T(self) -> T:
        return self.permute(1, 0)

    def pad(self, low: Sequence[int], high: Sequence[int]) -> T:
        zero = FloatAttr(0.0, f32)
        none = [0] * len(low)
        return self._make(lazy.PadOp(self.value, low, high, none, zero))

    def slice(self, starts: Sequence[int], stops: Sequence[int]) -> T:
        return self._make(lazy.SliceOp(self.value, starts, stops, [1] * len(starts)))

    def window(self, axes: Sequence[int], sizes: Sequence[int]) -> T:
        ones = [1] * len(axes)
        return self._make(lazy.WindowOp(self.value, axes, sizes, ones, ones))

    def materialize(self) -> T:
        return self._make(lazy.MaterializeOp(self.value))

    def _binary(self, other: T | float, op: Callable[[SSAValue, SSAValue], Operation]) -> T:
        a, b = self, other if isinstance(other, T) else self.program.splat(other, *self.shape)
        rank = max(len(a.shape), len(b.shape))
        shapes = [(1,) * (rank - len(t.shape)) + t.shape for t in (a, b)]
        shape = tuple(max(p, q) for p, q in zip(*shapes, strict=True))
        return self._make(op(a.expand(*shape).value, b.expand(*shape).value))

    def __add__(self, other: T | float) -> T:
        return self._binary(other, lazy.AddOp)

    def __sub__(self, other: T | float) -> T:
        return self._binary(other, lazy.SubOp)

    def __mul__(self, other: T | float) -> T:
        return self._binary(other, lazy.MulOp)

    def __truediv__(self, other: T | float) -> T:
        return self._binary(other, lazy.DivOp)

    def max_with(self, other: T | float) -> T:
        return self._binary(other, lazy.MaxOp)

    def relu(self) -> T:
        return self.max_with(0.0)

    def positive(self) -> T:
        """1 where the value is positive, else 0."""
        zero = self.program.splat(0.0, *self.shape)
        mask = self._make(
            lazy.CompareOp(
                lazy.ComparePredicate.GT, self.value, zero.value, TensorType(i1, self.shape)
            )
        )
        return self._make(lazy.CastOp(mask.value, TensorType(f32, self.shape)))

    def exp(self) -> T:
        return self._make(lazy.ExpOp(self.value))

    def sqrt(self) -> T:
        return self._make(lazy.SqrtOp(self.value))

    def rsqrt(self) -> T:
        return self._make(lazy.RsqrtOp(self.value))

    def reduce(self, kind: str, axes: Sequence[int] | None = None, keepdim: bool = False) -> T:
        axes = tuple(range(len(self.shape))) if axes is None else tuple(axes)
        result = self._make(lazy.ReduceOp(lazy.ReduceKind(kind), self.value, axes))
        kept = [1 if k in axes else n for k, n in enumerate(self.shape)]
        return result.reshape(*kept) if keepdim else result

    def sum(self, *axes: int, keepdim: bool = False) -> T:
        return self.reduce("sum", axes or None, keepdim)

    def max(self, *axes: int, keepdim: bool = False) -> T:
        return self.reduce("max", axes or None, keepdim)

    def mean(self, *axes: int, keepdim: bool = False) -> T:
        total = self.sum(*axes, keepdim=keepdim)
        return total * (prod(total.shape) / prod(self.shape))

    def matmul(self, other: T) -> T:
        m, k = self.shape
        _, n = other.shape
        left = self.reshape(m, 1, k).expand(m, n, k)
        right = other.T.reshape(1, n, k).expand(m, n, k)
        return (left * right).sum(2)

    def conv(self, weight: T) -> T:
        """``self``: n c h w; ``weight``: o c kh kw; no padding."""
        n, c, _, _ = self.shape
        o, _, kh, kw = weight.shape
        views = self.window([2, 3], [kh, kw])
        _, _, h, w, _, _ = views.shape
        space = (n, o, h, w, c, kh, kw)
        left = views.permute(0, 2, 3, 1, 4, 5).reshape(n, 1, h, w, c, kh, kw).expand(*space)
        right = weight.reshape(1, o, 1, 1, c, kh, kw).expand(*space)
        return (left * right).sum(4, 5, 6)


def plan(module: ModuleOp, *passes: ModulePass) -> tuple[list[GroupOp], list[remarks.Remark]]:
    """Runs passes on a module, verifies, and returns its groups and the remarks."""
    with remarks.collect() as found:
        for step in passes:
            step.apply(Context(), module)
            module.verify()
    groups = [op for op in module.walk() if isinstance(op, GroupOp)]
    return groups, found


def arguments(module: ModuleOp, seed: int = 0, special: bool = False) -> list[NDArray[Any]]:
    """Random contents for the arguments of ``main``; some infinite, NaN or zero if asked for."""
    random = np.random.default_rng(seed)
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    found = list[NDArray[Any]]()
    for argument in function.body.block.args:
        values = random.standard_normal(lazy.shape_of(argument))
        if special and values.size:
            where = random.integers(0, 8, values.shape)
            values = np.select(
                [where == 0, where == 1, where == 2, where == 3],
                [np.nan, np.inf, -np.inf, 0.0],
                values,
            )
        found.append(values.astype(numpy_dtype(lazy.element_type_of(argument))))
    return found


def check_meaning(module: ModuleOp, *passes: ModulePass, special: bool = True) -> None:
    """Runs the program before and after every pass, in float64, and compares all results."""
    inputs = arguments(module, special=special)
    with np.errstate(all="ignore"):
        before = run_module(module, inputs, float64=True)
        for step in passes:
            step.apply(Context(), module)
            module.verify()
            after = run_module(module, inputs, float64=True)
            for have, want in zip(after, before, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9, err_msg=step.name)
