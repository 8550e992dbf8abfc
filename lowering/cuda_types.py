"""Types and literals of CUDA C."""

from __future__ import annotations

import math
import struct
from typing import Any, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import DiagnosticException

_INTEGERS = {1: "bool", 8: "signed char", 16: "short", 32: "int", 64: "long long"}
_UNSIGNED = {8: "unsigned char", 16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}

_WORDS = (
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl concept "
    "const constexpr continue decltype default delete do double else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "nullptr operator or private protected public register requires return short signed "
    "sizeof static struct switch template this throw true try typedef typeid typename union "
    "unsigned using virtual void volatile wchar_t while xor threadIdx blockIdx blockDim "
    "gridDim warpSize plait_max plait_min plait_vector NAN INFINITY "
)
RESERVED = frozenset(_WORDS.split())
"""Names that nothing of ours may take."""


def width(type: Attribute) -> int:
    """Bits of an integer type."""
    return cast(IntegerType[Any, Any], type).width.data


def c_type(type: Attribute, wide: bool = False) -> str:
    """The C type of a scalar; ``wide`` indices are 64-bit."""
    match type:
        case Float32Type():
            return "float"
        case Float64Type():
            return "double"
        case Float16Type():
            return "__half"
        case BFloat16Type():
            return "__nv_bfloat16"
        case IndexType():
            return "long long" if wide else "int"
        case VectorType():
            return f"plait_vector<{c_type(type.element_type)}, {type.get_shape()[0]}>"
        case IntegerType():
            return _INTEGERS[width(cast(Attribute, type))]
        case _:
            raise DiagnosticException(f"cuda: no C type for {type}")


def unsigned_type(type: Attribute, wide: bool) -> str:
    """The unsigned C type of the width of an integer or index type."""
    if isinstance(type, IndexType):
        return "unsigned long long" if wide else "unsigned"
    return _UNSIGNED[width(type)]


def literal(value: float | int, type: Attribute) -> str:
    """A constant, exactly."""
    match type:
        case Float32Type() | Float64Type():
            return _float(float(value), isinstance(type, Float64Type))
        case Float16Type():
            return f"__float2half_rn({_float(float(value), False)})"
        case BFloat16Type():
            return f"__float2bfloat16_rn({_float(float(value), False)})"
        case IntegerType() if width(cast(Attribute, type)) == 1:
            return "true" if value else "false"
        case IntegerType() if width(cast(Attribute, type)) == 64:
            return "(-9223372036854775807LL - 1)" if value == -(2**63) else f"{value}LL"
        case IntegerType() if value == -(2**31):
            return "(-2147483647 - 1)"
        case _:
            return str(int(value))


def _float(value: float, double: bool) -> str:
    cast_to = "(double)" if double else ""
    if math.isnan(value):
        return f"{cast_to}NAN"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}{cast_to}INFINITY"
    if double:
        text = repr(value)
        return text if any(c in text for c in ".e") else f"{text}.0"
    return f"{_shortest(value)}f"


def _shortest(value: float) -> str:
    """The shortest decimal that reads back as the same float32."""
    bits = struct.pack("f", value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("f", float(text)) == bits:
            return text if any(c in text for c in ".e") else f"{text}.0"
    raise AssertionError(f"nine digits hold every float32, not {value}")
