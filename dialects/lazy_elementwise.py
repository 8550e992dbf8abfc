"""Elementwise operations of the ``lazy`` dialect on several operands, and conversions."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from plait.dialects.lazy_base import (
    ComparePredicate,
    ComparePredicateAttr,
    ElementwiseOp,
    Tensor,
    element_type_of,
)
from plait.dialects.lazy_unary import verify_domain, verify_same_shapes
from plait.dtypes import is_bool, itemsize


class BinaryOp(ElementwiseOp, ABC):
    """An elementwise operation on two operands of the result's type."""

    T: ClassVar = VarConstraint("T", base(TensorType))

    DOMAIN: ClassVar[str] = "any"
    """Element types it takes: ``any``, ``num`` (not i1), ``float`` or ``int`` (with i1)."""
    COMMUTATIVE: ClassVar[bool] = False

    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])

    def verify_shapes(self) -> None:
        verify_domain(self, self.DOMAIN, self.lhs)


@irdl_op_definition
class AddOp(BinaryOp):
    """Sum; integers wrap, `i1` is logical or.

    Example: `%z = lazy.add %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.add"
    COMMUTATIVE: ClassVar[bool] = True


@irdl_op_definition
class SubOp(BinaryOp):
    """Difference; integers wrap.

    Example: `%z = lazy.sub %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.sub"
    DOMAIN: ClassVar[str] = "num"


@irdl_op_definition
class MulOp(BinaryOp):
    """Product; integers wrap, `i1` is logical and.

    Example: `%z = lazy.mul %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.mul"
    COMMUTATIVE: ClassVar[bool] = True


@irdl_op_definition
class DivOp(BinaryOp):
    """Quotient; integers truncate towards zero, and x / 0 is 0.

    Example: `%z = lazy.div %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.div"
    DOMAIN: ClassVar[str] = "num"


@irdl_op_definition
class RemOp(BinaryOp):
    """Remainder with the sign of the dividend, as C's `fmod` and `%`; integer x % 0 is 0.

    Example: `%z = lazy.rem %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.rem"
    DOMAIN: ClassVar[str] = "num"


@irdl_op_definition
class PowOp(BinaryOp):
    """Power; integers wrap, and a negative integer exponent gives 0 except for bases 1 and -1.

    Example: `%z = lazy.pow %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.pow"
    DOMAIN: ClassVar[str] = "num"


@irdl_op_definition
class Atan2Op(BinaryOp):
    """Angle of the point (rhs, lhs), in radians.

    Example: `%z = lazy.atan2 %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.atan2"
    DOMAIN: ClassVar[str] = "float"


@irdl_op_definition
class MaxOp(BinaryOp):
    """Maximum; NaN if either is NaN.

    Example: `%z = lazy.max %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.max"
    COMMUTATIVE: ClassVar[bool] = True


@irdl_op_definition
class MinOp(BinaryOp):
    """Minimum; NaN if either is NaN.

    Example: `%z = lazy.min %x, %y : tensor<4x4xf32>`
    """

    name = "lazy.min"
    COMMUTATIVE: ClassVar[bool] = True


@irdl_op_definition
class AndOp(BinaryOp):
    """Bitwise and.

    Example: `%z = lazy.and %x, %y : tensor<4x4xi32>`
    """

    name = "lazy.and"
    DOMAIN: ClassVar[str] = "int"
    COMMUTATIVE: ClassVar[bool] = True


@irdl_op_definition
class OrOp(BinaryOp):
    """Bitwise or.

    Example: `%z = lazy.or %x, %y : tensor<4x4xi32>`
    """

    name = "lazy.or"
    DOMAIN: ClassVar[str] = "int"
    COMMUTATIVE: ClassVar[bool] = True


@irdl_op_definition
class XorOp(BinaryOp):
    """Bitwise exclusive or.

    Example: `%z = lazy.xor %x, %y : tensor<4x4xi32>`
    """

    name = "lazy.xor"
    DOMAIN: ClassVar[str] = "int"
    COMMUTATIVE: ClassVar[bool] = True


@irdl_op_definition
class ShlOp(BinaryOp):
    """Left shift; 0 when the amount is not below the width.

    Example: `%z = lazy.shl %x, %y : tensor<4x4xi32>`
    """

    name = "lazy.shl"
    DOMAIN: ClassVar[str] = "int"


@irdl_op_definition
class ShrOp(BinaryOp):
    """Right shift, arithmetic for signed types; as if shifted bit by bit for large amounts.

    Example: `%z = lazy.shr %x, %y : tensor<4x4xi32>`
    """

    name = "lazy.shr"
    DOMAIN: ClassVar[str] = "int"


@irdl_op_definition
class CompareOp(ElementwiseOp):
    """Compares elements; with a NaN only ``ne`` holds.

    Example: `%m = lazy.compare lt %x, %y : tensor<4xf32> -> tensor<4xi1>`
    """

    name = "lazy.compare"

    T: ClassVar = VarConstraint("T", base(TensorType))

    predicate = prop_def(ComparePredicateAttr)
    """``eq ne lt le gt ge``."""
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(TensorType)

    assembly_format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def __init__(
        self, predicate: ComparePredicate, lhs: SSAValue, rhs: SSAValue, result_type: Tensor
    ):
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": ComparePredicateAttr(predicate)},
            result_types=[result_type],
        )

    def verify_shapes(self) -> None:
        verify_same_shapes(self)
        if not is_bool(element_type_of(self.result)):
            raise VerifyException(f"expected a result of i1, found {self.result.type}")


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """``on_true`` where the condition holds, else ``on_false``.

    Example: `%z = lazy.select %c, %x, %y : tensor<4xi1>, tensor<4xf32>`
    """

    name = "lazy.select"

    T: ClassVar = VarConstraint("T", base(TensorType))

    condition = operand_def(TensorType)
    """Of element type i1 and the result's shape."""
    on_true = operand_def(T)
    on_false = operand_def(T)
    result = result_def(T)

    assembly_format = (
        "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($result)"
    )

    def __init__(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue):
        super().__init__(operands=[condition, on_true, on_false], result_types=[on_true.type])

    def verify_shapes(self) -> None:
        verify_same_shapes(self)
        if not is_bool(element_type_of(self.condition)):
            raise VerifyException(f"expected a condition of i1, found {self.condition.type}")


@irdl_op_definition
class CastOp(ElementwiseOp):
    """Converts elements: to a float rounds to nearest even; float to integer truncates towards
    zero, saturates, and maps NaN to 0; integer to integer wraps; to i1 is ``!= 0``.

    Example: `%y = lazy.cast %x : tensor<4xf32> -> tensor<4xf16>`
    """

    name = "lazy.cast"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, result_type: Tensor):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_shapes(self) -> None:
        verify_same_shapes(self)


@irdl_op_definition
class BitcastOp(ElementwiseOp):
    """Reads the bits of each element as another type of the same width.

    Example: `%y = lazy.bitcast %x : tensor<4xf32> -> tensor<4xi32>`
    """

    name = "lazy.bitcast"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, result_type: Tensor):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_shapes(self) -> None:
        verify_same_shapes(self)
        have, want = element_type_of(self.operand), element_type_of(self.result)
        if is_bool(have) != is_bool(want) or itemsize(have) != itemsize(want):
            raise VerifyException(f"cannot read the bits of {have} as {want}: the widths differ")
