"""Movement operations of the ``lazy`` dialect: pure index maps, no arithmetic.

Each docstring states the index map from an element of the result to the element it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I64,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from plait.dialects import lazy_shapes as shapes
from plait.dialects.lazy_base import MovementOp, Shape, element_type_of, ints, shape_of

IntList = DenseArrayBase[I64]


def _like(operand: SSAValue, shape: Shape) -> TensorType[Attribute]:
    return TensorType(element_type_of(operand), shape)


@irdl_op_definition
class ReshapeOp(MovementOp):
    """The same elements in row-major order under another shape.

    `result[i] = operand[j]` where `i` and `j` have the same row-major position.

    Example: `%y = lazy.reshape %x : tensor<4x6xf32> -> tensor<24xf32>`
    """

    name = "lazy.reshape"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Shape):
        super().__init__(operands=[operand], result_types=[_like(operand, shape)])

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        self.expect_shape(lambda: shapes.reshape(shape_of(self.operand), shape_of(self.result)))


@irdl_op_definition
class PermuteOp(MovementOp):
    """Reorders axes: axis `i` of the result is axis `permutation[i]` of the operand.

    `result[i_0, ..., i_n] = operand[j]` with `j[permutation[k]] = i_k`.

    Example: `%y = lazy.permute %x permutation = [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>`
    """

    name = "lazy.permute"

    operand = operand_def(TensorType)
    permutation = prop_def(DenseArrayBase.constr(i64))
    """For each axis of the result, the axis of the operand."""
    result = result_def(TensorType)

    assembly_format = (
        "$operand `permutation` `=` $permutation attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(self, operand: SSAValue, permutation: Sequence[int]):
        super().__init__(
            operands=[operand],
            properties={"permutation": ints(permutation)},
            result_types=[_like(operand, shapes.permute(shape_of(operand), permutation))],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        permutation = cast(IntList, self.permutation).get_values()
        self.expect_shape(lambda: shapes.permute(shape_of(self.operand), permutation))


@irdl_op_definition
class ExpandOp(MovementOp):
    """Repeats axes of extent 1; the rank stays.

    `result[i] = operand[j]` with `j_k = 0` where the operand's axis `k` has extent 1, else `i_k`.

    Example: `%y = lazy.expand %x : tensor<1x6xf32> -> tensor<4x6xf32>`
    """

    name = "lazy.expand"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Shape):
        super().__init__(operands=[operand], result_types=[_like(operand, shape)])

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        self.expect_shape(lambda: shapes.expand(shape_of(self.operand), shape_of(self.result)))


@irdl_op_definition
class PadOp(MovementOp):
    """Surrounds each axis with `low` and `high` elements of a value and puts `interior` of them
    between neighbours.

    `result[i] = operand[j]` where, on every axis, `j = (i - low) / (interior + 1)` is whole and
    within the operand; `value` elsewhere.

    Example:
    ```mlir
    %y = lazy.pad %x low = [1] high = [1] interior = [0] value = 0.0 : f32
           : tensor<4xf32> -> tensor<6xf32>
    ```
    """

    name = "lazy.pad"

    operand = operand_def(TensorType)
    low = prop_def(DenseArrayBase.constr(i64))
    """Elements before the first, per axis; not negative."""
    high = prop_def(DenseArrayBase.constr(i64))
    """Elements after the last, per axis; not negative."""
    interior = prop_def(DenseArrayBase.constr(i64))
    """Elements between neighbours, per axis; not negative."""
    value = prop_def(FloatAttr | IntegerAttr)
    """What the new elements are; of the tensor's element type."""
    result = result_def(TensorType)

    assembly_format = (
        "$operand `low` `=` $low `high` `=` $high `interior` `=` $interior `value` `=` $value "
        "attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(
        self,
        operand: SSAValue,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int],
        value: FloatAttr | IntegerAttr,
    ):
        shape = shapes.pad(shape_of(operand), low, high, interior)
        super().__init__(
            operands=[operand],
            properties={
                "low": ints(low),
                "high": ints(high),
                "interior": ints(interior),
                "value": value,
            },
            result_types=[_like(operand, shape)],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        low, high, interior = (
            cast(IntList, amounts).get_values() for amounts in (self.low, self.high, self.interior)
        )
        self.expect_shape(lambda: shapes.pad(shape_of(self.operand), low, high, interior))
        value = cast(FloatAttr | IntegerAttr, self.value)
        if value.type != element_type_of(self.operand):
            raise VerifyException(
                f"expected a padding value of {element_type_of(self.operand)}, found {value.type}"
            )


@irdl_op_definition
class SliceOp(MovementOp):
    """Every `steps`-th element of `starts` to `stops` (exclusive), per axis.

    `result[i] = operand[starts + i * steps]`.

    Example:
    ```mlir
    %y = lazy.slice %x starts = [1] stops = [6] steps = [2] : tensor<8xf32> -> tensor<3xf32>
    ```
    """

    name = "lazy.slice"

    operand = operand_def(TensorType)
    starts = prop_def(DenseArrayBase.constr(i64))
    stops = prop_def(DenseArrayBase.constr(i64))
    steps = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    assembly_format = (
        "$operand `starts` `=` $starts `stops` `=` $stops `steps` `=` $steps attr-dict "
        "`:` type($operand) `->` type($result)"
    )

    def __init__(
        self, operand: SSAValue, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]
    ):
        shape = shapes.slice(shape_of(operand), starts, stops, steps)
        super().__init__(
            operands=[operand],
            properties={"starts": ints(starts), "stops": ints(stops), "steps": ints(steps)},
            result_types=[_like(operand, shape)],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        starts, stops, steps = (
            cast(IntList, values).get_values() for values in (self.starts, self.stops, self.steps)
        )
        self.expect_shape(lambda: shapes.slice(shape_of(self.operand), starts, stops, steps))


@irdl_op_definition
class FlipOp(MovementOp):
    """Reverses axes.

    `result[i] = operand[j]` with `j_k = extent_k - 1 - i_k` on the flipped axes, else `i_k`.

    Example: `%y = lazy.flip %x axes = [0] : tensor<4xf32>`
    """

    name = "lazy.flip"

    operand = operand_def(TensorType)
    axes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    assembly_format = "$operand `axes` `=` $axes attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, axes: Sequence[int]):
        super().__init__(
            operands=[operand], properties={"axes": ints(axes)}, result_types=[operand.type]
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        axes = cast(IntList, self.axes).get_values()
        try:
            shapes.check_axes(shape_of(self.operand), axes, "flipped axis")
        except ValueError as error:
            raise VerifyException(str(error)) from None
        self.expect_shape(lambda: shape_of(self.operand))


@irdl_op_definition
class WindowOp(MovementOp):
    """Sliding windows over axes; the axes within a window come last, in the order of `axes`.

    `result[..., o, ..., k] = operand[..., o * stride + k * dilation, ...]`; an axis of extent n
    becomes `(n - (size - 1) * dilation - 1) / stride + 1` positions.

    Example:
    ```mlir
    %y = lazy.window %x axes = [0] sizes = [3] strides = [1] dilations = [1]
           : tensor<8xf32> -> tensor<6x3xf32>
    ```
    """

    name = "lazy.window"

    operand = operand_def(TensorType)
    axes = prop_def(DenseArrayBase.constr(i64))
    sizes = prop_def(DenseArrayBase.constr(i64))
    strides = prop_def(DenseArrayBase.constr(i64))
    dilations = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    assembly_format = (
        "$operand `axes` `=` $axes `sizes` `=` $sizes `strides` `=` $strides "
        "`dilations` `=` $dilations attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(
        self,
        operand: SSAValue,
        axes: Sequence[int],
        sizes: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
    ):
        shape = shapes.window(shape_of(operand), axes, sizes, strides, dilations)
        super().__init__(
            operands=[operand],
            properties={
                "axes": ints(axes),
                "sizes": ints(sizes),
                "strides": ints(strides),
                "dilations": ints(dilations),
            },
            result_types=[_like(operand, shape)],
        )

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        axes, sizes, strides, dilations = (
            cast(IntList, values).get_values()
            for values in (self.axes, self.sizes, self.strides, self.dilations)
        )
        self.expect_shape(
            lambda: shapes.window(shape_of(self.operand), axes, sizes, strides, dilations)
        )


@irdl_op_definition
class ConcatOp(MovementOp):
    """Joins tensors along an axis.

    `result[i]` is operand `m` at `i` less the extents before it on `axis`, where `m` is the
    operand whose range holds `i[axis]`.

    Example: `%z = lazy.concat %x, %y axis = 0 : tensor<4xf32>, tensor<2xf32> -> tensor<6xf32>`
    """

    name = "lazy.concat"

    inputs = var_operand_def(TensorType)
    """At least one."""
    axis = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    assembly_format = "$inputs `axis` `=` $axis attr-dict `:` type($inputs) `->` type($result)"

    def __init__(self, inputs: Sequence[SSAValue], axis: int):
        shape = shapes.concat([shape_of(value) for value in inputs], axis)
        super().__init__(
            operands=[inputs],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[_like(inputs[0], shape)],
        )

    def verify_shapes(self) -> None:
        if not self.inputs:
            raise VerifyException("expected at least one operand")
        for value in self.inputs:
            self.expect_element_type(value)
        inputs = [shape_of(value) for value in self.inputs]
        self.expect_shape(lambda: shapes.concat(inputs, self.axis.value.data))
