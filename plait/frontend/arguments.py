"""The arrays that a plan runs on: by position or by name, each checked against its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plait.dtypes import Array, ElementType, f32_to_bf16, name_of_type, numpy_dtype
from plait.errors import PlaitError
from plait.frontend.tensor import Tensor
from plait.runtime.dlpack import is_device_array


def as_array(data: Any, element: ElementType, what: str) -> Array:
    """Data converted to what carries an element type; bfloat16 is kept as bit patterns, which
    arrays of ``uint16`` are taken for. Raises :class:`PlaitError` for what is no numbers."""
    try:
        array = np.asarray(data)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"found {array.dtype}")
        if name_of_type(element) == "bfloat16" and array.dtype != np.uint16:
            return f32_to_bf16(array.astype(np.float32)).reshape(array.shape)
        return array.astype(numpy_dtype(element), copy=False)
    except (ValueError, TypeError) as error:
        said = str(error).split("\n")[0]
        raise PlaitError(f"{what}: expected an array of real numbers: {said}") from None


def names_of(inputs: Sequence[Tensor]) -> list[str]:
    """A name for each input: its own, or ``input<position>``."""
    return [tensor.name or f"input{number}" for number, tensor in enumerate(inputs)]


def bound(inputs: Sequence[Tensor], arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Array]:
    """An array for each input.

    ``named`` go to the inputs of their names. ``arrays`` go, in order, to the inputs without data
    that are left; to all that are left if there are as many. Raises :class:`PlaitError` for names
    that are unknown or not unique, a wrong number of arrays, and arrays that do not fit.
    """
    names = names_of(inputs)
    for name in named:
        if names.count(name) != 1:
            what = "no input is" if name not in names else "several inputs are"
            raise PlaitError(f"{what} called '{name}': the inputs are {described(inputs)}")
    left = [k for k, name in enumerate(names) if name not in named]
    free = [k for k in left if inputs[k].array is None]
    taking = left if len(arrays) == len(left) else free
    if len(arrays) != len(taking):
        raise PlaitError(
            f"the program has {len(free)} inputs without data: expected as many arrays, found "
            f"{len(arrays)}: {described([inputs[k] for k in free], free)}"
        )
    given = {**dict(zip(taking, arrays, strict=True)), **{names.index(n): named[n] for n in named}}
    return [
        fitting(tensor, names[k], given[k]) if k in given else _data(tensor)
        for k, tensor in enumerate(inputs)
    ]


def described(inputs: Sequence[Tensor], numbers: Sequence[int] | None = None) -> str:
    """Inputs as ``x float32 (2, 3), w float32 (3,)``, at most eight of them."""
    numbers = range(len(inputs)) if numbers is None else numbers
    shown = [
        f"{tensor.name or f'input{number}'} {tensor.dtype} {tensor.shape}"
        for number, tensor in zip(numbers, inputs, strict=True)
    ]
    return ", ".join([*shown[:8], *(["..."] if len(shown) > 8 else [])]) or "none"


def fitting(tensor: Tensor, name: str, data: Any) -> Array:
    """Data as the array of an input; arrays must have its dtype, lists and numbers take it. What
    lies in device memory stays what it is."""
    if isinstance(data, Tensor):
        raise PlaitError(f"input '{name}': expected an array, found a tensor that is not computed")
    if is_device_array(data):
        return data
    is_array = hasattr(data, "__array__")
    array = np.asarray(data) if is_array else as_array(data, tensor.element, f"input '{name}'")
    if array.shape != tensor.shape:
        raise PlaitError(f"input '{name}': expected shape {tensor.shape}, found {array.shape}")
    want = numpy_dtype(tensor.element)
    same_bits = array.dtype.kind in "iu" and want.kind in "iu" and array.dtype.isnative
    if array.dtype != want and not (same_bits and array.dtype.itemsize == want.itemsize):
        carried = f" (as {want})" if want.name != tensor.dtype else ""
        raise PlaitError(
            f"input '{name}': expected dtype {tensor.dtype}{carried}, found {array.dtype}: "
            f"convert it with .astype('{want}')"
        )
    return array


def _data(tensor: Tensor) -> Array:
    assert tensor.array is not None
    return tensor.array
