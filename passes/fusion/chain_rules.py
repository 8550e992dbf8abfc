"""Whether groups can be one kernel in which reduces feed reduces, and what it keeps on chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dtypes import itemsize
from plait.passes.analysis.rows import Rows, Steps, rows_of
from plait.passes.analysis.targets import Target
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.kernels import MIN_ROWS, ON_CHIP, SMALL_SPACE
from plait.passes.fusion.legality import YES, Verdict
from plait.passes.fusion.merged import Merged, Views, points_of
from plait.passes.fusion.objective import Objective
from plait.passes.fusion.products import NESTED_EFFICIENCY, ROW_EFFICIENCY, pays

KEPT = ON_CHIP - (8 << 10)
"""Bytes of a row that may be kept: shared memory less what reductions need of it."""
LARGE = 16 << 10
"""Bytes of a buffer from which on it is worth reading once for two kernels."""
SHARED_OPERANDS = 1 << 20
"""Bytes that all rows read again, at most: they have to stay in a second-level cache."""


@dataclass(frozen=True)
class Chain:
    """A merge that would be made."""

    kept: tuple[SSAValue, ...]
    """What a row keeps on chip: values inside of the groups, and buffers."""
    saved: int


@dataclass
class ChainRules:
    """Judges sets of groups; what it has followed once, it remembers."""

    target: Target
    objective: Objective = Objective.TIME
    steps: Steps = field(default_factory=Steps)
    views: Views = field(default_factory=Views)

    def pair(
        self, first: Sequence[GroupOp], second: Sequence[GroupOp], held: Sequence[SSAValue] = ()
    ) -> Chain | Verdict:
        """Whether two sets of groups, of which the second reads what the first writes or both read
        a buffer, can be one kernel. ``held`` is what they keep already."""
        producers = set[Operation](first)
        groups = [*first, *second]
        merged = Merged.of(groups, self.steps, self.views)
        return self._judge(merged, merged.flows(producers), held, producers)

    def whole(self, groups: Sequence[GroupOp]) -> Chain | Verdict:
        """Whether groups, in topological order, can be one kernel."""
        merged = Merged.of(list(groups), self.steps, self.views)
        return self._judge(merged, merged.flows(), (), set(groups[:1]))

    def _judge(
        self,
        merged: Merged,
        flows: Sequence[SSAValue],
        held: Sequence[SSAValue],
        first: set[Operation],
    ) -> Chain | Verdict:
        verdict = merged.fits()
        if not verdict:
            return verdict
        saved = merged.saved()
        if not flows:
            return self._shared_rows(merged, held, first, saved)
        if not held and _side_by_side(merged) and merged.repeats((), flows, None) == 1:
            verdict = self._parallel(max(map(points_of, merged.results)), merged.work)
            verdict = verdict and self._pays(merged, saved, NESTED_EFFICIENCY)
            return Chain((), saved) if verdict else verdict
        return self._kept_rows(merged, tuple(dict.fromkeys((*held, *flows))), saved)

    def _shared_rows(
        self, merged: Merged, held: Sequence[SSAValue], first: set[Operation], saved: int
    ) -> Chain | Verdict:
        """Whether both read the rows of a buffer: then each row is read once."""
        verdict = Verdict("fuse.no-rows", "the groups have no rows in common")
        buffer = max(merged.shared(first), key=bytes_of, default=None)
        for shape in merged.shapes_of(buffer) if buffer is not None else ():
            assert buffer is not None
            view = self.views.of(buffer, shape)
            found = self._kept_rows(merged, tuple(dict.fromkeys((*held, view))), saved)
            if isinstance(found, Chain):
                return found if view in found.kept else verdict
            verdict = found if found.reason != verdict.reason else verdict
        return verdict

    def _kept_rows(self, merged: Merged, kept: Sequence[SSAValue], saved: int) -> Chain | Verdict:
        links = (*merged.reduces(), *(view for view in kept if view in self.views.buffer))
        rows = rows_of(kept, merged.places_of(kept), links)
        if rows is None:
            return Verdict("fuse.no-rows", "the groups have no rows in common")
        needed = tuple(value for value in kept if rows.kept(value))
        row = sum(_row_bytes(rows, value) for value in needed)
        if row > KEPT:
            message = "a row of what passes between the groups does not stay on chip"
            return Verdict("fuse.row-too-long", message, {"bytes": row, "limit": KEPT})
        again = merged.repeats(needed, (), rows)
        if again > 1:
            more = tuple(dict.fromkeys((*kept, *merged.reduces())))
            found = self._kept_rows(merged, more, saved) if len(more) > len(kept) else None
            if isinstance(found, Chain):
                return found
            message = "a reduce would be computed again and again"
            return Verdict("fuse.reduce-repeated", message, {"times": again})
        again = merged.shared_bytes(rows)
        if again > SHARED_OPERANDS:
            message = "what every row reads again does not stay in cache"
            facts = {"bytes": again, "limit": SHARED_OPERANDS}
            return Verdict("fuse.operand-too-large", message, dict(facts))
        verdict = self._parallel(rows.count, merged.work)
        verdict = verdict and self._pays(merged, saved, ROW_EFFICIENCY)
        return Chain(needed, saved) if verdict else verdict

    def _pays(self, merged: Merged, saved: int, efficiency: float) -> Verdict:
        if self.objective is Objective.BYTES:
            return YES
        return pays(merged.groups, saved, efficiency, self.target)

    def _parallel(self, rows: int, work: int) -> Verdict:
        if self.objective is Objective.BYTES or rows >= MIN_ROWS or work <= SMALL_SPACE:
            return YES
        message = "too few rows would run in parallel"
        return Verdict("fuse.too-few-rows", message, {"rows": rows, "least": MIN_ROWS})


def _side_by_side(merged: Merged) -> bool:
    """Whether threads can each store an element of every result, or there is little to do."""
    sizes = {points_of(result) for result in merged.results}
    return len(sizes) == 1 or merged.work <= SMALL_SPACE


def _row_bytes(rows: Rows, value: SSAValue) -> int:
    shape = lazy.shape_of(value)
    elements = prod(shape[axis] for axis in rows.kept(value))
    return elements * max(itemsize(lazy.element_type_of(value)), 4)
