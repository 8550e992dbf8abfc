"""Operations of the ``nest`` dialect that open axes: kernels, reductions, scans, ordered loops."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    IndexType,
    IntegerType,
    StringAttr,
    i1,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from plait.dialects.nest_attrs import (
    AxisAttr,
    CombineKind,
)

Axes = ArrayAttr[AxisAttr]


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends a body; in a reduction or scan, hands over the values to combine."""

    name = "nest.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(*_parents()), Pure()))


def _parents() -> tuple[type[IRDLOperation], ...]:
    from plait.dialects.nest_kernel import KernelOp

    return (KernelOp, ReduceOp, SequentialOp)


def parse_axes(parser: Parser) -> tuple[Axes, list[Parser.Argument]]:
    """`[%i = 64, %j_1 = 8 as j]`: the index of each axis, its extent, and its name if another."""
    arguments: list[Parser.Argument] = []

    def parse_axis() -> AxisAttr:
        argument = parser.parse_argument(expect_type=False)
        arguments.append(argument.resolve(IndexType()))
        parser.parse_punctuation("=")
        extent = parser.parse_integer(allow_boolean=False)
        named = parser.parse_optional_keyword("as") is not None
        name = parser.parse_identifier() if named else argument.name.text[1:]
        return AxisAttr.get(name if name.isidentifier() else f"axis{name}", extent)

    axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_axis)
    return ArrayAttr(axes), arguments


def print_axes(printer: Printer, axes: Axes, indices: Sequence[SSAValue]) -> None:
    with printer.in_square_brackets():
        for number, (axis, index) in enumerate(zip(axes, indices, strict=True)):
            printer.print_string(", " if number else "")
            index.name_hint = axis.axis.data
            shown = printer.print_ssa_value(index)
            printer.print_string(f" = {axis.extent.data}")
            if shown != axis.axis.data:
                printer.print_string(f" as {axis.axis.data}")


def verify_indices(axes: Axes, indices: Sequence[SSAValue]) -> None:
    if len(axes) != len(indices) or any(not isinstance(i.type, IndexType) for i in indices):
        raise VerifyException(
            f"expected {len(axes)} block arguments of type index, one per axis, found "
            f"{', '.join(str(index.type) for index in indices) or 'none'}"
        )


def says_something(body: Region) -> bool:
    """Whether the end of a body is more than its end."""
    last = body.block.last_op
    return last is not None and bool(last.operands or last.attributes)


class LoopOp(IRDLOperation, ABC):
    """What the operations that open axes inside a kernel share."""

    axes = prop_def(Axes)
    """The axes it runs over, outermost first."""
    body = region_def("single_block")

    def __post_init__(self) -> None:
        for trait in self.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(self, trait)

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The index of each axis within the body."""
        return self.body.block.args[: len(self.axes)]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(axis.extent.data for axis in self.axes)

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """What the body hands over at each point."""
        last = self.body.block.last_op
        return last.operands if isinstance(last, YieldOp) else ()


def verify_kind(kind: CombineKind, types: Sequence[Attribute], extents: Sequence[int]) -> None:
    """What a kind combines must have a type it knows, and an element where there is no identity."""
    value = types[0]
    if kind in (CombineKind.ANY, CombineKind.ALL):
        if value != i1:
            raise VerifyException(f"'{kind}' combines i1, found {value}")
    elif isinstance(value, Float16Type | BFloat16Type) or not isinstance(
        value, AnyFloat | IntegerType
    ):
        raise VerifyException(
            f"'{kind}' combines integers, f32 or f64, found {value}: extend narrow floats first"
        )
    if kind.width == 2:
        if not isinstance(types[1], IndexType | IntegerType):
            raise VerifyException(f"'{kind}' takes an index or integer position, found {types[1]}")
        if 0 in extents:
            raise VerifyException(f"'{kind}' over an empty axis has no result")


class CombiningOp(LoopOp, ABC):
    """A loop that combines values by kinds; each kind takes one value, or a value and a position
    for ``argmax`` and ``argmin``, and has as many results."""

    kinds = prop_def(ArrayAttr[StringAttr])
    res = var_result_def()

    @property
    def combine_kinds(self) -> tuple[CombineKind, ...]:
        return tuple(CombineKind(kind.data) for kind in self.kinds)

    def verify_kinds(self) -> None:
        unknown = [kind.data for kind in self.kinds if kind.data not in list(CombineKind)]
        if unknown:
            raise VerifyException(
                f"unknown kind '{unknown[0]}': expected one of {', '.join(CombineKind)}"
            )
        width = sum(kind.width for kind in self.combine_kinds)
        have = [value.type for value in self.yielded]
        want = [result.type for result in self.res]
        if len(have) != width or have != want:
            raise VerifyException(
                f"expected the body to yield and the operation to return {width} values of the "
                f"same types, found ({', '.join(map(str, have))}) and "
                f"({', '.join(map(str, want))})"
            )
        values = iter(have)
        for kind in self.combine_kinds:
            verify_kind(kind, [next(values) for _ in range(kind.width)], self.extents)

    @classmethod
    def parse_kinds(cls, parser: Parser) -> list[str]:
        return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)

    def print_kinds(self, printer: Printer) -> None:
        printer.print_string(f" [{', '.join(kind.data for kind in self.kinds)}] over ")

    def print_body(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(
            self.body,
            print_entry_block_args=False,
            print_empty_block=False,
            print_block_terminators=says_something(self.body),
        )
        printer.print_op_attributes(self.attributes, print_keyword=True)
        if self.res:
            printer.print_string(" : ")
            printer.print_list(self.res.types, printer.print_attribute)


@irdl_op_definition
class ReduceOp(CombiningOp):
    """Runs its body over axes, in any order, and combines what it yields.

    With no kinds it is a sweep that only stores. Results of an earlier reduction may be used in
    the body of a later one over the same axes: the kernel then has several sweeps. An empty axis
    gives the identity of each kind.

    Example:
    ```mlir
    %m, %s = nest.reduce [max, sum] over [%j = 64] {
      %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<16x64xf32>
      nest.yield %v, %v : f32, f32
    } : f32, f32
    ```
    """

    name = "nest.reduce"

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())

    def __init__(
        self,
        kinds: Sequence[CombineKind | str],
        axes: Sequence[AxisAttr],
        body: Region,
        result_types: Sequence[Attribute],
    ):
        super().__init__(
            properties={
                "kinds": ArrayAttr([StringAttr(kind) for kind in kinds]),
                "axes": ArrayAttr(axes),
            },
            regions=[body],
            result_types=[result_types],
        )

    def verify_(self) -> None:
        verify_indices(self.axes, self.body.block.args)
        self.verify_kinds()

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        kinds = cls.parse_kinds(parser)
        parser.parse_keyword("over")
        axes, arguments = parse_axes(parser)
        body = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        types: list[Attribute] = []
        if parser.parse_optional_punctuation(":"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        op = cls(kinds, list(axes), body, types)
        op.attributes.update(attributes.data if attributes else {})
        return op

    def print(self, printer: Printer) -> None:
        self.print_kinds(printer)
        print_axes(printer, self.axes, self.indices)
        self.print_body(printer)


@irdl_op_definition
class SequentialOp(LoopOp):
    """Runs its body over axes in row-major order, carrying values from each point to the next.

    Scans carry the running value; an ordered scatter carries nothing.

    Example:
    ```mlir
    %last = nest.sequential over [%j = 64] carrying [%r = %zero : f32] {
      %v = nest.load %x[(d0) -> (d0)](%j) : memref<64xf32>
      %next = arith.addf %r, %v : f32
      nest.store %next, %y[(d0) -> (d0)](%j) : memref<64xf32>
      nest.yield %next : f32
    }
    ```
    """

    name = "nest.sequential"

    inits = var_operand_def()
    """What the first point starts from."""
    res = var_result_def()
    """What the last point yields; the initial values when there is no point."""

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())

    def __init__(self, axes: Sequence[AxisAttr], inits: Sequence[SSAValue], body: Region):
        super().__init__(
            operands=[inits],
            properties={"axes": ArrayAttr(axes)},
            regions=[body],
            result_types=[[init.type for init in inits]],
        )

    @property
    def carried(self) -> Sequence[SSAValue]:
        """The carried values within the body."""
        return self.body.block.args[len(self.axes) :]

    def verify_(self) -> None:
        verify_indices(self.axes, self.indices)
        want = [init.type for init in self.inits]
        lists = {
            "block arguments": [value.type for value in self.carried],
            "yielded values": [value.type for value in self.yielded],
            "results": [value.type for value in self.res],
        }
        for what, have in lists.items():
            if have != want:
                raise VerifyException(
                    f"expected {what} of the types that are carried "
                    f"({', '.join(map(str, want))}), found ({', '.join(map(str, have))})"
                )

    @classmethod
    def parse(cls, parser: Parser) -> SequentialOp:
        parser.parse_keyword("over")
        axes, arguments = parse_axes(parser)
        inits: list[SSAValue] = []

        def parse_carried() -> None:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            init = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            type = parser.parse_type()
            arguments.append(argument.resolve(type))
            inits.append(parser.resolve_operand(init, type))

        if parser.parse_optional_keyword("carrying"):
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_carried)
        op = cls(list(axes), inits, parser.parse_region(arguments))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op.attributes.update(attributes.data if attributes else {})
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" over ")
        print_axes(printer, self.axes, self.indices)
        if self.inits:
            printer.print_string(" carrying ")
            with printer.in_square_brackets():
                printer.print_list(
                    zip(self.carried, self.inits, strict=True),
                    lambda pair: _print_carried(printer, *pair),
                )
        printer.print_string(" ")
        printer.print_region(
            self.body,
            print_entry_block_args=False,
            print_block_terminators=says_something(self.body),
        )
        printer.print_op_attributes(self.attributes, print_keyword=True)


def _print_carried(printer: Printer, argument: SSAValue, init: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(init)
    printer.print_string(" : ")
    printer.print_attribute(init.type)
