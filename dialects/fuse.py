"""The ``fuse`` dialect: a kernel plan. One ``fuse.group`` is one kernel launch.

A group is isolated: what it reads are its operands, each a whole buffer in memory; what it writes
are its results. SSA dominance between groups is the certificate that every group is a contiguous
sub-DAG: a group that some path leaves and re-enters cannot be placed in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Self, cast

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, TensorType, i64
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SingleBlockImplicitTerminator,
)
from xdsl.utils.exceptions import VerifyException

AnyTensor = TensorType[Attribute]


def _verify_tensors(values: Sequence[SSAValue], what: str) -> None:
    for number, value in enumerate(values):
        if not isinstance(value.type, TensorType):
            raise VerifyException(f"{what} {number} must be a tensor, found {value.type}")


def _verify_order(block: Block | None) -> None:
    """Every group comes after what it reads. Checked once a block, from its first group: xDSL does
    not verify dominance, and asking for every pair of operations would be quadratic."""
    seen: set[Operation] = set()
    for op in block.ops if block is not None else ():
        for number, value in enumerate(op.operands):
            owner = value.owner
            if isinstance(owner, Operation) and owner.parent is block and owner not in seen:
                raise VerifyException(
                    f"operand {number} of '{op.name}' is defined after its use: groups are "
                    "contiguous sub-DAGs, so they can be ordered"
                )
        seen.add(op)


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends a group and names the tensors it stores.

    ``fuse.yield %a, %b : tensor<4xf32>, tensor<f32>``
    """

    name = "fuse.yield"

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(GroupOp), Pure()))


@irdl_op_definition
class KeepOp(IRDLOperation):
    """The same tensor, computed once and kept on chip while the kernel needs it.

    ``%k = fuse.keep %m : tensor<64x16xf32>``

    The kernel runs in parallel over the axes along which everything it stores needs the tensor at
    one position (its rows) and keeps it along the others. So a matrix product can read the result
    of another one of the same kernel without computing it again and again.
    """

    name = "fuse.keep"

    T: ClassVar = VarConstraint("T", AnyAttr())

    operand = operand_def(T)
    result = result_def(T)

    assembly_format = "$operand attr-dict `:` type($operand)"

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue):
        super().__init__(operands=[operand], result_types=[operand.type])

    def verify_(self) -> None:
        _verify_tensors([self.operand], "operand")


@irdl_op_definition
class GroupOp(IRDLOperation):
    """One kernel: reads its operands, computes its ``lazy`` operations, stores what it yields.

    ```mlir
    %s = fuse.group "row_sum" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
      %r = lazy.reduce sum %a, [1] : (tensor<4x8xf32>) -> tensor<4xf32>
      fuse.yield %r : tensor<4xf32>
    }
    ```
    Every operand is a buffer: an argument of the function, a result of another group, or a
    constant. The attribute ``fuse.updates`` says for each result over which input it is written
    (-1 for none): elements that are the input's already are then neither read nor written.
    """

    name = "fuse.group"

    inputs = var_operand_def(Attribute)
    """The buffers the kernel reads; each is one argument of the body."""

    label = opt_prop_def(StringAttr)
    """A name for people: reports, remarks and generated code use it. Need not be unique."""

    outputs = var_result_def(Attribute)
    """The buffers the kernel writes, in the order of the yield."""

    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), Pure(), SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        output_types: Sequence[Attribute],
        body: Region | Block,
        label: str | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[inputs],
            result_types=[output_types],
            properties={"label": None if label is None else StringAttr(label)},
            attributes=dict(attributes or {}),
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @property
    def block(self) -> Block:
        """The only block of the body."""
        return self.body.block

    @property
    def yield_op(self) -> YieldOp:
        """The terminator of the body."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return last

    def body_ops(self) -> list[Operation]:
        """The operations of the body, without the yield."""
        ops = list(self.body.block.ops)
        if ops and isinstance(ops[-1], YieldOp):
            ops.pop()
        return ops

    def verify_(self) -> None:
        _verify_tensors(self.inputs, "input")
        _verify_tensors(self.outputs, "output")
        if not self.outputs:
            raise VerifyException("a group without results computes nothing")
        arguments = [argument.type for argument in self.block.args]
        inputs = [value.type for value in self.inputs]
        if len(arguments) != len(inputs):
            raise VerifyException(
                f"the body must have one argument per input: expected {len(inputs)}, "
                f"found {len(arguments)}"
            )
        for number, (want, have) in enumerate(zip(inputs, arguments, strict=True)):
            if want != have:
                raise VerifyException(
                    f"argument {number} of the body must have the type of input {number}: "
                    f"expected {want}, found {have}"
                )
        self._verify_body()
        self._verify_updates()
        if self._is_first_group():
            _verify_order(self.parent_block())

    @property
    def updates(self) -> dict[int, int]:
        """The outputs that are written over an input, with the number of the input."""
        numbers = self.attributes.get("fuse.updates")
        if not isinstance(numbers, DenseArrayBase):
            return {}
        listed = enumerate(cast(Any, numbers).get_values())
        return {output: int(number) for output, number in listed if number >= 0}

    def set_updates(self, updates: Mapping[int, int]) -> None:
        """States which outputs are written over which inputs."""
        numbers = [updates.get(number, -1) for number in range(len(self.outputs))]
        self.attributes["fuse.updates"] = DenseArrayBase.from_list(i64, numbers)

    def _verify_updates(self) -> None:
        numbers = self.attributes.get("fuse.updates")
        if numbers is not None and not (
            isinstance(numbers, DenseArrayBase) and len(numbers) == len(self.outputs)
        ):
            raise VerifyException(
                f"fuse.updates must have a number per result: expected {len(self.outputs)}"
            )
        for output, number in self.updates.items():
            types = [cast(AnyTensor, self.outputs[output].type)]
            types += [cast(AnyTensor, x.type) for x in self.inputs[number : number + 1]]
            shapes = {prod(type.get_shape()) for type in types}
            if (
                len(types) != 2
                or len(shapes) != 1
                or types[0].element_type != types[1].element_type
            ):
                raise VerifyException(
                    f"result {output} cannot be written over input {number}: expected an input of "
                    "as many elements of the same type"
                )

    def _is_first_group(self) -> bool:
        previous = self.prev_op
        while previous is not None and not isinstance(previous, GroupOp):
            previous = previous.prev_op
        return previous is None

    def _verify_body(self) -> None:
        for op in self.block.ops:
            if not op.name.startswith("lazy.") and not isinstance(op, YieldOp | KeepOp):
                raise VerifyException(f"a group holds operations of 'lazy', found '{op.name}'")
        yielded = [value.type for value in self.yield_op.arguments]
        outputs = [value.type for value in self.outputs]
        if len(yielded) != len(outputs):
            raise VerifyException(
                f"the yield must have one operand per result: expected {len(outputs)}, "
                f"found {len(yielded)}"
            )
        for number, (want, have) in enumerate(zip(outputs, yielded, strict=True)):
            if want != have:
                raise VerifyException(
                    f"operand {number} of the yield must have the type of result {number}: "
                    f"expected {want}, found {have}"
                )

    def print(self, printer: Printer) -> None:
        if self.label is not None:
            printer.print_string(" ")
            printer.print_string_literal(self.label.data)
        printer.print_string(" ")
        with printer.in_parens():
            pairs = list(zip(self.block.args, self.inputs, strict=True))
            printer.print_list(pairs, lambda pair: _print_input(printer, pair[0], pair[1]))
        printer.print_string(" -> ")
        printer.print_list(self.outputs.types, printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        label = parser.parse_optional_str_literal()
        inputs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_input(parser), " in the inputs of a group"
        )
        parser.parse_punctuation("->")
        output_types = [parser.parse_type()]
        while parser.parse_optional_punctuation(","):
            output_types.append(parser.parse_type())
        attributes = parser.parse_optional_attr_dict_with_keyword()
        operands = [parser.resolve_operand(operand, argument.type) for argument, operand in inputs]
        body = _parse_isolated_region(parser, [argument for argument, _ in inputs])
        return cls(operands, output_types, body, label, attributes.data if attributes else None)


def _print_input(printer: Printer, argument: SSAValue, value: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(value)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


def _parse_input(parser: Parser) -> tuple[Parser.Argument, UnresolvedOperand]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return argument.resolve(parser.parse_type()), operand


def _parse_isolated_region(parser: Parser, arguments: list[Parser.Argument]) -> Region:
    """A region whose names are its own. The parser would let them clash with the function's, and
    copies all of the function's names at every region."""
    outer, outer_references = parser.ssa_values, parser.forward_ssa_references
    parser.ssa_values, parser.forward_ssa_references = {}, {}
    start = parser.pos
    body = parser.parse_region(arguments)
    if missing := sorted(parser.forward_ssa_references):
        names = ", ".join(f"%{name}" for name in missing)
        parser.raise_error(
            f"a group sees only its own arguments: {names} is not defined in its body", start
        )
    parser.ssa_values, parser.forward_ssa_references = outer, outer_references
    return body


Fuse = Dialect("fuse", [GroupOp, KeepOp, YieldOp], [])
"""The dialect ``fuse``."""
