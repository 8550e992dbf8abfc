"""Element types: MLIR types, their names in PyTorch, and the numpy arrays that carry them.

numpy has no bfloat16. An array of bfloat16 crosses plait's boundary as ``uint16`` bit patterns;
:func:`bf16_to_f32` and :func:`f32_to_bf16` convert.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from plait.errors import PlaitError

Array = NDArray[Any]
ElementType = Float16Type | BFloat16Type | Float32Type | Float64Type | IntegerType

ui8 = IntegerType(8, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)
ui32 = IntegerType(32, Signedness.UNSIGNED)
ui64 = IntegerType(64, Signedness.UNSIGNED)

TYPE_OF_NAME: dict[str, ElementType] = {
    "float16": f16,
    "bfloat16": bf16,
    "float32": f32,
    "float64": f64,
    "bool": i1,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "uint8": ui8,
    "uint16": ui16,
    "uint32": ui32,
    "uint64": ui64,
}
"""Every element type of the ``lazy`` dialect under its PyTorch name."""

NAME_OF_TYPE: dict[Attribute, str] = {type: name for name, type in TYPE_OF_NAME.items()}

_NUMPY_OF_NAME: dict[str, np.dtype[Any]] = {
    name: np.dtype("uint16" if name == "bfloat16" else name) for name in TYPE_OF_NAME
}


def type_of_name(name: str) -> ElementType:
    """The element type called ``name``; raises :class:`PlaitError` for an unknown one."""
    if name not in TYPE_OF_NAME:
        raise PlaitError(f"unknown dtype '{name}': expected one of {', '.join(TYPE_OF_NAME)}")
    return TYPE_OF_NAME[name]


def name_of_type(type: Attribute) -> str:
    """The PyTorch name of an element type; signless and signed integers have one name."""
    integer = _as_integer(type)
    if integer is not None and integer.signedness.data == Signedness.SIGNED:
        type = IntegerType(integer.width.data)
    if type not in NAME_OF_TYPE:
        raise PlaitError(f"unsupported element type {type}: expected one of {_all_types()}")
    return NAME_OF_TYPE[type]


def _as_integer(type: Attribute) -> IntegerType[int, Signedness] | None:
    return cast(IntegerType[int, Signedness], type) if isinstance(type, IntegerType) else None


def _all_types() -> str:
    return ", ".join(str(type) for type in TYPE_OF_NAME.values())


def is_element_type(type: Attribute) -> bool:
    """Whether a tensor of the ``lazy`` dialect may have this element type."""
    return type in NAME_OF_TYPE


def numpy_dtype(type: Attribute) -> np.dtype[Any]:
    """The dtype of the arrays that carry ``type``: ``uint16`` for bfloat16."""
    return _NUMPY_OF_NAME[name_of_type(type)]


@cache
def itemsize(type: Attribute) -> int:
    """Bytes of one element in memory; ``i1`` takes a byte."""
    return numpy_dtype(type).itemsize


def is_float(type: Attribute) -> bool:
    return isinstance(type, Float16Type | BFloat16Type | Float32Type | Float64Type)


def is_bool(type: Attribute) -> bool:
    integer = _as_integer(type)
    return integer is not None and integer.width.data == 1


def is_unsigned(type: Attribute) -> bool:
    integer = _as_integer(type)
    return integer is not None and integer.signedness.data == Signedness.UNSIGNED


def bf16_to_f32(bits: Array) -> NDArray[np.float32]:
    """Widens bfloat16 bit patterns (``uint16``); exact."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def f32_to_bf16(values: Array) -> NDArray[np.uint16]:
    """Rounds float32 values to bfloat16 bit patterns, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet_nan = (bits >> np.uint32(16)) | np.uint32(0x40)
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, quiet_nan, rounded).astype(np.uint16)
