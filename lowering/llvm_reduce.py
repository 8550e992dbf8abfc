"""Reductions over lanes: the identity of each kind, and the step from a vector to a scalar."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from plait.lowering.llvm_text import Body
from plait.lowering.llvm_types import is_float, literal, llvm_type, suffix, vector

_INTRINSIC = {
    ("sum", True): "fadd",
    ("prod", True): "fmul",
    ("max", True): "fmaximum",
    ("min", True): "fminimum",
    ("sum", False): "add",
    ("prod", False): "mul",
    ("max", False): "smax",
    ("min", False): "smin",
    ("umax", False): "umax",
    ("umin", False): "umin",
    ("any", False): "or",
    ("all", False): "and",
}


def _integer_range(type: Attribute) -> tuple[int, int]:
    width = 64 if isinstance(type, IndexType) else 0
    if isa(type, IntegerType):
        width = type.width.data
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def identity(kind: str, type: Attribute) -> str:
    """The literal that changes nothing when combined."""
    if kind in ("argmax", "argmin"):
        kind = kind[3:]
    if kind == "argindex":
        return str(_integer_range(type)[1])
    if is_float(type):
        values = {"sum": -0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
        return literal(values[kind], type)
    low, high = _integer_range(type)
    if kind in ("any", "sum", "umax") and llvm_type(type) == "i1":
        return "false"
    if llvm_type(type) == "i1":
        return "true" if kind in ("all", "prod", "min", "umin") else "false"
    numbers = {"sum": 0, "prod": 1, "max": low, "min": high, "umax": 0, "umin": -1, "any": 0}
    return str(numbers.get(kind, -1))


def horizontal(body: Body, kind: str, type: Attribute, value: str, lanes: int, start: str) -> str:
    """Combines the lanes of ``value`` and the scalar ``start``."""
    floating = is_float(type)
    spelled = llvm_type(type)
    if spelled == "i1" and not floating:
        kind = {"sum": "any", "max": "any", "umax": "any", "prod": "all"}.get(kind, kind)
        kind = {"min": "all", "umin": "all"}.get(kind, kind)
    name = _INTRINSIC[kind, floating]
    wide = vector(spelled, lanes)
    full = f"llvm.vector.reduce.{name}.{suffix(spelled, lanes)}"
    if name in ("fadd", "fmul"):
        neutral = identity(kind, type)
        body.module.declare(full, spelled, [spelled, wide])
        one = body.emit(f"call reassoc {spelled} @{full}({spelled} {neutral}, {wide} {value})")
    else:
        one = body.call(full, spelled, [(wide, value)])
    return combine(body, kind, type, start, one)


def combine(body: Body, kind: str, type: Attribute, a: str, b: str) -> str:
    """``a`` and ``b`` combined once, as scalars."""
    spelled = llvm_type(type)
    name = _INTRINSIC[kind, is_float(type)]
    if name in ("fadd", "fmul", "add", "mul", "or", "and"):
        return body.emit(f"{name} {spelled} {a}, {b}")
    name = {"fmaximum": "maximum", "fminimum": "minimum"}.get(name, name)
    return body.intrinsic(name, spelled, 1, [a, b])


def horizontal_arg(
    body: Body,
    kind: str,
    types: tuple[Attribute, Attribute],
    values: tuple[str, str],
    lanes: int,
    start: tuple[str, str],
) -> tuple[str, str]:
    """The extreme value and its smallest index among the lanes and ``start``; NaN wins."""
    best, where = start
    value_type, index_type = llvm_type(types[0]), llvm_type(types[1])
    floating = is_float(types[0])
    for lane in range(lanes):
        v = body.emit(f"extractelement {vector(value_type, lanes)} {values[0]}, i32 {lane}")
        i = body.emit(f"extractelement {vector(index_type, lanes)} {values[1]}, i32 {lane}")
        earlier = body.emit(f"icmp slt {index_type} {i}, {where}")
        if floating:
            order = "ogt" if kind == "argmax" else "olt"
            better = body.emit(f"fcmp {order} {value_type} {v}, {best}")
            same = body.emit(f"fcmp oeq {value_type} {v}, {best}")
            nan = body.emit(f"fcmp uno {value_type} {v}, {v}")
            old_nan = body.emit(f"fcmp uno {value_type} {best}, {best}")
            both = body.emit(f"and i1 {nan}, {old_nan}")
            new_nan = body.emit(f"xor i1 {nan}, {both}")
            same = body.emit(f"or i1 {same}, {both}")
            better = body.emit(f"or i1 {better}, {new_nan}")
        else:
            sign = "s" if value_type != "i1" else "u"
            order = f"{sign}{'gt' if kind == 'argmax' else 'lt'}"
            better = body.emit(f"icmp {order} {value_type} {v}, {best}")
            same = body.emit(f"icmp eq {value_type} {v}, {best}")
        tie = body.emit(f"and i1 {same}, {earlier}")
        take = body.emit(f"or i1 {better}, {tie}")
        best = body.emit(f"select i1 {take}, {value_type} {v}, {value_type} {best}")
        where = body.emit(f"select i1 {take}, {index_type} {i}, {index_type} {where}")
    return best, where
