"""The meaning of the ``nest`` dialect, on numpy arrays: whole axes at once.

Every axis that is open is a dimension of the arrays that hold scalars: an index is a counting
array along its dimension, a scalar an array that broadcasts over the dimensions it depends on. A
reduction adds dimensions at the end and combines them away; a loop in order steps through its axes.
Large spaces run in parts, each small enough to hold, and values go when nothing needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
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
Part = Sequence[range]
"""A range of each of some axes."""
PART = 1 << 19
"""Points of a kernel's space that run at once."""


def register(interpreter: Interpreter, numbers: Numbers) -> None:
    """Makes an interpreter understand level 3 modules."""
    interpreter.register_implementations(NestFunctions(interpreter.module, numbers))


@register_impls
class NestFunctions(InterpreterFunctions):
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
        name = op.kernel.string_value()
        kernel = self.kernels.get(name)
        if kernel is None:
            raise PlaitError(
                f"no kernel @{name} in the module: found "
                f"{', '.join('@' + each for each in self.kernels) or 'none'}"
            )
        have, want = list(op.buffers.types), [buffer.type for buffer in kernel.buffers]
        if have != want:
            raise PlaitError(
                f"the launch of @{name} passes ({', '.join(map(str, have))}), expected "
                f"({', '.join(map(str, want))})"
            )
        KernelRun(kernel, args, self.numbers).run()
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
        self.dead: dict[Block, dict[Operation, list[SSAValue]]] = {}
        self.locals: set[SSAValue] = set()

    def run(self) -> None:
        block = self.kernel.body.block
        for part in parts(self.kernel.extents, PART // deepest(block)):
            self.open(self.kernel.indices, part)
            self.body(block)
            self.close(len(part))

    # Axes

    def open(self, indices: Sequence[SSAValue], part: Part) -> None:
        """Adds axes as the last dimensions of everything, with a range of each."""
        before = len(self.extents)
        self.extents.extend(map(len, part))
        rank = len(self.extents)
        for value, held in self.values.items():
            self.values[value] = held.reshape(held.shape + (1,) * (rank - held.ndim))
        for number, (index, points) in enumerate(zip(indices, part, strict=True)):
            shape = [1] * rank
            shape[before + number] = len(points)
            self.values[index] = np.arange(points.start, points.stop).reshape(shape)

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
        if block not in self.dead:
            self.dead[block] = last_uses(block)
        dead = self.dead[block]
        for op in block.ops:
            self.operation(op)
            for value in dead.get(op, ()):
                self.values.pop(value, None)

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
            case nest.LocalOp():
                self.local(op)
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

    def places(self, op: nest.LoadOp | nest.StoreOp) -> tuple[list[Array], Array | None]:
        """The positions of an access on each axis of its buffer, and where it happens."""
        point = self.point(op.map.data, op.indices)
        if op.buffer in self.locals:
            point = [*self.own_point(), *point]
        inside = None if op.where is None else self.holds(op.where.data, op.indices)
        for axis, (at, extent) in enumerate(zip(point, self.buffers[op.buffer].shape, strict=True)):
            outside = (at < 0) | (at >= extent)
            if outside.any() and (inside is None or (outside & inside).any()):
                raise PlaitError(
                    f"kernel @{self.kernel.sym_name.data}: '{op.name}' with the map "
                    f"{op.map.data} leaves axis {axis} of {op.buffer.type}: expected positions "
                    f"from 0 to {extent - 1}, found {at[outside].flat[0]}"
                )
        return point, inside

    def load(self, op: nest.LoadOp) -> Array:
        buffer = self.buffers[op.buffer]
        point, inside = self.places(op)
        position = np.zeros((1,) * len(self.extents), np.int64)
        for at, extent in zip(point, buffer.shape, strict=True):
            position = position * extent + at
        if inside is None:
            return buffer.reshape(-1)[position]
        if not buffer.size:
            return np.zeros(inside.shape, buffer.dtype)
        loaded = buffer.reshape(-1)[np.where(inside, position, 0)]
        return np.where(inside, loaded, buffer.dtype.type(0))

    def store(self, op: nest.StoreOp) -> None:
        buffer = self.buffers[op.buffer]
        point, where = self.places(op)
        shape = tuple(self.extents)
        inside: Any = () if where is None else np.broadcast_to(where, shape)
        values = np.broadcast_to(self.values[op.value], shape)[inside]
        if point:
            buffer[tuple(np.broadcast_to(at, shape)[inside] for at in point)] = values
        elif values.size:
            # All points store to the only element: the last one wins.
            buffer[()] = values.reshape(-1)[-1]

    def local(self, op: nest.LocalOp) -> None:
        """One more array for each point of the kernel's axes that runs now."""
        type = cast(Any, op.buffer.type)
        shape = (*self.extents, *type.get_shape())
        self.buffers[op.buffer] = np.zeros(shape, self.numbers.dtype(type.element_type))
        self.locals.add(op.buffer)

    def own_point(self) -> list[Array]:
        """Which of the points of the kernel's axes that run now each element is at."""
        rank, found = len(self.extents), list[Array]()
        for axis in range(len(self.kernel.axes)):
            shape = [1] * rank
            shape[axis] = self.extents[axis]
            found.append(np.arange(self.extents[axis]).reshape(shape))
        return found

    # Loops

    def reduce(self, op: nest.ReduceOp) -> None:
        types = [result.type for result in op.res]
        if 0 in op.extents:
            for kind, type, result in zip(op.combine_kinds, types, op.res, strict=True):
                start = np.asarray(identity_of(kind, type)).astype(self.numbers.dtype(type))
                self.values[result] = self.ranked(start)
            return
        room = PART // deepest(op.body.block) // prod(self.extents)
        total: list[list[Array]] | None = None
        for part in parts(op.extents, room):
            found = self.reduce_part(op, part)
            if total is not None:
                pairs = zip(op.combine_kinds, total, found, strict=True)
                found = [self.merged(kind, a, b) for kind, a, b in pairs]
            total = found
        assert total is not None
        values = [value for combined in total for value in combined]
        for result, value in zip(op.res, values, strict=True):
            self.values[result] = self.ranked(value)

    def reduce_part(self, op: nest.ReduceOp, part: Part) -> list[list[Array]]:
        """What each kind combines over a part of the axes."""
        self.open(op.indices, part)
        self.body(op.body.block)
        full = tuple(self.extents)
        yielded = [np.broadcast_to(self.values[value], full) for value in op.yielded]
        axes = tuple(range(len(full) - len(part), len(full)))
        results: list[list[Array]] = []
        for kind in op.combine_kinds:
            taken, yielded = yielded[: kind.width], yielded[kind.width :]
            results.append(self.combined(kind, taken, axes))
        self.close(len(part))
        return results

    def merged(
        self, kind: nest.CombineKind, first: Sequence[Array], second: Sequence[Array]
    ) -> list[Array]:
        """What a kind combines over two parts, the first before the second."""
        both = [np.stack(pair, axis=-1) for pair in zip(first, second, strict=True)]
        return self.combined(kind, both, (both[0].ndim - 1,))

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
            self.open(op.indices, [range(at, at + 1) for at in point])
            rank = len(self.extents)
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


def parts(extents: Sequence[int], room: int) -> Iterator[Part]:
    """Splits a space, outer axes first, into parts of at most ``room`` points, in row-major order;
    of one point where there is no room."""
    sizes: list[int] = []
    for extent in reversed(extents):
        size = max(1, min(extent, room))
        sizes.insert(0, size)
        room = room // size if size == extent else 1
    starts = [range(0, extent, size) for extent, size in zip(extents, sizes, strict=True)]
    for corner in product(*starts):
        yield [
            range(at, min(at + size, extent))
            for at, size, extent in zip(corner, sizes, extents, strict=True)
        ]


def deepest(block: Block) -> int:
    """The most points that loops within a body run at once at one point of it, at most PART."""
    most = 1
    for op in block.ops:
        if isinstance(op, nest.LoopOp):
            own = 1 if isinstance(op, nest.SequentialOp) else max(prod(op.extents), 1)
            most = max(most, own * deepest(op.body.block))
    return min(most, PART)


def last_uses(block: Block) -> dict[Operation, list[SSAValue]]:
    """The values that a body defines, by the operation of the body after which none is needed."""
    last: dict[SSAValue, Operation] = {}
    for op in block.ops:
        for result in op.results:
            last[result] = op
        for inner in op.walk():
            for operand in inner.operands:
                if operand in last:
                    last[operand] = op
    dead: dict[Operation, list[SSAValue]] = {}
    for value, op in last.items():
        if not isinstance(op, nest.YieldOp):
            dead.setdefault(op, []).append(value)
    return dead
