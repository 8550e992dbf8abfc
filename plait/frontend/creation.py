"""Tensors from nothing: inputs, data, constants, counts, random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.dialects import lazy
from plait.dtypes import Array, type_of_name
from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.arguments import as_array
from plait.frontend.movement import flat
from plait.frontend.node import Scalar, element_of, extents
from plait.frontend.tensor import Tensor

_UI32 = type_of_name("uint32")


def empty(
    *shape: Any, dtype: Any = "float32", name: str | None = None, donated: bool = False
) -> Tensor:
    """An input without data: it is given when the program runs. A donated one may be updated in
    place, see :func:`assign`."""
    tensor = Tensor(None, (), extents(flat(shape)), element_of(dtype))
    tensor.name, tensor.donated = name, donated
    return tensor


def tensor(data: Any, dtype: Any = None, name: str | None = None, donated: bool = False) -> Tensor:
    """An input with data: a numpy array, a number or nested lists (floats become float32)."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise PlaitError(
            f"expected an array or even lists: {str(error).split(chr(10))[0]}"
        ) from None
    if dtype is None and not isinstance(data, np.ndarray) and array.dtype == np.float64:
        array = array.astype(np.float32)
    element = element_of(array.dtype if dtype is None else dtype)
    made = Tensor(None, (), array.shape, element)
    carried = as_array(array, element, "data").copy()
    made.array = np.ascontiguousarray(carried).reshape(array.shape)
    made.name, made.donated = name, donated
    return made


def assign(target: Tensor, value: Tensor) -> Tensor:
    """``value`` as the new contents of the donated input ``target``; return it as an output."""
    if target.op is not None or not target.donated:
        raise PlaitError("assign needs an input made with donated=True as its target")
    if target.shape != value.shape or target.element != value.element:
        raise PlaitError(
            f"cannot assign {value.dtype} of shape {value.shape} to {target.dtype} of shape "
            f"{target.shape}"
        )
    result = Tensor(value.op, value.sources, value.shape, value.element, value.properties)
    result.array, result.name = value.array, value.name
    if value.op is None:
        result = value.contiguous()
    result.alias_of = target
    return result


def full(*shape: Any, value: Scalar = 0, dtype: Any = "float32") -> Tensor:
    """One value everywhere: ``full(2, 3, value=5)``, or ``full((2, 3), 5)`` as in PyTorch."""
    first: Any = shape[0] if shape else ()
    if len(shape) == 2 and isinstance(first, Sequence):
        return full(first, value=shape[1], dtype=dtype)
    return Tensor.constant(value, element_of(dtype), extents(flat(shape)))


def zeros(*shape: Any, dtype: Any = "float32") -> Tensor:
    return full(*shape, value=0, dtype=dtype)


def ones(*shape: Any, dtype: Any = "float32") -> Tensor:
    return full(*shape, value=1, dtype=dtype)


def arange(
    start: Scalar, stop: Scalar | None = None, step: Scalar = 1, dtype: Any = None
) -> Tensor:
    """Counts from ``start`` (0 if only one number is given) to before ``stop``: int64, or float32
    if one of them is a float."""
    start, stop = (0, start) if stop is None else (start, stop)
    numbers = (start, stop, step)
    if step == 0 or not all(math.isfinite(number) for number in numbers):
        raise PlaitError(f"arange takes finite numbers and a step that is not 0, found {numbers}")
    if dtype is None:
        dtype = "float32" if any(isinstance(number, float) for number in numbers) else "int64"
    count = max(math.ceil((stop - start) / step), 0)
    counted = Tensor.counting(0, element_of(dtype), (count,))
    scaled = counted * step if step != 1 else counted
    return scaled + start if start else scaled


def linspace(start: float, stop: float, count: int, dtype: Any = "float32") -> Tensor:
    """``count`` numbers at equal distances, both ends included."""
    step = (stop - start) / max(count - 1, 1)
    return Tensor.counting(0, element_of(dtype), extents((count,))) * step + start


def eye(rows: int, columns: int | None = None, dtype: Any = "float32") -> Tensor:
    """Ones on the diagonal."""
    shape = extents((rows, rows if columns is None else columns))
    i64 = type_of_name("int64")
    on = Tensor.counting(0, i64, shape) == Tensor.counting(1, i64, shape)
    return on.cast(dtype)


def key_of(seed: int | Tensor) -> Tensor:
    """A random key: two words, from a seed of up to 64 bits, or a tensor of them as it is."""
    if isinstance(seed, Tensor):
        return seed
    words = np.array([seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF], dtype=np.uint32)
    return Tensor.literal(words, _UI32)


def random_bits(*shape: Any, key: int | Tensor) -> Tensor:
    """Uniform random words, a function of the key alone."""
    source = key_of(key)
    return source.make(lazy.RngBitsOp, [source], extents(flat(shape)), _UI32)


def rand(*shape: Any, key: int | Tensor, dtype: Any = "float32") -> Tensor:
    """Uniform in [0, 1), 24 bits each."""
    bits = random_bits(*shape, key=key) >> 8
    return (bits.cast("float32") * 2.0**-24).cast(dtype)


def randn(*shape: Any, key: int | Tensor, dtype: Any = "float32") -> Tensor:
    """Standard normal, by Box and Muller (1958)."""
    final = extents(flat(shape))
    pair = rand((2, *final), key=key)
    first, second = (pair.narrow(0, k, 1).reshape(final) for k in (0, 1))
    radius = ((1 - first).log() * -2.0).sqrt()
    return (radius * (second * (2 * math.pi)).cos()).cast(dtype)


def randint(low: int, high: int, shape: Any, key: int | Tensor, dtype: Any = "int64") -> Tensor:
    """Uniform integers from ``low`` to before ``high``."""
    return (rand(shape, key=key) * float(high - low)).floor().cast(dtype) + low


def data_of(inputs: list[Tensor]) -> list[Array | None]:
    """The data of inputs, None where there is none."""
    return [tensor.array for tensor in inputs]


make_public(globals())
