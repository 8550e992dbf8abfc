"""What a group touches: its iteration space and its loads, as the access analysis sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from plait.passes.analysis.affine import Expr
from plait.passes.analysis.index_maps import Condition


@dataclass(frozen=True)
class Where:
    """Which element is read at a point: equal for loads of the same elements at the same points."""

    position: Expr | None
    """The row-major position in the buffer, over the axes of the space."""
    conditions: frozenset[Condition] = frozenset()
    """Where it is read at all."""


@dataclass(frozen=True)
class Load:
    """One way in which a group reads one of its operands."""

    buffer: SSAValue
    """The operand of the group."""
    late: bool
    """Whether it is read after the reduce, in the space of the result."""
    access: str
    """``bijective``, ``injective``, ``broadcast`` or ``irregular``."""
    where: Where
    bytes: int
    """Bytes of the distinct elements that are read."""

    @property
    def key(self) -> tuple[SSAValue, Where]:
        return (self.buffer, self.where)


@dataclass(frozen=True)
class Footprint:
    """The iteration space of a group and what it reads at the points of it."""

    space: tuple[int, ...] | None
    """Extents of the full space, kept and reduced axes; None if the group has several spaces."""
    reduced: tuple[int, ...]
    """The axes of the space that its reduces close; none for a pointwise group."""
    loads: tuple[Load, ...]
    outputs: tuple[SSAValue, ...]
    """What it stores."""
    large: frozenset[tuple[SSAValue, Where]]
    """The bijective loads before the reduce: each as large as the space."""
    sweeps: int
    """How often the space is walked, one after the other: a reduce, then what uses it in full."""
    aligned: bool
    """Whether every value that several results need is needed at one point for each."""

    @property
    def points(self) -> int:
        """Points of the space."""
        return prod(self.space or ())

    @property
    def rows(self) -> int:
        """Points of the kept space."""
        return prod(e for k, e in enumerate(self.space or ()) if k not in self.reduced)

    @staticmethod
    def of(
        space: tuple[int, ...] | None,
        reduced: tuple[int, ...],
        loads: Iterable[Load],
        outputs: tuple[SSAValue, ...],
        sweeps: int = 1,
        aligned: bool = True,
    ) -> Footprint:
        loads = tuple(dict.fromkeys(loads))
        large = frozenset(x.key for x in loads if x.access == "bijective" and not x.late)
        return Footprint(space, reduced, loads, outputs, large, sweeps, aligned)

    def merged(self, other: Footprint) -> Footprint:
        """The footprint of both groups as one kernel over the space they have in common."""
        return Footprint.of(
            self.space, self.reduced, (*self.loads, *other.loads), (*self.outputs, *other.outputs)
        )

    def buffers(self, late: bool | None = None) -> frozenset[SSAValue]:
        """The buffers read; only those read late or early if asked for."""
        return frozenset(x.buffer for x in self.loads if late is None or x.late == late)
