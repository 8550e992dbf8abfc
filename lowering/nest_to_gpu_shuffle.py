"""Values from lane to lane of a warp, of every type: shuffles move 32 or 64 bits."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    IntegerType,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects.gpu_shuffle import ShuffleMode, ShuffleOp

Add = Callable[[Operation], SSAValue]
Constant = Callable[[float | int, Attribute], SSAValue]
WARP = 32
"""Lanes of a warp."""


def shuffle(
    add: Add, constant: Constant, value: SSAValue, mode: ShuffleMode, offset: int, wide: bool
) -> SSAValue:
    """The value of the lane that ``mode`` and ``offset`` name; ``wide`` indices are 64-bit."""
    carried = _carried(add, value, wide)
    lanes = [constant(offset, i32), constant(WARP, i32)]
    return _restored(add, add(ShuffleOp(carried, *lanes, mode)), value.type)


def _carried(add: Add, value: SSAValue, wide: bool) -> SSAValue:
    """A value as one that shuffles take."""
    match value.type:
        case Float16Type() | BFloat16Type():
            return add(arith.ExtUIOp(add(arith.BitcastOp(value, i16)), i32))
        case IndexType():
            return add(arith.IndexCastOp(value, i64 if wide else i32))
        case IntegerType() if value.type.width.data < 32:  # pyright: ignore[reportUnknownMemberType]
            return add(arith.ExtUIOp(value, i32))
        case _:
            return value


def _restored(add: Add, carried: SSAValue, type: Attribute) -> SSAValue:
    """What `_carried` made of a value of a type, as that again."""
    match type:
        case Float16Type() | BFloat16Type():
            return add(arith.BitcastOp(add(arith.TruncIOp(carried, i16)), type))
        case IndexType():
            return add(arith.IndexCastOp(carried, type))
        case IntegerType() if type.width.data < 32:  # pyright: ignore[reportUnknownMemberType]
            return add(arith.TruncIOp(carried, type))
        case _:
            return carried
