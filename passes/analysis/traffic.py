"""What one kernel moves: the distinct elements it reads of every buffer, as often as it must fetch
them, and what it writes.

A buffer that sweeps at several levels read is fetched once if it stays on chip between them: if
what the kernel reads of it for one row fits. A row is what one point of the axes that all these
sweeps share leaves to be walked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dtypes import itemsize
from plait.passes.analysis.access import Access, AccessKind, elements_read
from plait.passes.analysis.reads import Sweep, sweeps_of_group, sweeps_of_operations
from plait.passes.analysis.targets import Target


@dataclass(frozen=True)
class Read:
    """One buffer that a kernel reads."""

    buffer: SSAValue
    elements: int
    """Distinct elements read."""
    bytes: int
    """Bytes fetched: distinct elements, times the sweeps that fetch them."""
    sweeps: int
    """How often the buffer is fetched."""
    kinds: tuple[AccessKind, ...]
    """The ways in which it is read."""
    exact: bool
    """Whether ``elements`` is the number; an upper bound otherwise."""


@dataclass(frozen=True)
class Traffic:
    """What a kernel reads and writes."""

    reads: tuple[Read, ...]
    writes: tuple[int, ...]
    """Bytes of every output."""

    @property
    def bytes_read(self) -> int:
        return sum(read.bytes for read in self.reads)

    @property
    def bytes_written(self) -> int:
        return sum(self.writes)

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


def bytes_of(value: SSAValue) -> int:
    """Bytes of a tensor in memory."""
    return prod(lazy.shape_of(value)) * itemsize(lazy.element_type_of(value))


def traffic_of_group(group: GroupOp, target: Target) -> Traffic:
    """What a group moves as one kernel on ``target``."""
    return traffic_of_sweeps(sweeps_of_group(group), group.outputs, target)


def traffic_of_operations(
    operations: Collection[Operation], outputs: Sequence[SSAValue], target: Target
) -> Traffic:
    """What a kernel of these operations would move that stores ``outputs``; whatever else they use
    is a buffer. Needs no change of the program."""
    return traffic_of_sweeps(sweeps_of_operations(operations, outputs), outputs, target)


def traffic_of_sweeps(
    sweeps: Sequence[Sweep], outputs: Iterable[SSAValue], target: Target
) -> Traffic:
    """What sweeps move that run as one kernel."""
    by_buffer: dict[SSAValue, dict[int, list[Access]]] = {}
    for sweep in sweeps:
        for load in sweep.loads:
            by_buffer.setdefault(load.value, {}).setdefault(sweep.level, []).append(load)
    again = _fetched_again(by_buffer, sweeps, target)
    reads = [_read(buffer, levels, buffer in again) for buffer, levels in by_buffer.items()]
    return Traffic(tuple(reads), tuple(bytes_of(value) for value in outputs))


def _read(buffer: SSAValue, levels: dict[int, list[Access]], again: bool) -> Read:
    loads = [load for accesses in levels.values() for load in accesses]
    elements, exact = elements_read(loads)
    fetched = elements
    if again:
        fetched = sum(elements_read(accesses)[0] for accesses in levels.values())
    element = itemsize(lazy.element_type_of(buffer))
    kinds = tuple(sorted({load.kind for load in loads}))
    sweeps = len(levels) if again else 1
    return Read(buffer, elements, fetched * element, sweeps, kinds, exact)


def _fetched_again(
    by_buffer: dict[SSAValue, dict[int, list[Access]]], sweeps: Sequence[Sweep], target: Target
) -> set[SSAValue]:
    """The buffers read at several levels that do not stay on chip, the shortest rows kept first."""
    rows: list[tuple[int, SSAValue]] = []
    for buffer, levels in by_buffer.items():
        if len(levels) > 1:
            elements, _ = elements_read([load for each in levels.values() for load in each])
            count = rows_between(sweeps, min(levels), max(levels))
            row = -(-elements // count) * itemsize(lazy.element_type_of(buffer))
            rows.append((row, buffer))
    again: set[SSAValue] = set()
    kept = 0
    for row, buffer in sorted(rows, key=lambda entry: entry[0]):
        if kept + row <= target.on_chip_bytes:
            kept += row
        else:
            again.add(buffer)
    return again


def rows_between(sweeps: Sequence[Sweep], first: int, last: int) -> int:
    """How many rows can be walked independently by the sweeps of levels ``first`` to ``last``."""
    counts = [
        _rows(access, sweep.reduced)
        for sweep in sweeps
        if first < sweep.level <= last
        for access in sweep.inner
    ]
    return max(min(counts, default=1), 1)


def _rows(access: Access, reduced: tuple[int, ...]) -> int:
    """Elements of an inner result that points reach which share no combined axis: neither one that
    the reading sweep combines, nor one along which the result was made in order."""
    op = access.value.owner
    closed: set[int] = set()
    if isinstance(op, lazy.ScanOp | lazy.ScatterOp):
        closed.add(op.axis.value.data)
    closed.update(
        axis for axis, expr in enumerate(access.point) if expr.indices().intersection(reduced)
    )
    parts = access.image.parts
    return prod(part.values.size for part in parts if not closed.intersection(part.axes))
