"""Shape inference of the ``lazy`` dialect on plain tuples, shared by verifiers and front ends.

Every function returns the shape of the result and raises :class:`ValueError` with one line that
names the shapes involved.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Shape = tuple[int, ...]


def show(shape: Sequence[int]) -> str:
    """A shape as MLIR writes it: ``2x3``, or ``scalar``."""
    return "x".join(map(str, shape)) if shape else "scalar"


def check_axes(shape: Shape, axes: Sequence[int], what: str) -> None:
    """Axes must be distinct and within the rank."""
    for axis in axes:
        if not 0 <= axis < len(shape):
            raise ValueError(
                f"{what} {axis} is out of range for shape {show(shape)} of rank {len(shape)}"
            )
    if len(set(axes)) != len(axes):
        raise ValueError(f"{what} list {list(axes)} repeats an axis, for shape {show(shape)}")


def _check_one_per_axis(shape: Shape, **lists: Sequence[int]) -> None:
    for name, values in lists.items():
        if len(values) != len(shape):
            raise ValueError(
                f"'{name}' must have one entry per axis of shape {show(shape)}: "
                f"expected {len(shape)}, found {len(values)}"
            )


def reshape(shape: Shape, target: Shape) -> Shape:
    if prod(shape) != prod(target):
        raise ValueError(
            f"cannot reshape {show(shape)} ({prod(shape)} elements) to {show(target)} "
            f"({prod(target)} elements)"
        )
    return target


def permute(shape: Shape, permutation: Sequence[int]) -> Shape:
    if sorted(permutation) != list(range(len(shape))):
        raise ValueError(
            f"{list(permutation)} is not a permutation of the {len(shape)} axes of shape "
            f"{show(shape)}"
        )
    return tuple(shape[axis] for axis in permutation)


def expand(shape: Shape, target: Shape) -> Shape:
    if len(shape) != len(target) or any(
        have not in (1, want) for have, want in zip(shape, target, strict=True)
    ):
        raise ValueError(
            f"cannot expand {show(shape)} to {show(target)}: the ranks must be equal, and only "
            "axes of extent 1 can grow"
        )
    return target


def pad(shape: Shape, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Shape:
    _check_one_per_axis(shape, low=low, high=high, interior=interior)
    for name, amounts in (("low", low), ("high", high), ("interior", interior)):
        if any(amount < 0 for amount in amounts):
            raise ValueError(f"'{name}' = {list(amounts)} has a negative amount; use lazy.slice")
    return tuple(
        lo + extent + max(extent - 1, 0) * gap + hi
        for extent, lo, hi, gap in zip(shape, low, high, interior, strict=True)
    )


def slice(shape: Shape, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> Shape:
    _check_one_per_axis(shape, starts=starts, stops=stops, steps=steps)
    for axis, (extent, start, stop, step) in enumerate(
        zip(shape, starts, stops, steps, strict=True)
    ):
        if not 0 <= start <= stop <= extent or step < 1:
            raise ValueError(
                f"slice {start}:{stop}:{step} of axis {axis} does not fit shape {show(shape)}: "
                f"expected 0 <= start <= stop <= {extent} and step >= 1"
            )
    return tuple(
        -(-(stop - start) // step) for start, stop, step in zip(starts, stops, steps, strict=True)
    )


def window(
    shape: Shape,
    axes: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Shape:
    check_axes(shape, axes, "window axis")
    for name, values in (("sizes", sizes), ("strides", strides), ("dilations", dilations)):
        if len(values) != len(axes):
            raise ValueError(
                f"'{name}' must have one entry per window axis: "
                f"expected {len(axes)}, found {len(values)}"
            )
        if any(value < 1 for value in values):
            raise ValueError(f"'{name}' = {list(values)} must be positive")
    result = list(shape)
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        span = (size - 1) * dilation + 1
        if span > shape[axis]:
            raise ValueError(
                f"a window of {span} elements (size {size}, dilation {dilation}) does not fit "
                f"axis {axis} of shape {show(shape)}"
            )
        result[axis] = (shape[axis] - span) // stride + 1
    return (*result, *sizes)


def concat(shapes: Sequence[Shape], axis: int) -> Shape:
    first = shapes[0]
    check_axes(first, (axis,), "concat axis")
    for other in shapes[1:]:
        if len(other) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(first, other, strict=True)) if i != axis
        ):
            raise ValueError(
                f"cannot concatenate {show(first)} and {show(other)} along axis {axis}: the "
                "other axes must be equal"
            )
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def reduce(shape: Shape, axes: Sequence[int]) -> Shape:
    check_axes(shape, axes, "reduced axis")
    removed = set(axes)
    return tuple(extent for axis, extent in enumerate(shape) if axis not in removed)


def gather(source: Shape, indices: Shape, axis: int) -> Shape:
    """Also the rule of scatter, whose updates have the shape of the indices."""
    check_axes(source, (axis,), "gather axis")
    if len(source) != len(indices) or any(
        a != b for i, (a, b) in enumerate(zip(source, indices, strict=True)) if i != axis
    ):
        raise ValueError(
            f"indices of shape {show(indices)} do not match source of shape {show(source)}: "
            f"all axes but axis {axis} must be equal"
        )
    if source[axis] == 0 and indices[axis] != 0:
        raise ValueError(f"cannot index the empty axis {axis} of shape {show(source)}")
    return indices
