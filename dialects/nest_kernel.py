"""Operations of the ``nest`` dialect that define and launch a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttrConstr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    MemoryAllocEffect,
    SingleBlockImplicitTerminator,
    SymbolOpInterface,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from plait.dialects.nest_attrs import AxisAttr, ScheduleAttr
from plait.dialects.nest_loops import (
    Axes,
    LoopOp,
    YieldOp,
    parse_axes,
    print_axes,
    says_something,
    verify_indices,
)


@irdl_op_definition
class KernelOp(IRDLOperation):
    """One kernel: its body runs once at every point of the parallel axes, in any order.

    The body's arguments are the buffers, then the index of each axis. `source` says what the
    kernel computes, for readers of the generated code.

    Example:
    ```mlir
    nest.kernel @relu(%x: memref<64xf32>, %y: memref<64xf32>) axes [%i = 64] {
      %v = nest.load %x[(d0) -> (d0)](%i) : memref<64xf32>
      %zero = arith.constant 0.0 : f32
      %r = arith.maximumf %v, %zero : f32
      nest.store %r, %y[(d0) -> (d0)](%i) : memref<64xf32>
    }
    ```
    """

    name = "nest.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    axes = prop_def(Axes)
    """The parallel axes, outermost first."""
    schedule = opt_prop_def(ScheduleAttr)
    source = opt_prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(
        IsolatedFromAbove(), SymbolOpInterface(), SingleBlockImplicitTerminator(YieldOp)
    )

    def __init__(
        self,
        name: str,
        axes: Sequence[AxisAttr],
        body: Region,
        schedule: ScheduleAttr | None = None,
        source: str | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "axes": ArrayAttr(axes),
                "schedule": schedule,
                "source": None if source is None else StringAttr(source),
            },
            regions=[body],
        )

    def __post_init__(self) -> None:
        for trait in self.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(self, trait)

    @property
    def buffers(self) -> Sequence[SSAValue]:
        return self.body.block.args[: len(self.body.block.args) - len(self.axes)]

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The index of each parallel axis."""
        return self.body.block.args[len(self.body.block.args) - len(self.axes) :]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(axis.extent.data for axis in self.axes)

    def verify_(self) -> None:
        if len(self.body.block.args) < len(self.axes):
            raise VerifyException(f"expected a block argument for each of {len(self.axes)} axes")
        verify_indices(self.axes, self.indices)
        for number, buffer in enumerate(self.buffers):
            if not isinstance(buffer.type, MemRefType):
                raise VerifyException(
                    f"expected buffer {number} to be a memref, found {buffer.type}"
                )
        last = self.body.block.last_op
        if isinstance(last, YieldOp) and last.arguments:
            raise VerifyException(
                f"a kernel yields nothing, found {len(last.arguments)} values: its results are "
                "what it stores"
            )
        self._verify_schedule()

    def _verify_schedule(self) -> None:
        """The pieces of an axis that the schedule splits cover its extent."""
        if self.schedule is None:
            return
        extents: dict[str, int] = {}
        for op in self.walk():
            axes = op.axes if isinstance(op, KernelOp | LoopOp) else ()
            for axis in axes:
                extents[axis.axis.data] = max(axis.extent.data, extents.get(axis.axis.data, 0))
        covered: dict[str, int] = {}
        for piece in self.schedule.pieces:
            name = piece.axis.data
            if name not in extents:
                raise VerifyException(
                    f"the schedule splits axis '{name}', which the kernel does not have: its "
                    f"axes are {', '.join(extents) or 'none'}"
                )
            covered[name] = covered.get(name, 1) * piece.size.data
        for name, points in covered.items():
            if points < extents[name]:
                raise VerifyException(
                    f"the schedule's pieces cover {points} of the {extents[name]} points of "
                    f"axis '{name}'"
                )

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("axes")
        axes, indices = parse_axes(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword(("sym_name", "axes"))
        body = parser.parse_region([*arguments, *indices])
        op = cls(name.data, list(axes), body)
        given: dict[str, Attribute] = dict(attributes.data) if attributes else {}
        for key, value in given.items():
            (op.properties if key in ("schedule", "source") else op.attributes)[key] = value
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.buffers, lambda buffer: _print_argument(printer, buffer))
        printer.print_string(" axes ")
        print_axes(printer, self.axes, self.indices)
        shown = {
            key: value
            for key in ("schedule", "source")
            if (value := self.properties.get(key)) is not None
        }
        printer.print_op_attributes({**shown, **self.attributes}, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(
            self.body,
            print_entry_block_args=False,
            print_block_terminators=says_something(self.body),
        )


def _print_argument(printer: Printer, argument: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(": ")
    printer.print_attribute(argument.type)


@irdl_op_definition
class LocalOp(IRDLOperation):
    """Memory of one point of the parallel axes: kept on chip, undefined at first.

    The body stores to it in one sweep and loads from it in later ones.

    Example: `%row = nest.local : memref<64xf32>`
    """

    name = "nest.local"

    buffer = result_def(MemRefType)

    traits = traits_def(HasParent(KernelOp), MemoryAllocEffect())

    assembly_format = "attr-dict `:` type($buffer)"

    def __init__(self, type: MemRefType[Attribute]):
        super().__init__(result_types=[type])


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs a kernel on buffers.

    Example: `nest.launch @relu(%x, %y) : memref<64xf32>, memref<64xf32>`
    """

    name = "nest.launch"

    kernel = prop_def(FlatSymbolRefAttrConstr)
    buffers = var_operand_def(MemRefType)

    assembly_format = "$kernel `(` $buffers `)` attr-dict `:` type($buffers)"

    def __init__(self, kernel: str, buffers: Sequence[SSAValue]):
        super().__init__(operands=[buffers], properties={"kernel": SymbolRefAttr(kernel)})

    def verify_(self) -> None:
        """Launches of one block are verified together, with one look at the module."""
        previous = self.prev_op
        while previous is not None and not isinstance(previous, LaunchOp):
            previous = previous.prev_op
        block, module = self.parent_block(), self.get_toplevel_object()
        if previous is None and block is not None and isinstance(module, ModuleOp):
            _verify_launches(block, module)


def _verify_launches(block: Block, module: ModuleOp) -> None:
    """Every launch names a kernel of the module and passes what it takes."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    for launch in block.ops:
        if not isinstance(launch, LaunchOp):
            continue
        name = launch.kernel.string_value()
        kernel = kernels.get(name)
        if kernel is None:
            raise VerifyException(f"no kernel @{name} in the module")
        have = [buffer.type for buffer in launch.buffers]
        want = [buffer.type for buffer in kernel.buffers]
        if have != want:
            raise VerifyException(
                f"the launch of @{name} passes ({', '.join(map(str, have))}), expected "
                f"({', '.join(map(str, want))})"
            )
