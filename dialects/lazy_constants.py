"""Looking into dense constants without unpacking them element by element."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

Scalar = float | int


def splat_scalar(value: DenseIntOrFPElementsAttr) -> Scalar | None:
    """The one value that every element has, or None if they differ or there is none.

    The bits decide: 0.0 and -0.0 differ, a NaN is itself. xDSL keeps one copy of the bytes per
    element, also for a splat; comparing the bytes with themselves, one element on, is a single
    pass in C.
    """
    data = memoryview(value.data.data)
    element = cast(Any, value.get_element_type())
    size = int(element.compile_time_size)
    if len(data) < size or data[size:] != data[: len(data) - size]:
        return None
    return cast(Scalar, element.unpack(data[:size], 1)[0])
