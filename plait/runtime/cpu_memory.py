"""Aligned buffers: temporaries share one arena by liveness, results come from a pool."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.runtime.host_plan import HostPlan

Bytes = NDArray[np.uint8]
ALIGNMENT = 64


def aligned_bytes(count: int) -> Bytes:
    """``count`` uninitialised bytes at a multiple of :data:`ALIGNMENT`."""
    raw = np.empty(count + ALIGNMENT, dtype=np.uint8)
    return _aligned(raw, raw.ctypes.data, count)[0]


def _aligned(raw: Bytes, start: int, count: int) -> tuple[Bytes, int]:
    """The aligned part of memory that begins at ``start``, and where that begins."""
    skip = -start % ALIGNMENT
    return raw[skip : skip + count], start + skip


def _references(blocks: list[Bytes], index: int) -> int:
    """The reference count of one block, as seen from here."""
    return sys.getrefcount(blocks[index])


_IDLE = _references([np.empty(1, dtype=np.uint8)], 0)
"""What :func:`_references` says of a block that only its list refers to."""


class ResultPool:
    """Hands out result buffers, again once the caller has let go of every array on them.

    ``sizes`` are those of one run; buffers for two runs and two more of each size are kept, so that
    a caller may still look at the results of a run during the next.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.limits = {size: 2 * count + 2 for size, count in Counter(sizes).items()}
        self.blocks: dict[int, list[Bytes]] = {}
        self.starts: dict[int, list[int]] = {}
        """The address of every block: numpy takes its time to tell it."""

    def take(self, count: int) -> tuple[Bytes, int]:
        """An aligned buffer nobody else looks at, and its address."""
        kept = self.blocks.setdefault(count, [])
        starts = self.starts.setdefault(count, [])
        for index in range(len(kept)):
            if _references(kept, index) == _IDLE:
                return _aligned(kept[index], starts[index], count)
        raw = np.empty(count + ALIGNMENT, dtype=np.uint8)
        start = raw.ctypes.data
        if len(kept) < self.limits.get(count, 0):
            kept.append(raw)
            starts.append(start)
        return _aligned(raw, start, count)


def lifetimes(plan: HostPlan) -> dict[int, tuple[int, int]]:
    """First and last launch that touches each buffer that only launches touch."""
    found: dict[int, tuple[int, int]] = {}

    def touch(buffer: int, time: int) -> None:
        first, _ = found.get(buffer, (time, time))
        found[buffer] = (first, time)

    for time, launch in enumerate(plan.launches):
        for source, target in plan.copies.get(time, []):
            touch(source.buffer, time)
            touch(target.buffer, time)
        for view in launch.arguments:
            touch(view.buffer, time)
    for pair in plan.copies.get(len(plan.launches), []):
        for view in pair:
            touch(view.buffer, len(plan.launches))
    kept = {*plan.arguments, *plan.constants, *(view.buffer for view in plan.results)}
    return {buffer: span for buffer, span in found.items() if buffer not in kept}


def place(plan: HostPlan) -> tuple[dict[int, int], int]:
    """Offsets of the temporaries in one arena, and its size: largest first, lowest fit."""
    spans = lifetimes(plan)
    order = sorted(spans, key=lambda buffer: -plan.buffers[buffer].nbytes)
    placed: list[tuple[int, int, int, int]] = []
    offsets: dict[int, int] = {}
    size = 0
    for buffer in order:
        first, last = spans[buffer]
        need = -(-max(plan.buffers[buffer].nbytes, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        busy = sorted((start, end) for start, end, a, b in placed if not (b < first or last < a))
        for start, end in busy:
            if offset + need <= start:
                break
            offset = max(offset, end)
        offsets[buffer] = offset
        placed.append((offset, offset + need, first, last))
        size = max(size, offset + need)
    return offsets, size


def as_array(memory: Bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """``memory`` seen as an array."""
    return memory.view(dtype).reshape(shape)
