"""Along which axis neighbouring lanes of a GPU would find neighbouring elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FixedBitwidthType, MemRefType
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from plait.dialects import nest

BYTES = 16
"""The widest access."""
LANES = 32
SECTOR = 8
"""Elements that memory delivers together, about."""


def rows_are_contiguous(kernel: nest.KernelOp, loops: Sequence[nest.ReduceOp]) -> bool:
    """Whether lanes along the innermost axis of the reductions would fetch no more of memory than
    lanes along the innermost axis of the kernel."""
    point = _innermost(kernel)
    along_rows = along_points = 0
    for loop in loops:
        axis = _innermost(loop)
        for op in loop.walk():
            if isinstance(op, nest.LoadOp):
                along_rows += fetched(op, axis)
                along_points += fetched(op, point)
    return 0 < along_rows <= along_points


def vector_width(kernel: nest.KernelOp) -> int:
    """How many neighbouring points along the innermost axis of a kernel without loops have 16
    bytes together in every buffer of the widest elements; 1 where none has."""
    axis = _innermost(kernel)
    if axis is None or axis is not kernel.indices[-1]:
        return 1
    together: list[int] = []
    for op in kernel.walk():
        if isinstance(op, nest.LoopOp):
            return 1
        if isinstance(op, nest.LoadOp | nest.StoreOp) and op.where is None:
            together += [_bytes(op)] if step(op, axis) == 1 else []
    width = BYTES // (max(together, default=0) or BYTES)
    while kernel.axes.data[-1].extent.data % width:
        width //= 2
    return width


def _bytes(op: nest.LoadOp | nest.StoreOp) -> int:
    """The size of an element; 0 for one that vectors cannot have."""
    type = op.buffer.type
    assert isa(type, MemRefType)
    element = type.element_type
    is_number = isinstance(element, FixedBitwidthType) and element.bitwidth >= 8
    return element.size if is_number else 0


def _innermost(op: nest.KernelOp | nest.LoopOp) -> SSAValue | None:
    """The innermost axis of more than one point."""
    axes = zip(op.indices, op.axes, strict=True)
    return next((value for value, axis in reversed([*axes]) if axis.extent.data > 1), None)


def fetched(load: nest.LoadOp, axis: SSAValue | None) -> int:
    """How many pieces of memory lanes along an axis fetch."""
    if axis is None:
        return LANES
    return min(LANES, max(1, LANES // SECTOR * step(load, axis)))


def step(access: nest.LoadOp | nest.StoreOp, axis: SSAValue) -> int:
    """How far apart an access finds the elements of neighbours along an axis."""
    return abs(_offset(access, axis, 1) - _offset(access, axis, 0))


def _offset(load: nest.LoadOp | nest.StoreOp, axis: SSAValue, at: int) -> int:
    """Where an access is, row-major, with an axis at some position and all others at 0."""
    type = load.buffer.type
    assert isa(type, MemRefType)
    indices = [_value(index, axis, at) for index in load.indices]
    total = 0
    for extent, position in zip(type.get_shape(), load.map.data.eval(indices, []), strict=True):
        total = total * extent + position
    return total


def _value(index: SSAValue, axis: SSAValue, at: int) -> int:
    """An index with an axis at some position and all else at 0."""
    if index is axis:
        return at
    if isinstance(index.owner, nest.IndexOp) and axis in index.owner.indices:
        inner = [at if value is axis else 0 for value in index.owner.indices]
        return index.owner.map.data.eval(inner, [])[0]
    return 0
