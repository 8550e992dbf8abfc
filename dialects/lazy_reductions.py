"""Operations of the ``lazy`` dialect that combine or address elements: reduce, scan, gather,
scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from plait.dialects import lazy_shapes as shapes
from plait.dialects.lazy_base import (
    LazyOp,
    ReduceKind,
    ReduceKindAttr,
    ScanKind,
    ScanKindAttr,
    ScatterKind,
    ScatterKindAttr,
    element_type_of,
    ints,
    shape_of,
)
from plait.dtypes import is_bool


@irdl_op_definition
class ReduceOp(LazyOp):
    """Combines the elements along axes, which are removed.

    Over no elements the result is the identity of the kind: 0, 1, the smallest, the largest,
    false, true. `max` and `min` give NaN if an element is NaN; f16 and bf16 accumulate in f32.
    The order of combination is not specified, but is the same in every run.

    Example: `%y = lazy.reduce sum %x axes = [1] : tensor<4x6xf32> -> tensor<4xf32>`
    """

    name = "lazy.reduce"

    kind = prop_def(ReduceKindAttr)
    """``sum prod max min`` for numbers, ``any all`` for i1."""
    operand = operand_def(TensorType)
    axes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    assembly_format = (
        "$kind $operand `axes` `=` $axes attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(self, kind: ReduceKind, operand: SSAValue, axes: Sequence[int]):
        shape = shapes.reduce(shape_of(operand), axes)
        super().__init__(
            operands=[operand],
            properties={"kind": ReduceKindAttr(kind), "axes": ints(axes)},
            result_types=[TensorType(element_type_of(operand), shape)],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        axes = cast(DenseArrayBase[I64], self.axes).get_values()
        self.expect_shape(lambda: shapes.reduce(shape_of(self.operand), axes))
        logical = self.kind.data in (ReduceKind.ANY, ReduceKind.ALL)
        if logical and not is_bool(element_type_of(self.operand)):
            raise VerifyException(
                f"'{self.kind.data}' reduces i1, found {element_type_of(self.operand)}"
            )
        if self.kind.data in (ReduceKind.SUM, ReduceKind.PROD) and is_bool(
            element_type_of(self.operand)
        ):
            raise VerifyException(f"'{self.kind.data}' reduces numbers; cast i1 first")


class ArgReduceOp(LazyOp):
    """Where the extreme element along an axis is; the first one where several are, and the first
    NaN where there is one. The axis must not be empty."""

    operand = operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    assembly_format = "$operand `axis` `=` $axis attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, axis: int, element_type: IntegerType = i64):
        shape = shapes.reduce(shape_of(operand), (axis,))
        super().__init__(
            operands=[operand],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[TensorType(element_type, shape)],
        )

    def verify_shapes(self) -> None:
        axis = self.axis.value.data
        self.expect_shape(lambda: shapes.reduce(shape_of(self.operand), (axis,)))
        if shape_of(self.operand)[axis] == 0:
            raise VerifyException(
                f"axis {axis} of shape {shapes.show(shape_of(self.operand))} is empty"
            )
        type = element_type_of(self.result)
        if not isinstance(type, IntegerType) or is_bool(type):
            raise VerifyException(f"expected a result of integers, found {type}")


@irdl_op_definition
class ArgmaxOp(ArgReduceOp):
    """Where the largest element along an axis is.

    Example: `%y = lazy.argmax %x axis = 1 : tensor<4x6xf32> -> tensor<4xi64>`
    """

    name = "lazy.argmax"


@irdl_op_definition
class ArgminOp(ArgReduceOp):
    """Where the smallest element along an axis is.

    Example: `%y = lazy.argmin %x axis = 1 : tensor<4x6xf32> -> tensor<4xi64>`
    """

    name = "lazy.argmin"


@irdl_op_definition
class ScanOp(LazyOp):
    """Running combination along an axis, inclusive: element `i` combines elements 0 to `i`.

    Example: `%y = lazy.scan sum %x axis = 1 : tensor<4x6xf32> -> tensor<4x6xf32>`
    """

    name = "lazy.scan"

    kind = prop_def(ScanKindAttr)
    """``sum prod max min``."""
    operand = operand_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    assembly_format = (
        "$kind $operand `axis` `=` $axis attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(self, kind: ScanKind, operand: SSAValue, axis: int):
        super().__init__(
            operands=[operand],
            properties={"kind": ScanKindAttr(kind), "axis": IntegerAttr(axis, i64)},
            result_types=[operand.type],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        self.expect_shape(lambda: shape_of(self.operand))
        try:
            shapes.check_axes(shape_of(self.operand), (self.axis.value.data,), "scanned axis")
        except ValueError as error:
            raise VerifyException(str(error)) from None
        if is_bool(element_type_of(self.operand)):
            raise VerifyException("lazy.scan works on numbers; cast i1 first")


def _verify_indices(indices: SSAValue) -> None:
    type = element_type_of(indices)
    if not isinstance(type, IntegerType) or is_bool(type):
        raise VerifyException(f"expected integer indices, found {type}")


@irdl_op_definition
class GatherOp(LazyOp):
    """Takes elements along an axis at positions given by data; the other axes stay in step.

    `result[i] = source[j]` with `j[axis] = indices[i]` clamped to the axis, else `j_k = i_k`.

    Example:
    ```mlir
    %y = lazy.gather %x, %i axis = 0 : tensor<9x4xf32>, tensor<5x4xi64> -> tensor<5x4xf32>
    ```
    """

    name = "lazy.gather"

    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    """Positions along the axis; the shape of the result."""
    axis = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    assembly_format = (
        "$source `,` $indices `axis` `=` $axis attr-dict "
        "`:` type($source) `,` type($indices) `->` type($result)"
    )

    def __init__(self, source: SSAValue, indices: SSAValue, axis: int):
        shape = shapes.gather(shape_of(source), shape_of(indices), axis)
        super().__init__(
            operands=[source, indices],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[TensorType(element_type_of(source), shape)],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.source)
        _verify_indices(self.indices)
        self.expect_shape(
            lambda: shapes.gather(
                shape_of(self.source), shape_of(self.indices), self.axis.value.data
            )
        )


@irdl_op_definition
class ScatterOp(LazyOp):
    """The destination with updates combined into positions along an axis given by data.

    For each `i` in row-major order: `result[j] = kind(result[j], updates[i])` with
    `j[axis] = indices[i]`, else `j_k = i_k`; positions outside the axis are dropped. With `set`
    the last update of a position stays.

    Example:
    ```mlir
    %y = lazy.scatter add %d, %i, %u axis = 0 : tensor<9x4xf32>, tensor<5x4xi64>
    ```
    """

    name = "lazy.scatter"

    kind = prop_def(ScatterKindAttr)
    """``set add mul max min``."""
    destination = operand_def(TensorType)
    indices = operand_def(TensorType)
    """Positions along the axis."""
    updates = operand_def(TensorType)
    """The shape of the indices, the element type of the destination."""
    axis = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    assembly_format = (
        "$kind $destination `,` $indices `,` $updates `axis` `=` $axis attr-dict "
        "`:` type($destination) `,` type($indices) `,` type($updates) `->` type($result)"
    )

    def __init__(
        self,
        kind: ScatterKind,
        destination: SSAValue,
        indices: SSAValue,
        updates: SSAValue,
        axis: int,
    ):
        super().__init__(
            operands=[destination, indices, updates],
            properties={"kind": ScatterKindAttr(kind), "axis": IntegerAttr(axis, i64)},
            result_types=[destination.type],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.destination)
        self.expect_element_type(self.updates)
        _verify_indices(self.indices)
        destination, indices, updates = map(
            shape_of, (self.destination, self.indices, self.updates)
        )
        if indices != updates:
            raise VerifyException(
                f"indices of shape {shapes.show(indices)} and updates of shape "
                f"{shapes.show(updates)} must have the same shape"
            )
        axis = self.axis.value.data
        if any(
            a != b for k, (a, b) in enumerate(zip(destination, indices, strict=False)) if k != axis
        ) or not (0 <= axis < len(destination) == len(indices)):
            raise VerifyException(
                f"updates of shape {shapes.show(updates)} do not match destination of shape "
                f"{shapes.show(destination)}: all axes but axis {axis} must be equal"
            )
        self.expect_shape(lambda: destination)
