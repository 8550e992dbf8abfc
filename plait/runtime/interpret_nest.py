"""The meaning of the ``nest`` dialect, on numpy arrays: whole axes at once.

Every axis that is open is a dimension of the arrays that hold scalars: an index is a counting
array along its dimension, a scalar an array that broadcasts over the dimensions it depends on. A
reduction adds dimensions at the end and combines them away; a loop in order steps through its axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstraintKind, AffineExpr, AffineMap, AffineSet

from plait.dialects import nest
from plait.dialects.lazy_eval import identity_of
from plait.dialects.lazy_numpy import Numbers
from plait.dtypes import Array, is_float
from plait.errors import PlaitError
from plait.runtime.interpret_scalars import ScalarMeaning

Values = dict[SSAValue, Array]
LARGEST_SPACE = 40_000_000
"""Points of a kernel's space that are held at once."""


def register(interpreter: Interpreter, numbers: Numbers) -> None:
    """Makes an interpreter understand level 3 modules."""
    interpreter.register_implementations(HostFunctions(interpreter.module, numbers))


@register_impls
class HostFunctions(InterpreterFunctions):
    """What the host function of a level 3 module does: buffers are arrays that launches fill."""

    def __init__(self, module: Operation, numbers: Numbers):
        assert isinstance(module, ModuleOp)
        self.numbers = numbers
        self.kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, nest.KernelOp)}
        self.constants = {
            op.sym_name.data: op for op in module.ops if isinstance(op, memref.GlobalOp)
        }

    @impl(arith.ConstantOp)
    def run_constant(
        self, interpreter: Interpreter, op: arith.ConstantOp, args: tuple[Any, ...]
    ) -> PythonValues:
        return (cast(Any, op.value).value.data,)

    @impl(memref.AllocOp)
    def run_alloc(
        self, interpreter: Interpreter, op: memref.AllocOp, args: tuple[Any, ...]
    ) -> PythonValues:
        type = cast(Any, op.memref.type)
        return (np.zeros(type.get_shape(), self.numbers.dtype(type.element_type)),)

    @impl(memref.GetGlobalOp)
    def run_get_global(
        self, interpreter: Interpreter, op: memref.GetGlobalOp, args: tuple[Any, ...]
    ) -> PythonValues:
        value = cast(Any, self.constants[op.name_.string_value()].initial_value)
        element = value.get_element_type()
        dtype = np.float64 if is_float(element) else self.numbers.dtype(element)
        listed = np.array(list(value.iter_values())).astype(dtype)
        return (self.numbers.taken(listed.reshape(value.get_shape()), element),)

    @impl(memref.ReinterpretCastOp)
    def run_view(
        self, interpreter: Interpreter, op: memref.ReinterpretCastOp, args: tuple[Any, ...]
    ) -> PythonValues:
        source = np.ascontiguousarray(args[0]).reshape(-1)
        shape, strides = (
            tuple(cast(Any, a).get_values()) for a in (op.static_sizes, op.static_strides)
        )
        given = iter(args[1:])
        strides = tuple(next(given) if s == DYNAMIC_INDEX else s for s in strides)
        [offset] = cast(Any, op.static_offsets).get_values()
        steps = [stride * source.itemsize for stride in strides]
        return (np.lib.stride_tricks.as_strided(source[offset:], shape, steps).copy(),)

    @impl(nest.LaunchOp)
    def run_launch(
        self, interpreter: Interpreter, op: nest.LaunchOp, args: tuple[Any, ...]
    ) -> PythonValues:
        KernelRun(self.kernels[op.kernel.string_value()], args, self.numbers).run()
        return ()


class KernelRun:
    """One launch."""

    def __init__(self, kernel: nest.KernelOp, buffers: Sequence[Array], numbers: Numbers):
        self.kernel = kernel
        self.numbers = numbers
        self.buffers = dict(zip(kernel.buffers, buffers, strict=True))
        self.scalars = ScalarMeaning(numbers)
        self.values: Values = {}
        self.extents: list[int] = []

    def run(self) -> None:
        if 0 in self.kernel.extents:
            return
        self.open(self.kernel.indices, self.kernel.extents)
        self.body(self.kernel.body.block)

    # Axes

    def open(self, indices: Sequence[SSAValue], extents: Sequence[int]) -> None:
        """Adds axes as the last dimensions of everything."""
        before = len(self.extents)
        self.extents.extend(extents)
        if int(np.prod(self.extents, dtype=np.int64)) > LARGEST_SPACE:
            raise PlaitError(
                f"the numpy level holds {LARGEST_SPACE} points of a kernel at once; "
                f"'{self.kernel.sym_name.data}' has {self.extents}: run it on another backend"
            )
        rank = len(self.extents)
        for value in self.values:
            held = self.values[value]
            self.values[value] = held.reshape(held.shape + (1,) * (rank - held.ndim))
        for number, (index, extent) in enumerate(zip(indices, extents, strict=True)):
            shape = [1] * rank
            shape[before + number] = extent
            self.values[index] = np.arange(extent).reshape(shape)

    def close(self, count: int) -> None:
        """Removes the last axes; values that depend on them are dropped."""
        del self.extents[len(self.extents) - count :]
        rank = len(self.extents)
        kept: Values = {}
        for value, held in self.values.items():
            if all(extent == 1 for extent in held.shape[rank:]):
                kept[value] = held.reshape(held.shape[:rank])
        self.values = kept

    # Operations

    def body(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        match op:
            case nest.LoadOp():
                self.values[op.result] = self.load(op)
            case nest.StoreOp():
                self.store(op)
            case nest.TestOp():
                self.values[op.result] = self.holds(op.set.data, op.indices)
            case nest.IndexOp():
                self.values[op.result] = self.point(op.map.data, op.indices)[0]
            case nest.ReduceOp():
                self.reduce(op)
            case nest.SequentialOp():
                self.sequential(op)
            case nest.YieldOp():
                pass
            case _:
                operands = [self.values[operand] for operand in op.operands]
                result = self.scalars.value(op, operands)
                self.values[op.results[0]] = self.ranked(np.asarray(result))

    def ranked(self, value: Array) -> Array:
        return value.reshape((1,) * (len(self.extents) - value.ndim) + value.shape)

    def point(self, map: AffineMap, indices: Sequence[SSAValue]) -> list[Array]:
        dims = [self.values[index] for index in indices]
        return [self.ranked(np.asarray(evaluate(expr, dims))) for expr in map.results]

    def holds(self, set: AffineSet, indices: Sequence[SSAValue]) -> Array:
        dims = [self.values[index] for index in indices]
        total: Array = np.ones((1,) * len(self.extents), np.bool_)
        for constraint in set.constraints:
            left, right = (evaluate(e, dims) for e in (constraint.lhs, constraint.rhs))
            compare: Any = {
                AffineConstraintKind.ge: np.greater_equal,
                AffineConstraintKind.le: np.less_equal,
                AffineConstraintKind.eq: np.equal,
            }[constraint.kind]
            total = total & compare(left, right)
        return total

    def load(self, op: nest.LoadOp) -> Array:
        buffer = self.buffers[op.buffer]
        point = self.point(op.map.data, op.indices)
        if op.where is None:
            return self.ranked(np.asarray(buffer[tuple(point)]))
        inside = self.holds(op.where.data, op.indices)
        if not buffer.size:
            return np.zeros(inside.shape, buffer.dtype)
        clipped = tuple(
            np.clip(at, 0, extent - 1) for at, extent in zip(point, buffer.shape, strict=True)
        )
        return np.where(inside, self.ranked(np.asarray(buffer[clipped])), buffer.dtype.type(0))

    def store(self, op: nest.StoreOp) -> None:
        buffer = self.buffers[op.buffer]
        point = self.point(op.map.data, op.indices)
        value = self.values[op.value]
        shape = tuple(self.extents)
        inside: Any = ()
        if op.where is not None:
            inside = np.broadcast_to(self.holds(op.where.data, op.indices), shape)
        values = np.broadcast_to(value, shape)[inside]
        if not point:
            # All points store to the only element: the last one wins.
            if values.size:
                buffer[()] = values.reshape(-1)[-1]
            return
        places = [np.broadcast_to(at, shape)[inside] for at in point]
        buffer[tuple(places)] = values

    # Loops

    def reduce(self, op: nest.ReduceOp) -> None:
        count = len(op.axes)
        types = [result.type for result in op.res]
        if 0 in op.extents:
            for kind, type, result in zip(op.combine_kinds, types, op.res, strict=True):
                start = np.asarray(identity_of(kind, type)).astype(self.numbers.dtype(type))
                self.values[result] = self.ranked(start)
            return
        self.open(op.indices, op.extents)
        self.body(op.body.block)
        full = tuple(self.extents)
        yielded = [np.broadcast_to(self.values[value], full) for value in op.yielded]
        axes = tuple(range(len(full) - count, len(full)))
        results: list[Array] = []
        for kind in op.combine_kinds:
            taken, yielded = yielded[: kind.width], yielded[kind.width :]
            results += self.combined(kind, taken, axes)
        self.close(count)
        for result, value in zip(op.res, results, strict=True):
            self.values[result] = self.ranked(value)

    def combined(
        self, kind: nest.CombineKind, values: Sequence[Array], axes: tuple[int, ...]
    ) -> list[Array]:
        first = values[0]
        match kind:
            case nest.CombineKind.SUM:
                return [np.asarray(first.sum(axes, dtype=first.dtype))]
            case nest.CombineKind.PROD:
                return [np.asarray(first.prod(axes, dtype=first.dtype))]
            case nest.CombineKind.MAX:
                return [np.asarray(first.max(axes))]
            case nest.CombineKind.MIN:
                return [np.asarray(first.min(axes))]
            case nest.CombineKind.ANY:
                return [np.asarray(first.any(axes))]
            case nest.CombineKind.ALL:
                return [np.asarray(first.all(axes))]
            case _:
                lead = first.shape[: len(first.shape) - len(axes)]
                rows = first.reshape(*lead, -1)
                function = np.argmax if kind == nest.CombineKind.ARGMAX else np.argmin
                at = np.asarray(function(rows, axis=-1))[..., None]
                places = values[1].reshape(*lead, -1)
                return [np.take_along_axis(part, at, -1)[..., 0] for part in (rows, places)]

    def sequential(self, op: nest.SequentialOp) -> None:
        carried = [self.values[init] for init in op.inits]
        count = len(op.axes)
        for point in np.ndindex(*op.extents):
            self.open(op.indices, [1] * count)
            rank = len(self.extents)
            for index, position in zip(op.indices, point, strict=True):
                self.values[index] = np.full((1,) * rank, position)
            for argument, value in zip(op.carried, carried, strict=True):
                self.values[argument] = value.reshape(value.shape + (1,) * (rank - value.ndim))
            self.body(op.body.block)
            yielded = [self.values[value] for value in op.yielded]
            carried = [v.reshape(v.shape[: rank - count]) for v in yielded]
            self.close(count)
        for result, value in zip(op.res, carried, strict=True):
            self.values[result] = value


def evaluate(expr: AffineExpr, dims: Sequence[Array]) -> Any:
    """An affine expression on arrays of indices."""
    return expr.eval(cast(Any, dims), ())
