"""Operations of the ``nest`` dialect that address elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    IndexType,
    MemRefType,
    i1,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap, AffineSet
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

Buffer = MemRefType[Attribute]


def _verify_access(
    buffer: SSAValue, indices: Sequence[SSAValue], map: AffineMap, where: AffineSet | None
) -> None:
    type = cast(Buffer, buffer.type)
    if map.num_dims != len(indices) or map.num_symbols:
        raise VerifyException(
            f"expected a map of {len(indices)} dimensions, one per index, found {map}"
        )
    if len(map.results) != type.get_num_dims():
        raise VerifyException(
            f"expected a map to the {type.get_num_dims()} axes of {type}, found {map}"
        )
    if where is not None and (where.num_dims != len(indices) or where.num_symbols):
        raise VerifyException(
            f"expected a set of {len(indices)} dimensions, one per index, found {where}"
        )


def _parse_indices(parser: Parser) -> list[SSAValue]:
    unresolved = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    return [parser.resolve_operand(operand, IndexType()) for operand in unresolved]


def _print_indices(printer: Printer, indices: Sequence[SSAValue]) -> None:
    with printer.in_parens():
        printer.print_list(indices, printer.print_ssa_value)


Access = tuple[SSAValue, list[SSAValue], AffineMap, AffineSet | None]


def _parse_access(parser: Parser) -> tuple[Access, dict[str, Attribute]]:
    buffer = parser.parse_unresolved_operand()
    with parser.in_square_brackets():
        map = parser.parse_affine_map()
    indices = _parse_indices(parser)
    where = parser.parse_affine_set() if parser.parse_optional_keyword("where") else None
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type = parser.parse_type()
    if not isinstance(type, MemRefType):
        parser.raise_error(f"expected a memref type, found {type}")
    resolved = parser.resolve_operand(buffer, cast(Buffer, type))
    return (resolved, indices, map, where), attributes


def _print_access(printer: Printer, op: LoadOp | StoreOp) -> None:
    printer.print_ssa_value(op.buffer)
    with printer.in_square_brackets():
        printer.print_string(str(op.map.data))
    _print_indices(printer, op.indices)
    if op.where is not None:
        printer.print_string(f" where {op.where.data}")
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.buffer.type)


def _set(where: AffineSet | None) -> dict[str, Attribute]:
    return {} if where is None else {"where": AffineSetAttr(where)}


@irdl_op_definition
class LoadOp(IRDLOperation):
    """The element of a buffer at a map of the indices; 0 outside of the set ``where``.

    Example:
    ```mlir
    %v = nest.load %x[(d0, d1) -> (d0, d1 - 1)](%i, %j) where (d0, d1) : (d1 - 1 >= 0)
       : memref<16x64xf32>
    ```
    """

    name = "nest.load"

    T: ClassVar = VarConstraint("T", AnyAttr())

    buffer = operand_def(MemRefType.constr(T))
    indices = var_operand_def(IndexType)
    """Indices of axes, or positions computed from data; within bounds where ``where`` holds."""
    map = prop_def(AffineMapAttr)
    """From the indices to the position in the buffer."""
    where = opt_prop_def(AffineSetAttr)
    result = result_def(T)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        map: AffineMap,
        where: AffineSet | None = None,
    ):
        type = cast(Buffer, buffer.type)
        super().__init__(
            operands=[buffer, indices],
            properties={"map": AffineMapAttr(map), **_set(where)},
            result_types=[type.element_type],
        )

    def verify_(self) -> None:
        where = None if self.where is None else self.where.data
        _verify_access(self.buffer, self.indices, self.map.data, where)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        access, attributes = _parse_access(parser)
        op = cls(*access)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_access(printer, self)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes an element of a buffer, where the set ``where`` holds.

    Example: `nest.store %v, %y[(d0) -> (d0)](%i) : memref<16xf32>`
    """

    name = "nest.store"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    buffer = operand_def(MemRefType.constr(T))
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    where = opt_prop_def(AffineSetAttr)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        map: AffineMap,
        where: AffineSet | None = None,
    ):
        super().__init__(
            operands=[value, buffer, indices],
            properties={"map": AffineMapAttr(map), **_set(where)},
        )

    def verify_(self) -> None:
        where = None if self.where is None else self.where.data
        _verify_access(self.buffer, self.indices, self.map.data, where)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        access, attributes = _parse_access(parser)
        type = cast(Buffer, access[0].type).element_type
        op = cls(parser.resolve_operand(value, type), *access)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        _print_access(printer, self)


@irdl_op_definition
class TestOp(IRDLOperation):
    """Whether indices lie in a set: what padding and concatenation choose by.

    Example: `%c = nest.test (d0) : (d0 - 1 >= 0) (%i)`
    """

    name = "nest.test"

    indices = var_operand_def(IndexType)
    set = prop_def(AffineSetAttr)
    result = result_def(i1)

    traits = traits_def(Pure())

    def __init__(self, indices: Sequence[SSAValue], set: AffineSet):
        super().__init__(
            operands=[indices], properties={"set": AffineSetAttr(set)}, result_types=[i1]
        )

    def verify_(self) -> None:
        if self.set.data.num_dims != len(self.indices) or self.set.data.num_symbols:
            raise VerifyException(
                f"expected a set of {len(self.indices)} dimensions, one per index, found "
                f"{self.set.data}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> TestOp:
        set = parser.parse_affine_set()
        op = cls(_parse_indices(parser), set)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.set.data} ")
        _print_indices(printer, self.indices)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class IndexOp(IRDLOperation):
    """An affine expression of indices as a value.

    Example: `%p = nest.index (d0, d1) -> (d0 * 64 + d1) (%i, %j)`
    """

    name = "nest.index"

    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    """With one result."""
    result = result_def(IndexType())

    traits = traits_def(Pure())

    def __init__(self, indices: Sequence[SSAValue], map: AffineMap):
        properties: dict[str, Any] = {"map": AffineMapAttr(map)}
        super().__init__(operands=[indices], properties=properties, result_types=[IndexType()])

    def verify_(self) -> None:
        map = self.map.data
        if map.num_dims != len(self.indices) or map.num_symbols or len(map.results) != 1:
            raise VerifyException(
                f"expected a map from {len(self.indices)} dimensions to one result, found {map}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        map = parser.parse_affine_map()
        op = cls(_parse_indices(parser), map)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.map.data} ")
        _print_indices(printer, self.indices)
        printer.print_op_attributes(self.attributes)
