"""Flattens the host function of a level 4 module: buffers, launches and results, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, func, gpu, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.hints import isa

from plait.errors import PlaitError

Array = NDArray[Any]


def element_dtype(type: Attribute) -> np.dtype[Any]:
    """The numpy type that carries an element: bf16 as uint16 bit patterns."""
    if isinstance(type, BFloat16Type):
        return np.dtype(np.uint16)
    if isinstance(type, Float16Type):
        return np.dtype(np.float16)
    if isinstance(type, Float32Type):
        return np.dtype(np.float32)
    if isinstance(type, Float64Type):
        return np.dtype(np.float64)
    if isinstance(type, IndexType):
        return np.dtype(np.int64)
    if isa(type, IntegerType):
        width = type.width.data
        if width == 1:
            return np.dtype(np.bool_)
        unsigned = type.signedness.data == Signedness.UNSIGNED
        return np.dtype(f"{'uint' if unsigned else 'int'}{width}")
    raise DiagnosticException(f"no numpy type for element type {type}")


@dataclass(frozen=True)
class Buffer:
    """A piece of memory the plan uses."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Its size."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class View:
    """A strided view of a buffer; strides and offset in elements."""

    buffer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    whole: bool
    """Whether it is the buffer itself in its own shape."""


@dataclass(frozen=True)
class Launch:
    """One kernel call."""

    kernel: str
    arguments: tuple[View, ...]
    begin: int
    end: int


@dataclass
class HostPlan:
    """What ``@main`` does, in order."""

    buffers: list[Buffer] = field(default_factory=list[Buffer])
    arguments: list[int] = field(default_factory=list[int])
    constants: dict[int, Array] = field(default_factory=dict[int, Array])
    launches: list[Launch] = field(default_factory=list[Launch])
    copies: dict[int, list[tuple[View, View]]] = field(
        default_factory=dict[int, list[tuple[View, View]]]
    )
    """Buffer copies (source, target) to do before the launch of that number."""
    results: list[View] = field(default_factory=list[View])
    result_dtypes: list[np.dtype[Any]] = field(default_factory=list[np.dtype[Any]])
    aliases: dict[int, int] = field(default_factory=dict[int, int])
    """Result number to the argument that must hold it afterwards."""

    def check_count(self, arrays: Sequence[Any]) -> None:
        """Raises :class:`PlaitError` unless there is one array for each argument."""
        if len(arrays) != len(self.arguments):
            raise PlaitError(
                f"run: expected {len(self.arguments)} arrays, found {len(arrays)}; pass one per "
                "input"
            )

    def check_type(self, index: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Raises :class:`PlaitError` unless an argument may have this shape and dtype."""
        info = self.buffers[self.arguments[index]]
        if shape != info.shape:
            raise PlaitError(f"run: input {index}: expected shape {info.shape}, found {shape}")
        if not _same_element(dtype, info.dtype):
            raise PlaitError(
                f"run: input {index}: expected dtype {info.dtype}, found {dtype}; "
                "convert it with astype"
            )

    def check_array(self, index: int, value: Any) -> Array:
        """An argument in host memory as an array; raises :class:`PlaitError` if it does not fit."""
        array = np.asarray(value)
        self.check_type(index, array.shape, array.dtype)
        if index in self.aliases.values() and (array is not value or not array.flags.writeable):
            raise PlaitError(
                f"run: input {index} is updated in place: expected a writeable numpy "
                f"array, found {'a read-only one' if array is value else type(value)}"
            )
        return array

    def check(self, arrays: Sequence[Any]) -> list[Array]:
        """The arguments as arrays; raises :class:`PlaitError` for those that do not fit."""
        self.check_count(arrays)
        return [self.check_array(index, value) for index, value in enumerate(arrays)]


def _same_element(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Equal, or integers of one width: buffers do not know signs. Bytes are in the machine's
    order."""
    if found == wanted:
        return True
    integers = found.kind in "iu" and wanted.kind in "iu"
    return integers and found.itemsize == wanted.itemsize and found.isnative


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(strides[::-1])


def _dictionary(attributes: Any, index: int) -> dict[str, Attribute]:
    if attributes is None or index >= len(attributes.data):
        return {}
    entry = attributes.data[index]
    return dict(entry.data) if isinstance(entry, DictionaryAttr) else {}


class _Reader:
    """Walks the host function once."""

    def __init__(self, module: ModuleOp, main: func.FuncOp) -> None:
        self.plan = HostPlan()
        self.views: dict[SSAValue, View] = {}
        self.numbers: dict[SSAValue, int] = {}
        self.main = main
        self.globals = {
            op.sym_name.data: op for op in module.body.block.ops if isinstance(op, memref.GlobalOp)
        }
        self.global_buffers: dict[str, int] = {}

    def new_buffer(self, type: Attribute, override: Attribute | None = None) -> int:
        assert isa(type, MemRefType)
        shape = tuple(type.get_shape())
        element = type.element_type if override is None else override
        self.plan.buffers.append(Buffer(shape, element_dtype(element)))
        return len(self.plan.buffers) - 1

    def bind(self, value: SSAValue, buffer: int) -> None:
        shape = self.plan.buffers[buffer].shape
        self.views[value] = View(buffer, shape, _row_major(shape), 0, True)

    def run(self) -> HostPlan:
        block = self.main.body.block
        for index, argument in enumerate(block.args):
            override = _dictionary(self.main.arg_attrs, index).get("plait.element")
            buffer = self.new_buffer(argument.type, override)
            self.plan.arguments.append(buffer)
            self.bind(argument, buffer)
        for op in block.ops:
            self.step(op)
        return self.plan

    def step(self, op: Any) -> None:
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            self.numbers[op.result] = op.value.value.data
        elif isinstance(op, memref.AllocOp):
            self.bind(op.memref, self.new_buffer(op.memref.type))
        elif isinstance(op, memref.GetGlobalOp):
            self.constant(op)
        elif isinstance(op, memref.ReinterpretCastOp):
            self.view(op)
        elif isinstance(op, memref.CopyOp):
            where = self.plan.copies.setdefault(len(self.plan.launches), [])
            where.append((self.views[op.source], self.views[op.destination]))
        elif isinstance(op, func.CallOp):
            self.call(op)
        elif isinstance(op, gpu.LaunchFuncOp):
            self.launch(op)
        elif isinstance(op, func.ReturnOp):
            self.finish(op)
        elif not isinstance(op, memref.DeallocOp):
            raise DiagnosticException(
                f"the host function has '{op.name}'; expected memref.alloc, "
                "memref.get_global, memref.reinterpret_cast, func.call and func.return"
            )

    def constant(self, op: memref.GetGlobalOp) -> None:
        name = op.name_.string_value()
        if name not in self.global_buffers:
            buffer = self.global_buffers[name] = self.new_buffer(op.memref.type)
            value = self.globals[name].initial_value
            if not isinstance(value, DenseIntOrFPElementsAttr):
                raise DiagnosticException(f"memref.global @{name} needs a dense value")
            self.plan.constants[buffer] = dense_array(value, self.plan.buffers[buffer])
        self.bind(op.memref, self.global_buffers[name])

    def view(self, op: memref.ReinterpretCastOp) -> None:
        source = self.views[op.source]
        if op.offsets or op.sizes or any(stride not in self.numbers for stride in op.strides):
            raise DiagnosticException("memref.reinterpret_cast on the host must be static")
        shape = tuple(op.static_sizes.get_values())
        dynamic = iter(op.strides)
        strides = tuple(
            self.numbers[next(dynamic)] if stride == DYNAMIC_INDEX else stride
            for stride in op.static_strides.get_values()
        )
        offset = op.static_offsets.get_values()[0]
        base = self.views[op.source].buffer
        whole = offset == 0 and shape == self.plan.buffers[base].shape
        whole = whole and strides == _row_major(shape)
        self.views[op.result] = View(source.buffer, shape, strides, offset, whole)

    def call(self, op: func.CallOp) -> None:
        views: list[View] = []
        bounds: list[int] = []
        for operand in op.arguments:
            if operand in self.views:
                views.append(self.views[operand])
            else:
                bounds.append(self.numbers[operand])
        begin, end = bounds if len(bounds) == 2 else (0, 1)
        name = op.callee.string_value()
        self.plan.launches.append(Launch(name, tuple(views), begin, end))

    def launch(self, op: gpu.LaunchFuncOp) -> None:
        """A launch over the grid that the kernel itself states."""
        views = tuple(self.views[operand] for operand in op.kernelOperands)
        name = op.kernel.nested_references.data[-1].data
        self.plan.launches.append(Launch(name, views, 0, 1))

    def finish(self, op: func.ReturnOp) -> None:
        for index, operand in enumerate(op.arguments):
            view = self.views[operand]
            self.plan.results.append(view)
            attributes = _dictionary(self.main.res_attrs, index)
            override = attributes.get("plait.element")
            dtype = self.plan.buffers[view.buffer].dtype
            self.plan.result_dtypes.append(element_dtype(override) if override else dtype)
            target = attributes.get("lazy.aliases")
            if isinstance(target, IntegerAttr):
                self.plan.aliases[index] = target.value.data


def dense_array(value: DenseIntOrFPElementsAttr, buffer: Buffer) -> Array:
    """A dense constant as an array of the buffer's type."""
    count = prod(buffer.shape)
    element = value.get_element_type()
    boolean = isa(element, IntegerType) and element.width.data == 1
    if boolean or isinstance(element, BFloat16Type):
        numbers = np.array(value.get_values(), dtype=np.float32)
        if boolean:
            flat = numbers.astype(np.bool_)
        else:
            bits = numbers.view(np.uint32)
            flat = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    else:
        flat = np.frombuffer(value.data.data, dtype=buffer.dtype)
    if flat.size == 1 and count != 1:
        flat = np.broadcast_to(flat, (count,))
    return np.ascontiguousarray(flat).reshape(buffer.shape)


def read_host(module: ModuleOp, name: str) -> HostPlan:
    """The plan of host function ``name``."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return _Reader(module, op).run()
    raise DiagnosticException(f"the module has no function '@{name}'")
