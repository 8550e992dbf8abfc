"""Operations of the ``lazy`` dialect that make a tensor from nothing, and the one that pins one
to memory."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    I64,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from plait.dialects import lazy_shapes as shapes
from plait.dialects.lazy_base import LazyOp, Tensor, element_type_of, shape_of
from plait.dtypes import is_bool, ui32


@irdl_op_definition
class ConstantOp(LazyOp):
    """A tensor known at compile time: every element listed, or one value for all.

    Example: `%c = lazy.constant dense<1.0> : tensor<4x4xf32>`
    """

    name = "lazy.constant"

    value = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)

    def __init__(self, value: DenseIntOrFPElementsAttr):
        super().__init__(properties={"value": value}, result_types=[value.type])

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        if not isinstance(value, DenseIntOrFPElementsAttr):
            parser.raise_error(f"expected a dense tensor value, found {value}")
        op = cls(value)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)

    def verify_shapes(self) -> None:
        if self.value.type != self.result.type:
            raise VerifyException(
                f"expected a result of the value's type {self.value.type}, found {self.result.type}"
            )


@irdl_op_definition
class IotaOp(LazyOp):
    """Counts along an axis: `result[i] = i[axis]`.

    Example: `%i = lazy.iota axis = 1 : tensor<4x6xi64>`
    """

    name = "lazy.iota"

    axis = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    assembly_format = "`axis` `=` $axis attr-dict `:` type($result)"

    def __init__(self, axis: int, result_type: Tensor):
        super().__init__(properties={"axis": IntegerAttr(axis, i64)}, result_types=[result_type])

    def verify_shapes(self) -> None:
        try:
            shapes.check_axes(shape_of(self.result), (self.axis.value.data,), "counted axis")
        except ValueError as error:
            raise VerifyException(str(error)) from None
        if is_bool(element_type_of(self.result)):
            raise VerifyException("lazy.iota counts in numbers, found i1")


@irdl_op_definition
class RngBitsOp(LazyOp):
    """Uniform random bits, counter based: the same key gives the same bits on every machine.

    Element `n` (row-major) is word 0 of Threefry-2x32 with 20 rounds (Salmon et al., 2011) of the
    counter `(n mod 2^32, n / 2^32)` under the key.

    Example: `%r = lazy.rng_bits %key : tensor<2xui32> -> tensor<4x4xui32>`
    """

    name = "lazy.rng_bits"

    key = operand_def(TensorType)
    """Two words: `tensor<2xui32>`."""
    result = result_def(TensorType)

    assembly_format = "$key attr-dict `:` type($key) `->` type($result)"

    def __init__(self, key: SSAValue, result_type: Tensor):
        super().__init__(operands=[key], result_types=[result_type])

    def verify_shapes(self) -> None:
        if self.key.type != TensorType(ui32, [2]):
            raise VerifyException(f"expected a key of tensor<2xui32>, found {self.key.type}")
        if element_type_of(self.result) != ui32:
            raise VerifyException(f"expected a result of ui32, found {self.result.type}")


@irdl_op_definition
class MaterializeOp(LazyOp):
    """The operand, which must exist in memory here: a fusion barrier the program asks for.

    Example: `%y = lazy.materialize %x : tensor<4x4xf32>`
    """

    name = "lazy.materialize"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue):
        super().__init__(operands=[operand], result_types=[operand.type])

    def verify_shapes(self) -> None:
        self.expect_element_type(self.operand)
        self.expect_shape(lambda: shape_of(self.operand))
