"""Slices move towards the inputs: what nobody reads is not computed."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.passes.simplify.builder import Builder, owner_of


def narrow(op: Operation, build: Builder) -> SSAValue | None:
    """A slice of a computed value that nothing else uses is the same on slices."""
    if not isinstance(op, lazy.SliceOp) or 0 in lazy.shape_of(op.result):
        return None
    made = owner_of(op.operand)
    if made is None or not _is_only_reader(op):
        return None
    match made:
        case lazy.ElementwiseOp():
            return _again(made, [_sliced(op, value, build) for value in made.operands], op, build)
        case lazy.MaterializeOp():
            return build.add(lazy.MaterializeOp(_sliced(op, made.operands[0], build)))
        case lazy.ReduceOp():
            return _of_reduce(made, op, build)
        case _:
            return None


def _is_only_reader(op: lazy.SliceOp) -> bool:
    """Whether whatever else uses the operand is itself unused."""
    users = {use.operation for use in op.operand.uses if use.operation is not op}
    return all(user.results and not any(r.uses for r in user.results) for user in users)


def _bounds(op: lazy.SliceOp) -> tuple[list[int], list[int], list[int]]:
    starts, stops, steps = (
        list(cast(Any, bound).get_values()) for bound in (op.starts, op.stops, op.steps)
    )
    return starts, stops, steps


def _sliced(op: lazy.SliceOp, value: SSAValue, build: Builder) -> SSAValue:
    return build.add(lazy.SliceOp(value, *_bounds(op)))


def _again(
    made: lazy.ElementwiseOp, operands: list[SSAValue], op: lazy.SliceOp, build: Builder
) -> SSAValue:
    """The elementwise operation on other operands."""
    element = lazy.element_type_of(made.results[0])
    type_ = TensorType(element, lazy.shape_of(op.result))
    return build.add(
        type(made).create(operands=operands, properties=made.properties, result_types=[type_])
    )


def _of_reduce(made: lazy.ReduceOp, op: lazy.SliceOp, build: Builder) -> SSAValue:
    """The reduce of a slice along the axes that are kept."""
    axes = set(cast(Any, made.axes).get_values())
    shape = lazy.shape_of(made.operand)
    kept = iter(zip(*_bounds(op), strict=True))
    bounds = [(0, extent, 1) if axis in axes else next(kept) for axis, extent in enumerate(shape)]
    starts, stops, steps = (list(each) for each in zip(*bounds, strict=True))
    sliced = build.add(lazy.SliceOp(made.operand, starts, stops, steps))
    return build.add(lazy.ReduceOp(made.kind.data, sliced, sorted(axes)))
