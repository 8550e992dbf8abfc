"""What a group touches: its iteration space and its loads, as the access analysis sees them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from xdsl.ir import SSAValue


@dataclass(frozen=True)
class Load:
    """One way in which a group reads one of its operands."""

    buffer: SSAValue
    """The operand of the group."""
    late: bool
    """Whether it is read after the reduce, in the space of the result."""
    access: str
    """``bijective``, ``injective``, ``broadcast`` or ``irregular``."""
    where: Hashable
    """Equal for loads of the same elements at the same points of the iteration space."""
    bytes: int
    """Bytes of the distinct elements that are read."""

    @property
    def key(self) -> tuple[SSAValue, Hashable]:
        return (self.buffer, self.where)


@dataclass(frozen=True)
class Footprint:
    """The iteration space of a group and what it reads at the points of it."""

    space: tuple[int, ...] | None
    """Extents of the full space, kept and reduced axes; None if the group has several spaces."""
    reduced: tuple[int, ...]
    """The axes of the space that its reduces close; none for a pointwise group."""
    loads: tuple[Load, ...]
    written: int
    """Bytes it stores."""
    large: frozenset[tuple[SSAValue, Hashable]]
    """The bijective loads before the reduce: each as large as the space."""

    @staticmethod
    def of(
        space: tuple[int, ...] | None, reduced: tuple[int, ...], loads: Iterable[Load], written: int
    ) -> Footprint:
        loads = tuple(dict.fromkeys(loads))
        large = frozenset(x.key for x in loads if x.access == "bijective" and not x.late)
        return Footprint(space, reduced, loads, written, large)

    def merged(self, other: Footprint) -> Footprint:
        """The footprint of both groups as one kernel over the space they have in common."""
        return Footprint.of(
            self.space, self.reduced, (*self.loads, *other.loads), self.written + other.written
        )

    def buffers(self, late: bool | None = None) -> frozenset[SSAValue]:
        """The buffers read; only those read late or early if asked for."""
        return frozenset(x.buffer for x in self.loads if late is None or x.late == late)
