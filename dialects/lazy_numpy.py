"""What every operation of the ``lazy`` dialect computes, on numpy arrays: its meaning, which the
interpreter runs and folding uses.

An array of bfloat16 is held as a float32 array of rounded values. With ``float64`` every float,
whatever its type, is computed and held in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute, Operation

from plait.dialects import lazy, lazy_eval
from plait.dialects.lazy import element_type_of, shape_of
from plait.dialects.lazy_constants import splat_scalar
from plait.dialects.lazy_sums import sum_of_products
from plait.dtypes import (
    Array,
    bf16_to_f32,
    f32_to_bf16,
    is_bool,
    is_float,
    numpy_dtype,
)


class Numbers:
    """How elements are held and rounded."""

    def __init__(self, float64: bool):
        self.float64 = float64

    def dtype(self, type: Attribute) -> np.dtype[Any]:
        """The dtype of the arrays that hold elements ``type``."""
        if is_float(type) and self.float64:
            return np.dtype(np.float64)
        if isinstance(type, BFloat16Type):
            return np.dtype(np.float32)
        return numpy_dtype(type)

    def wide(self, value: Array, type: Attribute) -> Array:
        """Elements as arithmetic takes them: float32 for half precision."""
        half = isinstance(type, Float16Type) and not self.float64
        return value.astype(np.float32) if half else value

    def held(self, value: Array, type: Attribute) -> Array:
        """A result, rounded to ``type``."""
        if isinstance(type, BFloat16Type) and not self.float64:
            return bf16_to_f32(f32_to_bf16(value)).reshape(value.shape)
        return np.asarray(value, dtype=self.dtype(type))

    def taken(self, array: Array, type: Attribute) -> Array:
        """An array from outside."""
        if isinstance(type, BFloat16Type) and array.dtype == np.uint16:
            array = bf16_to_f32(array)
        return self.held(array, type) if not self.float64 else array.astype(self.dtype(type))

    def given(self, array: Array, type: Attribute) -> Array:
        """An array for outside."""
        if isinstance(type, BFloat16Type) and not self.float64:
            return f32_to_bf16(array).reshape(array.shape)
        return array


def ints(attribute: object) -> tuple[int, ...]:
    return tuple(cast(Any, attribute).get_values())


class Evaluator:
    """Computes the result of any operation of ``lazy`` from the arrays of its operands."""

    def __init__(self, numbers: Numbers):
        self.numbers = numbers

    def value(self, op: Operation, args: Sequence[Array]) -> Array:
        """The result of one operation."""
        numbers, type = self.numbers, element_type_of(op.results[0])
        match op:
            case lazy.MulOp() if is_contracted(op):
                return cast(Array, Product(args[0], args[1]))
            case lazy.UnaryOp() | lazy.BinaryOp() | lazy.PredicateOp():
                of = element_type_of(op.operands[0])
                function = lazy_eval.arithmetic(op.__class__, of)
                return numbers.held(function(*(numbers.wide(a, of) for a in args)), type)
            case lazy.CompareOp():
                return lazy_eval.compare(op.predicate.data)(args[0], args[1])
            case lazy.SelectOp():
                return np.where(args[0], args[1], args[2])
            case lazy.CastOp():
                return self.cast(args[0], element_type_of(op.operand), type)
            case lazy.BitcastOp():
                return self.bitcast(args[0], element_type_of(op.operand), type)
            case lazy.MaterializeOp():
                return args[0]
            case lazy.MovementOp():
                return self.move(op, args)
            case lazy.ReduceOp():
                return self.reduce(op, args[0])
            case lazy.ArgReduceOp():
                function = np.argmax if isinstance(op, lazy.ArgmaxOp) else np.argmin
                found = function(args[0], axis=op.axis.value.data)
                return np.asarray(found).astype(numbers.dtype(type))
            case lazy.ScanOp():
                return self.scan(op, args[0])
            case lazy.GatherOp():
                return gather(args[0], args[1], op.axis.value.data)
            case lazy.ScatterOp():
                return self.scatter(op, *args)
            case _:
                return self.source(op, args)

    def source(self, op: Operation, args: Sequence[Array]) -> Array:
        result = op.results[0]
        type, shape = element_type_of(result), shape_of(result)
        match op:
            case lazy.ConstantOp():
                scalar = splat_scalar(op.value)
                if scalar is not None:
                    return np.broadcast_to(self.numbers.taken(_literal(scalar, type), type), shape)
                values = _literal(list(cast(Any, op.value).iter_values()), type)
                return self.numbers.taken(values.reshape(shape), type)
            case lazy.IotaOp():
                axis = op.axis.value.data
                steps = np.arange(shape[axis]).astype(_exact(type))
                steps = steps.reshape([-1 if k == axis else 1 for k in range(len(shape))])
                return np.broadcast_to(self.numbers.taken(steps, type), shape)
            case lazy.RngBitsOp():
                return random_bits(args[0], shape)
            case _:
                raise AssertionError(f"{op.name} has no meaning on numpy arrays")

    def cast(self, value: Array, have: Attribute, want: Attribute) -> Array:
        if is_bool(want):
            return value != 0
        if is_float(have) and not is_float(want):
            wide = self.numbers.wide(value, have)
            return lazy_eval.to_integer(wide, self.numbers.dtype(want))
        if is_float(want):
            if self.numbers.float64:
                return self.numbers.held(value.astype(np.float64), want)
            if isinstance(want, BFloat16Type) and value.dtype != np.float32:
                value = lazy_eval.to_odd(value)
            return self.numbers.held(value, want)
        return value.astype(self.numbers.dtype(want))

    def bitcast(self, value: Array, have: Attribute, want: Attribute) -> Array:
        raw = np.ascontiguousarray(value)
        if is_float(have):
            raw = (
                f32_to_bf16(raw)
                if isinstance(have, BFloat16Type)
                else raw.astype(numpy_dtype(have))
            )
        bits = raw.reshape(value.shape).view(numpy_dtype(want))
        return self.numbers.taken(bits, want)

    def move(self, op: lazy.MovementOp, args: Sequence[Array]) -> Array:
        """Movement operations; views of the operand where numpy has them."""
        shape = shape_of(op.results[0])
        match op:
            case lazy.ReshapeOp():
                return args[0].reshape(shape)
            case lazy.PermuteOp():
                return args[0].transpose(ints(op.permutation))
            case lazy.ExpandOp():
                return np.broadcast_to(args[0], shape)
            case lazy.SliceOp():
                bounds = zip(ints(op.starts), ints(op.stops), ints(op.steps), strict=True)
                return args[0][tuple(slice(*bound) for bound in bounds)]
            case lazy.FlipOp():
                return np.flip(args[0], ints(op.axes))
            case lazy.WindowOp():
                return window(op, args[0])
            case lazy.ConcatOp():
                return np.concatenate(args, axis=op.axis.value.data)
            case lazy.PadOp():
                type = element_type_of(op.result)
                fill = _literal(cast(Any, op.value).value.data, type)
                result = np.full(shape, self.numbers.taken(fill, type))
                inner = tuple(
                    slice(low, low + (extent - 1) * (gap + 1) + 1 if extent else low, gap + 1)
                    for low, gap, extent in zip(
                        ints(op.low), ints(op.interior), args[0].shape, strict=True
                    )
                )
                result[inner] = args[0]
                return result
            case _:
                raise AssertionError(f"{op.name} is not a movement operation")

    def reduce(self, op: lazy.ReduceOp, value: Array | Product) -> Array:
        if isinstance(value, Product):
            return self.contract(op, value)
        type, axes = element_type_of(op.result), ints(op.axes)
        kind = op.kind.data
        wide = self.numbers.wide(value, type)
        identity = lazy_eval.identity_of(kind, type)
        match kind:
            case lazy.ReduceKind.SUM:
                result = wide.sum(axis=axes, dtype=wide.dtype)
            case lazy.ReduceKind.PROD:
                result = wide.prod(axis=axes, dtype=wide.dtype)
            case lazy.ReduceKind.MAX:
                result = wide.max(axis=axes, initial=identity)
            case lazy.ReduceKind.MIN:
                result = wide.min(axis=axes, initial=identity)
            case lazy.ReduceKind.ANY:
                result = wide.any(axis=axes)
            case lazy.ReduceKind.ALL:
                result = wide.all(axis=axes)
        return self.numbers.held(np.asarray(result), type)

    def contract(self, op: lazy.ReduceOp, product: Product) -> Array:
        type = element_type_of(op.result)
        lhs, rhs = (self.numbers.wide(value, type) for value in (product.lhs, product.rhs))
        return self.numbers.held(sum_of_products(lhs, rhs, ints(op.axes)), type)

    def scan(self, op: lazy.ScanOp, value: Array) -> Array:
        type = element_type_of(op.result)
        function = {
            lazy.ScanKind.SUM: np.add,
            lazy.ScanKind.PROD: np.multiply,
            lazy.ScanKind.MAX: np.maximum,
            lazy.ScanKind.MIN: np.minimum,
        }[op.kind.data]
        wide = self.numbers.wide(value, type)
        running = function.accumulate(wide, axis=op.axis.value.data, dtype=wide.dtype)
        return self.numbers.held(running, type)

    def scatter(self, op: lazy.ScatterOp, *args: Array) -> Array:
        destination, indices, updates = args
        type, axis = element_type_of(op.result), op.axis.value.data
        result = np.moveaxis(self.numbers.wide(destination, type).copy(), axis, 0)
        targets, values = np.moveaxis(indices, axis, 0), np.moveaxis(updates, axis, 0)
        values = self.numbers.wide(values, type)
        frame = np.indices(result.shape[1:], sparse=True)
        combine = {
            lazy.ScatterKind.SET: _newer,
            lazy.ScatterKind.ADD: lazy_eval.arithmetic(lazy.AddOp, type),
            lazy.ScatterKind.MUL: lazy_eval.arithmetic(lazy.MulOp, type),
            lazy.ScatterKind.MAX: lazy_eval.arithmetic(lazy.MaxOp, type),
            lazy.ScatterKind.MIN: lazy_eval.arithmetic(lazy.MinOp, type),
        }[op.kind.data]
        if not len(result):
            return self.numbers.held(np.moveaxis(result, 0, axis), type)
        for target, value in zip(targets, values, strict=True):
            hit = (target >= 0) & (target < len(result))
            where = (np.where(hit, target, 0).astype(np.int64), *frame)
            old = result[where]
            result[where] = np.where(hit, combine(old, value), old)
        return self.numbers.held(np.moveaxis(result, 0, axis), type)


def _newer(old: Array, new: Array) -> Array:
    return new


def _exact(type: Attribute) -> np.dtype[Any]:
    """A dtype that holds a literal of elements ``type``."""
    return np.dtype(np.float64) if is_float(type) else numpy_dtype(type)


def _literal(values: Any, type: Attribute) -> Array:
    """Literals of elements ``type``, exactly; integers may be stated by their bits, whatever the
    sign."""
    if is_float(type) or is_bool(type):
        return np.array(values, dtype=_exact(type))
    mask = (1 << numpy_dtype(type).itemsize * 8) - 1
    bits = np.array(values, dtype=object) & mask
    return np.asarray(bits).astype(np.uint64).astype(numpy_dtype(type))


def window(op: lazy.WindowOp, value: Array) -> Array:
    """Sliding windows as a strided view."""
    shape = shape_of(op.result)
    strides = list(value.strides)
    within: list[int] = []
    axes, steps, dilations = ints(op.axes), ints(op.strides), ints(op.dilations)
    for axis, step, dilation in zip(axes, steps, dilations, strict=True):
        within.append(value.strides[axis] * dilation)
        strides[axis] = value.strides[axis] * step
    return np.lib.stride_tricks.as_strided(value, shape, (*strides, *within), writeable=False)


def gather(source: Array, indices: Array, axis: int) -> Array:
    """Elements along an axis at clamped positions."""
    if indices.size == 0:
        return np.empty(indices.shape, source.dtype)
    last = source.shape[axis] - 1
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(last))
    clamped = np.clip(indices.astype(np.int64), 0, last)
    return np.take_along_axis(source, clamped, axis)


def random_bits(key: Array, shape: Sequence[int]) -> Array:
    """Threefry-2x32 with 20 rounds; element n has the counter (n mod 2^32, n / 2^32)."""
    count = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64)
    x = (count & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    y = (count >> np.uint64(32)).astype(np.uint32)
    keys = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    x, y = x + keys[0], y + keys[1]
    for block in range(5):
        for by in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
            x = x + y
            y = ((y << np.uint32(by)) | (y >> np.uint32(32 - by))) ^ x
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x.reshape(tuple(shape))


@dataclass(frozen=True)
class Product:
    """A product that only a sum reads: it is contracted, never stored."""

    lhs: Array
    rhs: Array


def is_contracted(op: lazy.MulOp) -> bool:
    """Whether a product is large and of floats, and its only reader is a sum."""
    uses = list(op.result.uses)
    reader = uses[0].operation if len(uses) == 1 else None
    return (
        isinstance(reader, lazy.ReduceOp)
        and reader.kind.data == lazy.ReduceKind.SUM
        and is_float(element_type_of(op.result))
        and math.prod(shape_of(op.result)) > 100_000
    )
