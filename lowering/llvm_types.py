"""LLVM's spelling of types, constants and vectors, shared by everything that prints LLVM IR.

f16 and bf16 are carried as ``i16`` bit patterns, so that no code path depends on whether LLVM's
runtime library (which is not there in-process) has their conversions. i1 is ``i1`` in registers
and one byte in memory.
"""

from __future__ import annotations

import struct

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    f32,
)
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

HALF_TYPES = (Float16Type, BFloat16Type)


class UnsupportedTypeError(Exception):
    """A type that has no LLVM counterpart here; the caller adds the operation."""


def is_float(type: Attribute) -> bool:
    """Whether ``type`` is one of the four float types."""
    return isinstance(type, Float16Type | BFloat16Type | Float32Type | Float64Type)


def llvm_type(type: Attribute) -> str:
    """The register type: ``float``, ``double``, ``i16`` for the 16-bit floats, ``iN``, ``ptr``."""
    if isinstance(type, Float32Type):
        return "float"
    if isinstance(type, Float64Type):
        return "double"
    if isinstance(type, HALF_TYPES):
        return "i16"
    if isinstance(type, IndexType):
        return "i64"
    if isa(type, IntegerType):
        return f"i{type.width.data}"
    if isinstance(type, MemRefType):
        return "ptr"
    raise UnsupportedTypeError(f"type {type} has no LLVM counterpart")


def memory_type(type: Attribute) -> str:
    """The type in memory: as in registers, but i1 takes a byte."""
    spelled = llvm_type(type)
    return "i8" if spelled == "i1" else spelled


def bit_width(type: Attribute) -> int:
    """Bits of an element in a register."""
    if isinstance(type, Float64Type | IndexType):
        return 64
    if isinstance(type, Float32Type):
        return 32
    if isinstance(type, HALF_TYPES):
        return 16
    if isa(type, IntegerType):
        return type.width.data
    raise UnsupportedTypeError(f"type {type} has no width")


def byte_size(type: Attribute) -> int:
    """Bytes of an element in memory."""
    return max(1, bit_width(type) // 8)


def vector(spelled: str, lanes: int) -> str:
    """``<lanes x spelled>``, or the scalar for one lane."""
    return spelled if lanes == 1 else f"<{lanes} x {spelled}>"


def suffix(spelled: str, lanes: int) -> str:
    """The overload suffix of an intrinsic: ``f32``, ``v16f32``, ``i64``."""
    scalar = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(spelled, spelled)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def splat(spelled: str, text: str, lanes: int) -> str:
    """A constant with every lane equal to the literal ``text``."""
    if lanes == 1:
        return text
    return "<" + ", ".join([f"{spelled} {text}"] * lanes) + ">"


def double_literal(value: float) -> str:
    """A literal of type double, exact."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def float_literal(value: float) -> str:
    """A literal of type float: LLVM spells it as the double of the same value."""
    try:
        rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        rounded = float("inf") if value > 0 else float("-inf")
    return double_literal(rounded)


def float32_bits(value: float) -> int:
    """The bit pattern of ``value`` rounded to f32."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def bfloat16_bits(value: float) -> int:
    """``value`` rounded to bf16, to nearest even."""
    if value != value:
        return 0x7FC0
    try:
        bits = float32_bits(value)
    except OverflowError:
        return 0x7F80 if value > 0 else 0xFF80
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def float16_bits(value: float) -> int:
    """``value`` rounded to f16, to nearest even."""
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def literal(value: float | int, type: Attribute) -> str:
    """The literal of ``value`` as a register of ``type``."""
    if isinstance(type, Float32Type):
        return float_literal(float(value))
    if isinstance(type, Float64Type):
        return double_literal(float(value))
    if isinstance(type, BFloat16Type):
        return str(bfloat16_bits(float(value)))
    if isinstance(type, Float16Type):
        return str(float16_bits(float(value)))
    if isa(type, IntegerType) and type.width.data == 1:
        return "true" if value else "false"
    return str(int(value))


def compute_type(type: Attribute) -> Attribute:
    """The type arithmetic on ``type`` is done in: the 16-bit floats compute in f32."""
    return f32 if isinstance(type, HALF_TYPES) else type
