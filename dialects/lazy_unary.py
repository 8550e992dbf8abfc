"""Elementwise operations of the ``lazy`` dialect on one operand, and what all elementwise
operations verify."""

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
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from plait.dialects.lazy_base import (
    ElementwiseOp,
    Tensor,
    element_type_of,
    shape_of,
)
from plait.dialects.lazy_shapes import show
from plait.dtypes import is_bool, is_float


def verify_domain(op: ElementwiseOp, domain: str, value: SSAValue) -> None:
    type = element_type_of(value)
    fits = {
        "any": True,
        "num": not is_bool(type),
        "float": is_float(type),
        "int": not is_float(type),
    }[domain]
    if not fits:
        wanted = {
            "num": "numbers, not i1",
            "float": "floating-point elements",
            "int": "integer or i1 elements",
        }[domain]
        raise VerifyException(f"{op.name} works on {wanted}, found {type}")


def verify_same_shapes(op: ElementwiseOp) -> None:
    first = shape_of(op.results[0])
    for operand in op.operands:
        if shape_of(operand) != first:
            raise VerifyException(
                f"shapes differ: operand of shape {show(shape_of(operand))}, result of shape "
                f"{show(first)}; use lazy.expand to broadcast"
            )


class UnaryOp(ElementwiseOp, ABC):
    """An elementwise operation on one operand of the result's type."""

    T: ClassVar = VarConstraint("T", base(TensorType))

    DOMAIN: ClassVar[str] = "float"
    """Element types it takes: ``any``, ``num`` (not i1), ``float`` or ``int`` (with i1)."""

    operand = operand_def(T)
    """The elements to work on."""
    result = result_def(T)

    assembly_format = "$operand attr-dict `:` type($result)"

    def __init__(self, operand: SSAValue):
        super().__init__(operands=[operand], result_types=[operand.type])

    def verify_shapes(self) -> None:
        verify_domain(self, self.DOMAIN, self.operand)


class PredicateOp(ElementwiseOp, ABC):
    """An elementwise question about a floating-point operand, answered in ``i1``."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, result_type: Tensor):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_shapes(self) -> None:
        verify_domain(self, "float", self.operand)
        verify_same_shapes(self)
        if not is_bool(element_type_of(self.result)):
            raise VerifyException(f"expected a result of i1, found {self.result.type}")


@irdl_op_definition
class NegOp(UnaryOp):
    """Negation; integers wrap.

    Example: `%y = lazy.neg %x : tensor<4x4xf32>`
    """

    name = "lazy.neg"
    DOMAIN: ClassVar[str] = "num"


@irdl_op_definition
class AbsOp(UnaryOp):
    """Absolute value; the smallest signed integer stays itself.

    Example: `%y = lazy.abs %x : tensor<4x4xf32>`
    """

    name = "lazy.abs"
    DOMAIN: ClassVar[str] = "num"


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1; NaN stays NaN.

    Example: `%y = lazy.sign %x : tensor<4x4xf32>`
    """

    name = "lazy.sign"
    DOMAIN: ClassVar[str] = "num"


@irdl_op_definition
class ExpOp(UnaryOp):
    """e to the power of the operand.

    Example: `%y = lazy.exp %x : tensor<4x4xf32>`
    """

    name = "lazy.exp"


@irdl_op_definition
class Exp2Op(UnaryOp):
    """2 to the power of the operand.

    Example: `%y = lazy.exp2 %x : tensor<4x4xf32>`
    """

    name = "lazy.exp2"


@irdl_op_definition
class LogOp(UnaryOp):
    """Natural logarithm.

    Example: `%y = lazy.log %x : tensor<4x4xf32>`
    """

    name = "lazy.log"


@irdl_op_definition
class Log2Op(UnaryOp):
    """Base-2 logarithm.

    Example: `%y = lazy.log2 %x : tensor<4x4xf32>`
    """

    name = "lazy.log2"


@irdl_op_definition
class SqrtOp(UnaryOp):
    """Square root; NaN for negative operands.

    Example: `%y = lazy.sqrt %x : tensor<4x4xf32>`
    """

    name = "lazy.sqrt"


@irdl_op_definition
class RsqrtOp(UnaryOp):
    """1 over the square root.

    Example: `%y = lazy.rsqrt %x : tensor<4x4xf32>`
    """

    name = "lazy.rsqrt"


@irdl_op_definition
class ReciprocalOp(UnaryOp):
    """1 over the operand.

    Example: `%y = lazy.reciprocal %x : tensor<4x4xf32>`
    """

    name = "lazy.reciprocal"


@irdl_op_definition
class SinOp(UnaryOp):
    """Sine, in radians.

    Example: `%y = lazy.sin %x : tensor<4x4xf32>`
    """

    name = "lazy.sin"


@irdl_op_definition
class CosOp(UnaryOp):
    """Cosine, in radians.

    Example: `%y = lazy.cos %x : tensor<4x4xf32>`
    """

    name = "lazy.cos"


@irdl_op_definition
class TanOp(UnaryOp):
    """Tangent, in radians.

    Example: `%y = lazy.tan %x : tensor<4x4xf32>`
    """

    name = "lazy.tan"


@irdl_op_definition
class TanhOp(UnaryOp):
    """Hyperbolic tangent.

    Example: `%y = lazy.tanh %x : tensor<4x4xf32>`
    """

    name = "lazy.tanh"


@irdl_op_definition
class ErfOp(UnaryOp):
    """Error function.

    Example: `%y = lazy.erf %x : tensor<4x4xf32>`
    """

    name = "lazy.erf"


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """1 / (1 + exp(-x)), without overflow.

    Example: `%y = lazy.sigmoid %x : tensor<4x4xf32>`
    """

    name = "lazy.sigmoid"


@irdl_op_definition
class FloorOp(UnaryOp):
    """Largest integer not above the operand.

    Example: `%y = lazy.floor %x : tensor<4x4xf32>`
    """

    name = "lazy.floor"


@irdl_op_definition
class CeilOp(UnaryOp):
    """Smallest integer not below the operand.

    Example: `%y = lazy.ceil %x : tensor<4x4xf32>`
    """

    name = "lazy.ceil"


@irdl_op_definition
class RoundOp(UnaryOp):
    """Nearest integer, ties to even.

    Example: `%y = lazy.round %x : tensor<4x4xf32>`
    """

    name = "lazy.round"


@irdl_op_definition
class TruncOp(UnaryOp):
    """Nearest integer towards zero.

    Example: `%y = lazy.trunc %x : tensor<4x4xf32>`
    """

    name = "lazy.trunc"


@irdl_op_definition
class NotOp(UnaryOp):
    """Bitwise complement; logical for `i1`.

    Example: `%y = lazy.not %x : tensor<4x4xi32>`
    """

    name = "lazy.not"
    DOMAIN: ClassVar[str] = "int"


@irdl_op_definition
class IsNanOp(PredicateOp):
    """Whether the element is NaN.

    Example: `%y = lazy.isnan %x : tensor<4xf32> -> tensor<4xi1>`
    """

    name = "lazy.isnan"


@irdl_op_definition
class IsFiniteOp(PredicateOp):
    """Whether the element is neither NaN nor infinite.

    Example: `%y = lazy.isfinite %x : tensor<4xf32> -> tensor<4xi1>`
    """

    name = "lazy.isfinite"
