"""Attributes of the ``nest`` dialect: named axes, combination kinds, and the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum


class CombineKind(StrEnum):
    """How a ``nest.reduce`` combines values. ``argmax`` and ``argmin`` combine a value with the
    position it came from."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"
    ARGMAX = "argmax"
    ARGMIN = "argmin"

    @property
    def width(self) -> int:
        """How many values it combines at once: two with a position, else one."""
        return 2 if self in (CombineKind.ARGMAX, CombineKind.ARGMIN) else 1


@irdl_attr_definition
class AxisAttr(ParametrizedAttribute):
    """An axis of a loop nest: a name and how many points it has.

    Example: `#nest.axis<i = 64>`
    """

    name: ClassVar[str] = "nest.axis"

    axis: StringAttr = param_def()
    extent: IntAttr = param_def()

    @staticmethod
    def get(axis: str, extent: int) -> AxisAttr:
        return AxisAttr(StringAttr(axis), IntAttr(extent))

    def verify(self) -> None:
        if self.extent.data < 0:
            raise VerifyException(f"axis '{self.axis.data}' has a negative extent")
        if not self.axis.data.isidentifier():
            raise VerifyException(f"axis name '{self.axis.data}' is not an identifier")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_axis_parameters(parser)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.axis.data} = {self.extent.data}")


def parse_axis_parameters(parser: AttrParser) -> tuple[StringAttr, IntAttr]:
    """`i = 64`."""
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    return StringAttr(name), IntAttr(parser.parse_integer(allow_boolean=False))


class Level(StrEnum):
    """Where a piece of an axis runs, from the outside in."""

    GRID = "grid"
    """Over the blocks of a GPU's grid."""
    THREAD = "thread"
    """Over the threads of a block, or of a CPU's pool."""
    UNROLL = "unroll"
    """Copies of the body, with accumulators of their own."""
    VECTOR = "vector"
    """Lanes of one vector access."""
    SERIAL = "serial"
    """A loop."""


@irdl_attr_definition
class PieceAttr(ParametrizedAttribute):
    """A factor of an axis and where it runs.

    Example: `#nest.piece<i = 32 : thread>`
    """

    name: ClassVar[str] = "nest.piece"

    axis: StringAttr = param_def()
    size: IntAttr = param_def()
    level: StringAttr = param_def()

    @staticmethod
    def get(axis: str, size: int, level: Level) -> PieceAttr:
        return PieceAttr(StringAttr(axis), IntAttr(size), StringAttr(level))

    def verify(self) -> None:
        if self.size.data < 1:
            raise VerifyException(f"a piece of axis '{self.axis.data}' must have a positive size")
        if self.level.data not in list(Level):
            raise VerifyException(
                f"unknown level '{self.level.data}': expected one of {', '.join(Level)}"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_piece_parameters(parser)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str_of_piece(self))


def parse_piece_parameters(parser: AttrParser) -> tuple[StringAttr, IntAttr, StringAttr]:
    """`i = 32 : thread`."""
    axis, size = parse_axis_parameters(parser)
    parser.parse_punctuation(":")
    return axis, size, StringAttr(parser.parse_identifier())


def str_of_piece(piece: PieceAttr) -> str:
    return f"{piece.axis.data} = {piece.size.data} : {piece.level.data}"


class Reduction(StrEnum):
    """How the reduce axes of a kernel are combined."""

    SERIAL = "serial"
    """Each thread combines all of its elements alone."""
    WARP = "warp"
    """The lanes of a warp share a reduction and combine by shuffles."""
    BLOCK = "block"
    """The threads of a block share a reduction and combine through shared memory."""


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """How a kernel runs on a target: the pieces its axes are split into, outermost first, and how
    it reduces. An axis without pieces is a serial loop; the pieces of an axis cover its extent.

    Example: `#nest.schedule<"cuda:sm_80", block, [i = 64 : grid, j = 256 : thread]>`
    """

    name: ClassVar[str] = "nest.schedule"

    target: StringAttr = param_def()
    reduction: StringAttr = param_def()
    pieces: ArrayAttr[PieceAttr] = param_def()

    @staticmethod
    def get(target: str, reduction: Reduction, pieces: Sequence[PieceAttr]) -> ScheduleAttr:
        return ScheduleAttr(StringAttr(target), StringAttr(reduction), ArrayAttr(pieces))

    def verify(self) -> None:
        if self.reduction.data not in list(Reduction):
            raise VerifyException(
                f"unknown reduction '{self.reduction.data}': expected one of {', '.join(Reduction)}"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            target = StringAttr(parser.parse_str_literal())
            parser.parse_punctuation(",")
            reduction = StringAttr(parser.parse_identifier())
            parser.parse_punctuation(",")
            pieces = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: PieceAttr(*parse_piece_parameters(parser))
            )
        return target, reduction, ArrayAttr(pieces)

    def print_parameters(self, printer: Printer) -> None:
        pieces = ", ".join(map(str_of_piece, self.pieces))
        with printer.in_angle_brackets():
            printer.print_string_literal(self.target.data)
            printer.print_string(f", {self.reduction.data}, [{pieces}]")
