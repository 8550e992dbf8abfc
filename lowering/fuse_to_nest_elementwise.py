"""Scalar code of any elementwise operation, and of one step of a scan or scatter."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects import lazy
from plait.dtypes import is_float
from plait.lowering.fuse_to_nest_floats import float_binary, float_operation
from plait.lowering.fuse_to_nest_integers import integer_binary, integer_operation
from plait.lowering.fuse_to_nest_scalars import Scalars

_COMBINE: dict[str, type[lazy.BinaryOp]] = {
    "sum": lazy.AddOp,
    "add": lazy.AddOp,
    "prod": lazy.MulOp,
    "mul": lazy.MulOp,
    "max": lazy.MaxOp,
    "min": lazy.MinOp,
}


def elementwise(scalars: Scalars, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """The element that an elementwise operation makes of an element of each operand."""
    type = lazy.element_type_of(op.operands[0])
    match op:
        case lazy.CastOp():
            return scalars.cast(operands[0], type, lazy.element_type_of(op.result))
        case lazy.BitcastOp():
            return scalars.bitcast(operands[0], type, lazy.element_type_of(op.result))
        case lazy.SelectOp():
            return scalars.select(operands[0], operands[1], operands[2])
        case lazy.CompareOp():
            return scalars.compare(op.predicate.data, type, operands[0], operands[1])
        case _:
            emitter = float_operation if is_float(type) else integer_operation
            return emitter(scalars, op, type, operands)


def combine(scalars: Scalars, kind: str, type: Attribute, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """One step of a scan or scatter on elements ``type``: ``sum prod max min``, ``add mul set``."""
    if kind == "set":
        return rhs
    emitter = float_binary if is_float(type) else integer_binary
    return emitter(scalars, _COMBINE[kind], type, lhs, rhs)
