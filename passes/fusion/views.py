"""Which chains of movement operations are strided views of a buffer: those cost no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.ir import Operation

from plait.dialects import lazy


@dataclass(frozen=True)
class Strided:
    """Element ``i`` of a view is element ``offset + sum(i_k * strides_k)`` of a buffer."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def whole(shape: Sequence[int]) -> Strided:
        """A buffer of this shape, row-major."""
        return Strided(tuple(shape), row_major(shape))

    @property
    def is_range(self) -> bool:
        """Whether the view is a contiguous row-major range of its buffer."""
        wanted = row_major(self.shape)
        return all(
            extent == 1 or have == want
            for extent, have, want in zip(self.shape, self.strides, wanted, strict=True)
        )


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a row-major buffer."""
    strides = list[int]()
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _ints(attribute: object) -> tuple[int, ...]:
    return tuple(cast(Any, attribute).get_values())


def apply(op: Operation, view: Strided) -> Strided | None:
    """The view an operation makes of a view, or None if strides cannot say it."""
    match op:
        case lazy.MaterializeOp():
            return view
        case lazy.ReshapeOp():
            return _reshape(view, lazy.shape_of(op.result))
        case lazy.PermuteOp():
            order = _ints(op.permutation)
            return Strided(
                tuple(view.shape[axis] for axis in order),
                tuple(view.strides[axis] for axis in order),
                view.offset,
            )
        case lazy.ExpandOp():
            shape = lazy.shape_of(op.result)
            grown = zip(view.shape, shape, view.strides, strict=True)
            return Strided(
                shape, tuple(step if old == new else 0 for old, new, step in grown), view.offset
            )
        case lazy.SliceOp():
            return _slice(view, op)
        case lazy.FlipOp():
            flipped = set(_ints(op.axes))
            strides = tuple(-s if k in flipped else s for k, s in enumerate(view.strides))
            moved = sum((view.shape[k] - 1) * view.strides[k] for k in flipped)
            return Strided(view.shape, strides, view.offset + moved)
        case lazy.WindowOp():
            return _window(view, op)
        case _:
            return None


def _slice(view: Strided, op: lazy.SliceOp) -> Strided:
    starts, steps = _ints(op.starts), _ints(op.steps)
    moved = sum(start * stride for start, stride in zip(starts, view.strides, strict=True))
    strides = tuple(stride * step for stride, step in zip(view.strides, steps, strict=True))
    return Strided(lazy.shape_of(op.result), strides, view.offset + moved)


def _window(view: Strided, op: lazy.WindowOp) -> Strided:
    strides = list(view.strides)
    windows = list[int]()
    for axis, step, dilation in zip(
        _ints(op.axes), _ints(op.strides), _ints(op.dilations), strict=True
    ):
        windows.append(view.strides[axis] * dilation)
        strides[axis] = view.strides[axis] * step
    return Strided(lazy.shape_of(op.result), (*strides, *windows), view.offset)


def _reshape(view: Strided, shape: Sequence[int]) -> Strided | None:
    """Splits and joins axes without moving elements, if the strides allow it."""
    runs = _runs(view)
    strides = list[int]()
    remaining, step = runs.pop() if runs else (1, 1)
    for extent in reversed(shape):
        if extent == 1:
            strides.append(step)
            continue
        while remaining == 1 and runs:
            remaining, step = runs.pop()
        if remaining % extent:
            return None
        strides.append(step)
        remaining //= extent
        step *= extent
    return Strided(tuple(shape), tuple(reversed(strides)), view.offset)


def _runs(view: Strided) -> list[tuple[int, int]]:
    """Neighbouring axes that step as one, joined: (extent, innermost stride), outermost first."""
    runs = list[tuple[int, int]]()
    for extent, stride in zip(view.shape, view.strides, strict=True):
        if extent == 1:
            continue
        if runs and runs[-1][1] == stride * extent:
            runs[-1] = (runs[-1][0] * extent, stride)
        else:
            runs.append((extent, stride))
    return runs
