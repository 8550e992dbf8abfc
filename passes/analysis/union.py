"""The size of the union of images in one buffer: what several accesses touch together.

Along every independent part of the buffer's axes, positions fall into classes by the images that
hold them; the union is summed over combinations of classes. Images that are boxes have few.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from plait.passes.analysis.image import Extents, Image, Part
from plait.passes.analysis.partition import connected
from plait.passes.analysis.values import LIMIT, Array, Values

_MAX_CLASSES = 1 << 14

Classes = dict[int, int]
"""How many positions are held by exactly the images in a bit set."""


def union_size(images: Sequence[Image], shape: Extents) -> tuple[int, bool]:
    """How many elements of a buffer the images hold together, and whether that is exact; it is an
    upper bound otherwise."""
    whole = prod(shape)
    different = [image for image in dict.fromkeys(images) if not image.empty]
    if not different:
        return 0, True
    largest = max(different, key=lambda image: image.size)
    bound = min(whole, sum(image.size for image in different))
    if largest.exact and largest.size in (bound, whole):
        return largest.size, True
    if len(different) == 1 or not all(image.exact for image in different):
        return bound, False
    axes = connected([part.axes for image in different for part in image.parts])
    flat = [part for image in different for part in image.parts]
    together: Classes = {(1 << len(different)) - 1: 1}
    for group in axes:
        block = tuple(sorted({axis for k in group for axis in flat[k].axes}))
        classes = _classes(different, block, shape)
        if classes is None:
            return bound, False
        together = _product(together, classes)
        if len(together) > _MAX_CLASSES:
            return bound, False
    return sum(together.values()), True


def _product(left: Classes, right: Classes) -> Classes:
    result: Classes = {}
    for a, count in left.items():
        for b, times in right.items():
            if a & b:
                result[a & b] = result.get(a & b, 0) + count * times
    return result


def _classes(images: Sequence[Image], block: Extents, shape: Extents) -> Classes | None:
    """The classes of the positions of some axes, or None if there are too many to list."""
    extents = tuple(shape[axis] for axis in block)
    parts = [[p for p in image.parts if set(p.axes) <= set(block)] for image in images]
    if all(len(p) == 1 and p[0].values.is_interval for p in parts):
        return _interval_classes([p[0].values for p in parts])
    size = prod(extents)
    if size > 8 * LIMIT or any(prod(p.values.size for p in each) > LIMIT for each in parts):
        return None
    member = np.zeros(size, dtype=np.int64)
    held: list[int] = [0]
    for bit, each in enumerate(parts):
        inside = np.zeros(size, dtype=np.int64)
        inside[_positions(each, block, extents)] = 1
        numbers, member = np.unique(member * 2 + inside, return_inverse=True)
        held = [held[int(n) >> 1] | (int(n) & 1) << bit for n in numbers]
    counts = np.bincount(member, minlength=len(held))
    return {bits: int(count) for bits, count in zip(held, counts, strict=True) if bits}


def _interval_classes(values: Sequence[Values]) -> Classes:
    cuts = sorted({v.base for v in values} | {v.last + 1 for v in values})
    classes: Classes = {}
    for low, high in pairwise(cuts):
        bits = sum(1 << k for k, v in enumerate(values) if v.base <= low <= v.last)
        if bits:
            classes[bits] = classes.get(bits, 0) + high - low
    return classes


def _positions(parts: Sequence[Part], block: Extents, extents: Extents) -> Array:
    """Row-major positions, within the axes of a block, of every combination of the parts."""
    strides = dict(zip(block, (prod(extents[k + 1 :]) for k in range(len(block))), strict=True))
    extent_of = dict(zip(block, extents, strict=True))
    result = np.zeros(1, dtype=np.int64)
    for part in parts:
        left = part.values.listed()
        moved = np.zeros_like(left)
        for axis in reversed(part.axes):
            moved += left % extent_of[axis] * strides[axis]
            left = left // extent_of[axis]
        result = np.add.outer(result, moved).ravel()
    return result
