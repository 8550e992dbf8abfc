"""Folding of ``lazy`` operations: what changes nothing, and arithmetic on small constants.

Folding keeps IEEE arithmetic exactly: no identity that a negative zero or a NaN would break.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy import element_type_of, shape_of
from plait.dialects.lazy_constants import splat_scalar
from plait.dialects.lazy_numpy import Evaluator, Numbers
from plait.dtypes import Array, is_float

FOLDED_ELEMENTS = 1024
"""Results of more elements are not folded: a dense attribute holds every one of them."""

Fold = Sequence[SSAValue | Attribute] | None


def fold(op: lazy.LazyOp) -> Fold:
    """What the operation folds to, or None."""
    kept = unchanged(op)
    if kept is not None:
        return (kept,)
    constant = folded_constant(op)
    return None if constant is None else (constant,)


def unchanged(op: lazy.LazyOp) -> SSAValue | None:
    """The operand that the result always equals, if there is one."""
    match op:
        case lazy.MaterializeOp() | lazy.ConstantOp():
            return None
        case lazy.FlipOp():
            extents, axes = shape_of(op.operand), cast(Any, op.axes).get_values()
            return op.operand if all(extents[axis] == 1 for axis in axes) else None
        case lazy.PermuteOp():
            order = list(cast(Any, op.permutation).get_values())
            return op.operand if order == sorted(order) else None
        case lazy.ConcatOp():
            return op.inputs[0] if len(op.inputs) == 1 else None
        case lazy.WindowOp():
            return None
        case lazy.MovementOp() | lazy.CastOp() | lazy.BitcastOp():
            return op.operands[0] if op.operands[0].type == op.results[0].type else None
        case lazy.ReduceOp():
            return op.operand if not cast(Any, op.axes).get_values() else None
        case lazy.SelectOp():
            return op.on_true if op.on_true is op.on_false else None
        case lazy.NotOp() if isinstance(op.operand.owner, lazy.NotOp):
            return op.operand.owner.operand
        case lazy.MulOp() | lazy.DivOp() if splat_of(op.rhs) == 1:
            return op.lhs
        case lazy.MulOp() if not is_float(element_type_of(op.lhs)):
            zeros = (value for value in op.operands if splat_of(value) == 0)
            return next(zeros, None)
        case lazy.SubOp():
            return op.lhs if _is_positive_zero(splat_of(op.rhs)) else None
        case lazy.AddOp() if not is_float(element_type_of(op.lhs)):
            return op.lhs if splat_of(op.rhs) == 0 else None
        case _:
            return None


def _is_positive_zero(value: float | None) -> bool:
    """x - 0.0 is x for every x; x - -0.0 is not for x = -0.0."""
    return value is not None and value == 0 and not np.signbit(value)


def splat_of(value: SSAValue) -> float | None:
    """The one number a small constant consists of, through views; or None."""
    while isinstance(value.owner, lazy.ReshapeOp | lazy.ExpandOp | lazy.PermuteOp):
        value = value.owner.operands[0]
    dense = constant_of(value)
    if dense is None:
        return None
    return splat_scalar(dense)


def constant_of(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    """The elements of a constant of at most :data:`FOLDED_ELEMENTS`."""
    op = value.owner
    if isinstance(op, lazy.ConstantOp) and prod(shape_of(value)) <= FOLDED_ELEMENTS:
        return op.value
    return None


def folded_constant(op: lazy.LazyOp, masks: bool = False) -> DenseIntOrFPElementsAttr | None:
    """The constant that an operation on small constants computes.

    One number everywhere stays so, unless ``masks``: a mask made of padded ones, say, is left to be
    recognised.
    """
    if not op.operands or isinstance(op, lazy.MaterializeOp | lazy.RngBitsOp):
        return None
    if prod(shape_of(op.results[0])) > FOLDED_ELEMENTS:
        return None
    operands = [constant_of(operand) for operand in op.operands]
    if any(dense is None for dense in operands):
        return None
    numbers = Numbers(float64=False)
    evaluator = Evaluator(numbers)
    with np.errstate(all="ignore"):
        arrays: list[Array] = [evaluator.source(cast(Any, v.owner), ()) for v in op.operands]
        result = evaluator.value(op, arrays)
    if not isinstance(result, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        return None
    listed = any(splat_of(operand) is None for operand in op.operands)
    values = result.reshape(-1).tolist()
    if not masks and not listed and len(set(values)) > 1:
        return None
    return cast(Any, DenseIntOrFPElementsAttr).from_list(op.results[0].type, values)
