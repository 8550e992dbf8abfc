"""The operation ``gpu.shuffle`` of MLIR, which xDSL's ``gpu`` dialect does not have."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, Float64Type, i1, i32, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    eq,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.utils.str_enum import StrEnum


class ShuffleMode(StrEnum):
    """Which lane a lane reads from."""

    XOR = "xor"
    DOWN = "down"
    UP = "up"
    IDX = "idx"


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """How the offset of a shuffle gives the lane to read from.

    Example: `#gpu<shuffle_mode down>`
    """

    name = "gpu.shuffle_mode"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """Every lane of a warp offers a value and reads another lane's; the second result says whether
    that lane exists.

    Example: `%w, %valid = "gpu.shuffle"(%v, %one, %width) <{mode = #gpu<shuffle_mode down>}>`
    """

    name = "gpu.shuffle"

    T: ClassVar = VarConstraint("T", base(Float32Type) | base(Float64Type) | eq(i32) | eq(i64))

    value = operand_def(T)
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    shuffled = result_def(T)
    valid = result_def(i1)

    def __init__(self, value: SSAValue, offset: SSAValue, width: SSAValue, mode: ShuffleMode):
        super().__init__(
            operands=[value, offset, width],
            result_types=[value.type, i1],
            properties={"mode": ShuffleModeAttr(mode)},
        )


def load_shuffle(ctx: Context) -> None:
    """Makes the operation known in a context."""
    ctx.load_op(ShuffleOp)
    ctx.load_attr_or_type(ShuffleModeAttr)
