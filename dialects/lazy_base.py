"""What the operations of the ``lazy`` dialect share: types, base classes, enumerations."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_attr_definition, traits_def
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from plait.dtypes import is_element_type

Tensor = TensorType[Attribute]
Shape = tuple[int, ...]


def shape_of(value: SSAValue) -> Shape:
    """The extents of a tensor value."""
    type = value.type
    assert isinstance(type, TensorType)
    return tuple([extent.data for extent in type.shape.data])


def element_type_of(value: SSAValue) -> Attribute:
    """The element type of a tensor value."""
    type = value.type
    assert isinstance(type, TensorType)
    return type.element_type


def ints(values: Sequence[int]) -> DenseArrayBase:
    """``array<i64: ...>``."""
    return DenseArrayBase.from_list(i64, values)


class LazyOp(IRDLOperation, HasFolderInterface, HasCanonicalizationPatternsInterface, ABC):
    """Every operation of the dialect: no effects, static ranked tensors, one result.

    Folding and canonical forms are data about the operations and live in ``lazy_fold`` and
    ``lazy_canonicalize``.
    """

    traits = traits_def(Pure())

    def verify_(self) -> None:
        for value in (*self.operands, *self.results):
            type = value.type
            if not isinstance(type, TensorType):
                raise VerifyException(f"expected a ranked tensor, found {type}")
            if not is_element_type(type.element_type):
                raise VerifyException(f"unsupported element type {type.element_type}")
            if any(extent < 0 for extent in type.get_shape()):
                raise VerifyException(f"expected static extents, found {type}")
        self.verify_shapes()

    def verify_shapes(self) -> None:
        """The operation's own invariants; the types are known to be static tensors."""

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        from plait.dialects.lazy_fold import fold

        return fold(self)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from plait.dialects.lazy_canonicalize import patterns_of

        return patterns_of(cls)

    def expect_shape(self, infer: Callable[[], Shape]) -> None:
        """Verifies the result's shape against what ``infer`` says or why it cannot."""
        from plait.dialects.lazy_shapes import show

        try:
            expected = infer()
        except ValueError as error:
            raise VerifyException(str(error)) from None
        found = shape_of(self.results[0])
        if found != expected:
            raise VerifyException(
                f"expected a result of shape {show(expected)}, found {show(found)}"
            )

    def expect_element_type(self, operand: SSAValue) -> None:
        """Verifies that the result has the element type of ``operand``."""
        have, want = element_type_of(self.results[0]), element_type_of(operand)
        if have != want:
            raise VerifyException(f"expected a result of element type {want}, found {have}")


class MovementOp(LazyOp, ABC):
    """A pure index map: every element of the result is an element of an operand, or padding."""


class ElementwiseOp(LazyOp, ABC):
    """Element ``i`` of the result depends on element ``i`` of each operand; shapes are equal."""


class ReduceKind(StrEnum):
    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"


class ScanKind(StrEnum):
    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"


class ScatterKind(StrEnum):
    SET = "set"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


class ComparePredicate(StrEnum):
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    name: ClassVar[str] = "lazy.reduce_kind"


@irdl_attr_definition
class ScanKindAttr(EnumAttribute[ScanKind], SpacedOpaqueSyntaxAttribute):
    name: ClassVar[str] = "lazy.scan_kind"


@irdl_attr_definition
class ScatterKindAttr(EnumAttribute[ScatterKind], SpacedOpaqueSyntaxAttribute):
    name: ClassVar[str] = "lazy.scatter_kind"


@irdl_attr_definition
class ComparePredicateAttr(EnumAttribute[ComparePredicate], SpacedOpaqueSyntaxAttribute):
    name: ClassVar[str] = "lazy.predicate"
