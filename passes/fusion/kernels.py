"""What a merged kernel must be like: predicates on two groups and the kernel they would be."""

from __future__ import annotations

from plait.passes.fusion.engine import Merge
from plait.passes.fusion.footprint import Footprint
from plait.passes.fusion.legality import YES, Verdict, within_launch

MIN_ROWS = 32
"""Rows that a kernel with full-size results needs: they are what runs in parallel."""
SMALL_SPACE = 1 << 15
"""Points of a space that is walked fast enough by few threads."""
ON_CHIP = 48 << 10
"""Bytes of a row that stay on chip between sweeps: shared memory of a block without opting in."""


def one_space(merge: Merge) -> Verdict:
    """All reduces close the same axes of one space, and every result is of it or of its rows."""
    if merge.whole.space is not None:
        return YES
    return Verdict("fuse.space-differs", "the iteration spaces or the reduced axes differ")


def aligned(merge: Merge) -> Verdict:
    """What passes between the groups is needed at the point where it is made."""
    if merge.whole.aligned:
        return YES
    message = "one group needs the other's values at other points than they are made at"
    return Verdict("fuse.points-differ", message)


def fits(merge: Merge) -> Verdict:
    """The kernel's arguments fit a launch."""
    return within_launch(len(merge.whole.buffers()), len(merge.whole.outputs))


def saves_bytes(merge: Merge) -> Verdict:
    """The plan moves fewer bytes."""
    if merge.saved > 0:
        return YES
    return Verdict("fuse.saves-nothing", "merging would save no bytes", {"saved": merge.saved})


def same_sweeps(merge: Merge) -> Verdict:
    """The kernel walks the space no more often than the groups did."""
    before = max(merge.a.sweeps, merge.b.sweeps)
    if merge.whole.sweeps <= before:
        return YES
    message = "the merged kernel would have to walk the space once more"
    return Verdict("fuse.needs-another-sweep", message, {"sweeps": merge.whole.sweeps})


def enough_rows(merge: Merge) -> Verdict:
    """A kernel that reduces and also works on the full space has rows to run in parallel."""
    whole = merge.whole
    full = not merge.a.reduced or not merge.b.reduced or whole.sweeps > 1
    if not whole.reduced or not full or whole.rows >= MIN_ROWS or whole.points <= SMALL_SPACE:
        return YES
    message = "too few rows would run in parallel"
    return Verdict("fuse.too-few-rows", message, {"rows": whole.rows, "least": MIN_ROWS})


def row_stays_on_chip(merge: Merge) -> Verdict:
    """What a later sweep reads again is still on chip from the one before."""
    whole = merge.whole
    if whole.sweeps <= 1:
        return YES
    row = _row_bytes(whole)
    if row <= ON_CHIP:
        return YES
    message = "a row does not stay on chip from one sweep to the next"
    return Verdict("fuse.row-too-long", message, {"bytes": row, "limit": ON_CHIP})


def short_rows(first: Footprint, last: Footprint) -> Verdict:
    """If the second group walks the space again after a reduce of the first, rows are short."""
    again = first.reduced and last.points == first.points
    if not again or not last.buffers() & frozenset(first.outputs):
        return YES
    row = max(_row_bytes(first), _row_bytes(last) if last.reduced else 0)
    if row <= ON_CHIP:
        return YES
    message = "a row does not stay on chip from one sweep to the next"
    return Verdict("fuse.row-too-long", message, {"bytes": row, "limit": ON_CHIP})


def _row_bytes(footprint: Footprint) -> int:
    total = sum({x.key: x.bytes for x in footprint.loads if not x.late}.values())
    return total // max(footprint.rows, 1)
