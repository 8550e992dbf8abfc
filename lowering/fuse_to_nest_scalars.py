"""Scalar arithmetic of the elementwise operations: one ``lazy`` operation on one element of each
operand, as ``arith`` and ``math``.

Values are of *compute types*: signless integers, and f32 for f16 and bf16, which are rounded to
their own type where they are cast or stored, not between operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    f32,
    f64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects import lazy
from plait.dtypes import is_bool, is_float, is_unsigned

Emit = Callable[[Operation], SSAValue]
"""Places an operation and returns its result."""


def storage_type(type: Attribute) -> Attribute:
    """The type of an element in a buffer: integers are signless."""
    return IntegerType(width(type)) if is_integer(type) else type


def compute_type(type: Attribute) -> Attribute:
    """The type an element is computed in: f32 for f16 and bf16."""
    return f32 if isinstance(type, Float16Type | BFloat16Type) else storage_type(type)


def buffer_type(value: SSAValue) -> MemRefType[Attribute]:
    """The type of the buffer that holds a tensor: row-major, with signless elements."""
    return MemRefType(storage_type(lazy.element_type_of(value)), lazy.shape_of(value))


def is_integer(type: Attribute) -> bool:
    return isinstance(type, IntegerType)


def width(type: Attribute) -> int:
    """Bits of an integer type."""
    return cast(IntegerType[Any], type).width.data


class Scalars:
    """Emits scalar code through ``emit``; constants are emitted once each."""

    def __init__(self, emit: Emit):
        self.emit = emit
        self._constants: dict[tuple[float | str, Attribute], SSAValue] = {}

    # Pieces

    def const(self, value: float, type: Attribute) -> SSAValue:
        """A constant of a compute type; integers wrap."""
        key = (float(value).hex() if is_float(type) else int(value), type)
        if key not in self._constants:
            self._constants[key] = self.emit(arith.ConstantOp(_scalar_attr(value, type)))
        return self._constants[key]

    def cmpi(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.emit(arith.CmpiOp(lhs, rhs, predicate))

    def cmpf(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.emit(arith.CmpfOp(lhs, rhs, predicate))

    def select(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        if on_true is on_false:
            return on_true
        return self.emit(arith.SelectOp(condition, on_true, on_false))

    # Between buffers and compute types

    def loaded(self, value: SSAValue, type: Attribute) -> SSAValue:
        """An element of a buffer of elements ``type``, in its compute type."""
        return self.emit(arith.ExtFOp(value, f32)) if _is_half(type) else value

    def stored(self, value: SSAValue, type: Attribute) -> SSAValue:
        """A value in its compute type, as an element of a buffer of elements ``type``."""
        return self.emit(arith.TruncFOp(value, cast(AnyFloat, type))) if _is_half(type) else value

    def rounded(self, value: SSAValue, type: Attribute) -> SSAValue:
        """A value in its compute type, rounded to ``type``."""
        return self.loaded(self.stored(value, type), type)

    # Conversions

    def cast(self, value: SSAValue, have: Attribute, want: Attribute) -> SSAValue:
        """``lazy.cast`` between element types."""
        if is_bool(want):
            zero = self.const(0, compute_type(have))
            return self.cmpf("une", value, zero) if is_float(have) else self.cmpi("ne", value, zero)
        if is_float(have):
            return (
                self._float_to_float(value, want) if is_float(want) else self._to_int(value, want)
            )
        if is_float(want):
            unsigned = is_unsigned(have) or is_bool(have)
            cls = arith.UIToFPOp if unsigned else arith.SIToFPOp
            # f16 and bf16 are rounded once, from a type that holds every narrow integer.
            wide = compute_type(want) if width(have) <= 16 or want == f64 else f64
            converted = self.emit(cls(value, cast(AnyFloat, wide if _is_half(want) else want)))
            return self._float_to_float(converted, want) if _is_half(want) else converted
        return self._int_to_int(value, have, want)

    def _float_to_float(self, value: SSAValue, want: Attribute) -> SSAValue:
        if _is_half(want):
            return self.rounded(value, want)
        if value.type == want:
            return value
        return self.emit(
            arith.ExtFOp(value, f64) if want == f64 else arith.TruncFOp(value, cast(AnyFloat, want))
        )

    def _int_to_int(self, value: SSAValue, have: Attribute, want: Attribute) -> SSAValue:
        target = IntegerType(width(want))
        if width(have) == width(want):
            return value
        if width(have) > width(want):
            return self.emit(arith.TruncIOp(value, target))
        extend = arith.ExtUIOp if is_unsigned(have) or is_bool(have) else arith.ExtSIOp
        return self.emit(extend(value, target))

    def _to_int(self, value: SSAValue, want: Attribute) -> SSAValue:
        """Float to integer: truncates, saturates, NaN gives 0."""
        bits, unsigned = width(want), is_unsigned(want)
        target = IntegerType(bits)
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        too_low = self.cmpf(
            "ole", value, self.const(float(low - 1 if bits < 24 else low), value.type)
        )
        too_high = self.cmpf("oge", value, self.const(float(high + 1), value.type))
        nan = self.cmpf("uno", value, value)
        outside = self.emit(arith.OrIOp(self.emit(arith.OrIOp(too_low, too_high)), nan))
        safe = self.select(outside, self.const(0, value.type), value)
        converted = self.emit((arith.FPToUIOp if unsigned else arith.FPToSIOp)(safe, target))
        converted = self.select(too_low, self.const(low, target), converted)
        return self.select(too_high, self.const(high, target), converted)

    def bitcast(self, value: SSAValue, have: Attribute, want: Attribute) -> SSAValue:
        """``lazy.bitcast`` between element types of one width."""
        source, target = storage_type(have), storage_type(want)
        if source == target:
            return value
        value = self.stored(value, have)
        return self.loaded(self.emit(arith.BitcastOp(value, target)), want)

    def compare(
        self, predicate: lazy.ComparePredicate, type: Attribute, lhs: SSAValue, rhs: SSAValue
    ) -> SSAValue:
        if is_float(type):
            ordered = "u" if predicate == lazy.ComparePredicate.NE else "o"
            return self.cmpf(f"{ordered}{predicate}", lhs, rhs)
        if predicate in (lazy.ComparePredicate.EQ, lazy.ComparePredicate.NE):
            return self.cmpi(str(predicate), lhs, rhs)
        sign = "u" if is_unsigned(type) or is_bool(type) else "s"
        return self.cmpi(f"{sign}{predicate}", lhs, rhs)


def _is_half(type: Attribute) -> bool:
    return isinstance(type, Float16Type | BFloat16Type)


def _scalar_attr(value: float, type: Attribute) -> Any:
    if is_float(type):
        return FloatAttr(float(value), cast(AnyFloat, type))
    return IntegerAttr(int(value), cast(IntegerType, type), truncate_bits=True)


def identity_of(kind: str, type: Attribute) -> float:
    """What combining starts from, for elements ``type``."""
    if kind in ("sum", "add", "any"):
        return 0
    if kind in ("prod", "mul", "all"):
        return 1
    if is_float(type):
        return float("-inf") if kind == "max" else float("inf")
    if is_bool(type):
        return 0 if kind == "max" else 1
    bits = width(type)
    if is_unsigned(type):
        return 0 if kind == "max" else 2**bits - 1
    return -(2 ** (bits - 1)) if kind == "max" else 2 ** (bits - 1) - 1
