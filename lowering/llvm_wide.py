"""Vectorised expansions that work in f64 and round to f32 once or twice: sin, cos and pow.

The polynomials are minimax, by relative error of the function, on the reduced range. Large angles,
of a million and more, go to the C library; everything else is free of branches.
"""

from __future__ import annotations

from plait.lowering.llvm_math import F32_FUNCTIONS, Builder, Lanes, define
from plait.lowering.llvm_memory import any_lane
from plait.lowering.llvm_text import Body
from plait.lowering.llvm_types import double_literal, splat, vector

_LARGE_ANGLE = 1e6
_ROUND = 6755399441055744.0
"""1.5 * 2**52: adding it rounds an f64 to an integer, left in the low bits."""
_HALF_PI_HIGH = 1.5707963267341256
"""The leading 33 bits of pi/2: products with integers below 2**20 are exact."""
_HALF_PI_LOW = 6.077100506506192e-11

_SIN = [-1.951521809e-04, 8.332160292e-03, -1.666665460e-01]
_COS = [2.44330827e-5, -1.38873156e-3, 4.16666457e-2]
_LOG2 = [
    0.28289491017817664,
    0.3199060850363411,
    0.4122092398807079,
    0.5770779425762544,
    0.9617966941118677,
    2.8853900817778535,
]
"""log2((1 + s) / (1 - s)) / s in s**2."""
_EXP2 = [
    0.00015345788899254895,
    0.0013399957626989423,
    0.009618489244669917,
    0.05550328711805227,
    0.24022646886077026,
    0.6931472057671391,
    1.00000000055505,
]


class Wide:
    """Builds arithmetic on ``lanes`` elements of f64 (with i64 bits), one method an operation."""

    def __init__(self, m: Lanes) -> None:
        self.body, self.lanes = m.body, m.lanes
        self.single, self.flags = m.f, m.b
        self.f = vector("double", m.lanes)
        self.i = vector("i64", m.lanes)
        self.small = m.i

    def c(self, value: float) -> str:
        return splat("double", double_literal(value), self.lanes)

    def k(self, value: int) -> str:
        return splat("i64", str(value), self.lanes)

    def of(self, single: str) -> str:
        """An f32 made wide."""
        return self.body.emit(f"fpext {self.single} {single} to {self.f}")

    def narrow(self, a: str) -> str:
        """Rounded to f32."""
        return self.body.emit(f"fptrunc {self.f} {a} to {self.single}")

    def op(self, name: str, a: str, b: str) -> str:
        """``fadd``, ``fsub``, ``fmul`` or ``fdiv``."""
        return self.body.emit(f"{name} {self.f} {a}, {b}")

    def int(self, name: str, a: str, b: str) -> str:
        return self.body.emit(f"{name} {self.i} {a}, {b}")

    def cmp(self, predicate: str, a: str, b: str) -> str:
        return self.body.emit(f"fcmp {predicate} {self.f} {a}, {b}")

    def select(self, cond: str, a: str, b: str) -> str:
        return self.body.emit(f"select {self.flags} {cond}, {self.f} {a}, {self.f} {b}")

    def bits(self, a: str) -> str:
        return self.body.emit(f"bitcast {self.f} {a} to {self.i}")

    def float(self, a: str) -> str:
        return self.body.emit(f"bitcast {self.i} {a} to {self.f}")

    def horner(self, x: str, coefficients: list[float]) -> str:
        result = self.c(coefficients[0])
        for value in coefficients[1:]:
            args = [result, x, self.c(value)]
            result = self.body.intrinsic("fmuladd", "double", self.lanes, args)
        return result


def _angle(m: Lanes, size: str) -> tuple[str, str]:
    """(r, q) with size = q*pi/2 + r: r in f32, q an i32, right in its last two bits."""
    w = Wide(m)
    x = w.of(size)
    rounded = w.op("fadd", w.op("fmul", x, w.c(0.6366197723675814)), w.c(_ROUND))
    n = w.op("fsub", rounded, w.c(_ROUND))
    r = w.op("fsub", x, w.op("fmul", n, w.c(_HALF_PI_HIGH)))
    r = w.op("fsub", r, w.op("fmul", n, w.c(_HALF_PI_LOW)))
    q = m.body.emit(f"trunc {w.i} {w.bits(rounded)} to {m.i}")
    return w.narrow(r), q


def _sine(m: Lanes, x: str, quarter: int) -> str:
    """sin(x + quarter*pi/2) for angles that are not large."""
    size = m.abs(x)
    r, q = _angle(m, size)
    if quarter:
        q = m.int("add", q, m.k(quarter))
    z = m.mul(r, r)
    sine = m.fma(m.mul(r, z), m.horner(z, _SIN), r)
    cosine = m.fma(m.mul(z, z), m.horner(z, _COS), m.fma(z, m.c(-0.5), m.c(1.0)))
    odd = m.icmp("ne", m.int("and", q, m.k(1)), m.k(0))
    found = m.bits(m.select(odd, cosine, sine))
    sign = m.int("shl", m.int("and", q, m.k(2)), m.k(30))
    if not quarter:
        sign = m.int("xor", sign, m.int("and", m.bits(x), m.k(-0x80000000)))
    return m.float(m.int("xor", found, sign))


def _unless_large(m: Lanes, x: str, name: str, quarter: int) -> str:
    """The expansion, or the C library where some angle is large or no number."""
    body = m.body
    large = any_lane(body, m.cmp("uge", m.abs(x), m.c(_LARGE_ANGLE)), m.lanes)
    far, near, after = body.label("far"), body.label("near"), body.label("angle")
    body.do(f"br i1 {large}, label %{far}, label %{near}")
    body.start(far)
    slow = body.intrinsic(name, "float", m.lanes, [x])
    body.do(f"br label %{after}")
    body.start(near)
    fast = _sine(m, x, quarter)
    body.do(f"br label %{after}")
    body.start(after)
    return body.emit(f"phi {m.f} [ {slow}, %{far} ], [ {fast}, %{near} ]")


def sin(m: Lanes, x: str) -> str:
    """sin x."""
    return _unless_large(m, x, "sin", 0)


def cos(m: Lanes, x: str) -> str:
    """cos x."""
    return _unless_large(m, x, "cos", 1)


def _log2(w: Wide, size: str) -> str:
    """log2 of numbers that are not negative; -inf at 0, inf at inf."""
    bits = w.bits(size)
    root = 0x3FE6A09E667F3BCD
    shifted = w.int("add", bits, w.k(0x3FF0000000000000 - root))
    biased = w.int("lshr", shifted, w.k(52))
    whole = w.float(w.int("or", biased, w.k(0x4330000000000000)))
    exponent = w.op("fsub", whole, w.c(2.0**52 + 1023))
    power = w.int("shl", w.int("sub", biased, w.k(1023)), w.k(52))
    mantissa = w.float(w.int("sub", bits, power))
    above, below = w.op("fsub", mantissa, w.c(1.0)), w.op("fadd", mantissa, w.c(1.0))
    s = w.op("fdiv", above, below)
    found = w.op("fmul", s, w.horner(w.op("fmul", s, s), _LOG2))
    found = w.op("fadd", exponent, found)
    found = w.select(w.cmp("oeq", size, w.c(0.0)), w.c(float("-inf")), found)
    return w.select(w.cmp("oeq", size, w.c(float("inf"))), size, found)


def _exp2(w: Wide, x: str) -> str:
    """2**x, for f32 results: beyond 200 it is too large or too small for those."""
    for predicate, limit in (("olt", -200.0), ("ogt", 200.0)):
        x = w.select(w.cmp(predicate, x, w.c(limit)), w.c(limit), x)
    rounded = w.op("fadd", x, w.c(_ROUND))
    r = w.op("fsub", x, w.op("fsub", rounded, w.c(_ROUND)))
    power = w.int("shl", w.bits(rounded), w.k(52))
    return w.float(w.int("add", w.bits(w.horner(r, _EXP2)), power))


def pow(m: Lanes, x: str, y: str) -> str:
    """x**y as in C, every special case included."""
    body, w = m.body, Wide(m)
    size = m.abs(x)
    wide = w.of(y)
    product = w.op("fmul", wide, _log2(w, w.of(size)))
    found = w.narrow(_exp2(w, product))
    one = m.c(1.0)
    unit = m.cmp("oeq", size, one)
    found = m.select(unit, one, found)
    # The sign: y is an odd integer, or even (as all from 2**24 on are), or no integer.
    huge = m.cmp("oge", m.abs(y), m.c(2.0**24))
    usual = m.select(huge, m.c(0.0), m.select(m.cmp("uno", y, y), m.c(0.0), y))
    number = body.emit(f"fptosi {m.f} {usual} to {m.i}")
    back = body.emit(f"sitofp {m.i} {number} to {m.f}")
    whole = m.cmp("oeq", back, usual)
    sign = m.int("and", m.bits(x), m.k(-0x80000000))
    flip = m.int("and", sign, m.int("shl", number, m.k(31)))
    signed = m.float(m.int("xor", m.bits(found), m.iselect(whole, flip, m.k(0))))
    below = m.cmp("olt", x, m.c(0.0))
    finite = m.cmp("one", size, m.c(float("inf")))
    bad = body.emit(f"and {m.b} {below}, {finite}")
    broken = body.emit(f"xor {m.b} {whole}, {splat('i1', 'true', m.lanes)}")
    bad = body.emit(f"and {m.b} {bad}, {broken}")
    nan = m.c(float("nan"))
    result = m.select(bad, nan, signed)
    result = m.select(m.cmp("uno", x, y), nan, result)
    easy = body.emit(f"or {m.b} {m.cmp('oeq', x, one)}, {m.cmp('oeq', y, m.c(0.0))}")
    return m.select(easy, one, result)


_FUNCTIONS: dict[str, Builder] = {**F32_FUNCTIONS, "sin": sin, "cos": cos, "pow": pow}


def call_f32(body: Body, function: str, lanes: int, args: list[str]) -> str:
    """A function of f32 by its name, on ``lanes`` elements."""
    build = _FUNCTIONS[function]
    name = define(body.module, function, lanes, ["float"] * len(args), "float", build)
    type = vector("float", lanes)
    return body.call(name, type, [(type, value) for value in args])
