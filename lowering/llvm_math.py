"""Vectorisable expansions of the elementary functions and of the 16-bit float conversions.

Each helper is an LLVM function, generic in the number of lanes, without branches or calls into a
library, so that a loop over it stays a vector loop. Errors are measured over the whole range by
``tests/test_target_llvm.py``.

Sources: the log, exp2, log2 and tanh polynomials are those of Cephes (S. Moshier, single
precision); erf is the pair of minimax polynomials of N. Juffa's ``erff``; exp is
1 + r + r**2 p(r), p the minimax polynomial of degree 4 by relative error on |r| <= log(2)/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plait.lowering.llvm_text import Body, ModuleText
from plait.lowering.llvm_types import (
    float_literal,
    splat,
    vector,
)

LN2_HIGH = 0.693359375
"""The leading bits of log 2: products with small integers are exact in f32."""
LN2_LOW = -2.12194440e-4
LOG2_E = 1.4426950408889634
ROUND_MAGIC = 12582912.0
"""1.5 * 2**23: adding it rounds an f32 to an integer, left in the low bits."""


class Lanes:
    """Builds arithmetic on ``lanes`` elements of f32 (with i32 bits), one method an operation."""

    def __init__(self, body: Body, lanes: int) -> None:
        self.body = body
        self.lanes = lanes
        self.f = vector("float", lanes)
        self.i = vector("i32", lanes)
        self.b = vector("i1", lanes)

    def c(self, value: float) -> str:
        """A float constant in every lane."""
        return splat("float", float_literal(value), self.lanes)

    def k(self, value: int) -> str:
        """An i32 constant in every lane."""
        return splat("i32", str(value), self.lanes)

    def add(self, a: str, b: str) -> str:
        return self.body.emit(f"fadd {self.f} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.body.emit(f"fsub {self.f} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self.body.emit(f"fmul {self.f} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.body.emit(f"fdiv {self.f} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a*b + c, fused where the machine can: every use is accurate either way."""
        return self.body.intrinsic("fmuladd", "float", self.lanes, [a, b, c])

    def abs(self, a: str) -> str:
        return self.body.intrinsic("fabs", "float", self.lanes, [a])

    def copysign(self, a: str, b: str) -> str:
        return self.body.intrinsic("copysign", "float", self.lanes, [a, b])

    def cmp(self, predicate: str, a: str, b: str) -> str:
        return self.body.emit(f"fcmp {predicate} {self.f} {a}, {b}")

    def icmp(self, predicate: str, a: str, b: str) -> str:
        return self.body.emit(f"icmp {predicate} {self.i} {a}, {b}")

    def select(self, cond: str, a: str, b: str) -> str:
        return self.body.emit(f"select {self.b} {cond}, {self.f} {a}, {self.f} {b}")

    def iselect(self, cond: str, a: str, b: str) -> str:
        return self.body.emit(f"select {self.b} {cond}, {self.i} {a}, {self.i} {b}")

    def bits(self, a: str) -> str:
        return self.body.emit(f"bitcast {self.f} {a} to {self.i}")

    def float(self, a: str) -> str:
        return self.body.emit(f"bitcast {self.i} {a} to {self.f}")

    def int(self, op: str, a: str, b: str) -> str:
        """An i32 operation by its LLVM name."""
        return self.body.emit(f"{op} {self.i} {a}, {b}")

    def horner(self, x: str, coefficients: list[float]) -> str:
        """The polynomial with ``coefficients``, highest power first."""
        result = self.c(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.fma(result, x, self.c(coefficient))
        return result

    def clamp(self, x: str, low: float, high: float) -> str:
        """``x`` within [low, high]; NaN stays NaN."""
        x = self.select(self.cmp("olt", x, self.c(low)), self.c(low), x)
        return self.select(self.cmp("ogt", x, self.c(high)), self.c(high), x)

    def powers(self, rounded: str) -> tuple[str, str]:
        """Two factors, neither below the smallest normal number, whose product is 2**n for
        ``rounded = n + ROUND_MAGIC``, n in [-252, 254]. The bits of the magic number leave at the
        top."""
        bits = self.bits(rounded)
        half = self.int("ashr", bits, self.k(1))
        first, second = (
            self.int("add", self.int("shl", part, self.k(23)), self.k(0x3F800000))
            for part in (half, self.int("sub", bits, half))
        )
        return self.float(first), self.float(second)


_EXP = [1.381456037e-3, 8.368735202e-3, 4.166838899e-2, 1.666652113e-1, 4.999999404e-1]


def _reduced(m: Lanes, x: str, rounded: str) -> str:
    """exp(x)/2**n - 1 for ``rounded = n + ROUND_MAGIC``, n the integer next to x*log2(e)."""
    n = m.sub(rounded, m.c(ROUND_MAGIC))
    r = m.fma(n, m.c(-LN2_HIGH), x)
    r = m.fma(n, m.c(-LN2_LOW), r)
    return m.fma(m.horner(r, _EXP), m.mul(r, r), r)


def _exp(m: Lanes, x: str) -> str:
    x = m.clamp(x, -104.0, 89.0)
    rounded = m.fma(x, m.c(LOG2_E), m.c(ROUND_MAGIC))
    p = _reduced(m, x, rounded)
    first, second = m.powers(rounded)
    return m.mul(m.fma(p, first, first), second)


def _exp2(m: Lanes, x: str) -> str:
    x = m.clamp(x, -151.0, 129.0)
    rounded = m.add(x, m.c(ROUND_MAGIC))
    r = m.sub(x, m.sub(rounded, m.c(ROUND_MAGIC)))
    p = m.horner(
        r,
        [
            1.535336188319500e-4,
            1.339887440266574e-3,
            9.618437357674640e-3,
            5.550332471162809e-2,
            2.402264791363012e-1,
            6.931472028550421e-1,
        ],
    )
    first, second = m.powers(rounded)
    return m.mul(m.fma(p, m.mul(r, first), first), second)


def _log_parts(m: Lanes, x: str) -> tuple[str, str, str]:
    """(e, f, y) with log x = e*log 2 + f + y, f in [sqrt(1/2) - 1, sqrt 2 - 1]."""
    tiny = m.cmp("olt", x, m.c(1.17549435e-38))
    scaled = m.select(tiny, m.mul(x, m.c(8388608.0)), x)
    offset = m.iselect(tiny, m.k(-23), m.k(0))
    shifted = m.int("sub", m.bits(scaled), m.k(0x3F3504F3))
    exponent = m.int("add", m.int("ashr", shifted, m.k(23)), offset)
    mantissa = m.int("add", m.int("and", shifted, m.k(0x7FFFFF)), m.k(0x3F3504F3))
    f = m.sub(m.float(mantissa), m.c(1.0))
    z = m.mul(f, f)
    p = m.horner(
        f,
        [
            7.0376836292e-2,
            -1.1514610310e-1,
            1.1676998740e-1,
            -1.2420140846e-1,
            1.4249322787e-1,
            -1.6668057665e-1,
            2.0000714765e-1,
            -2.4999993993e-1,
            3.3333331174e-1,
        ],
    )
    y = m.mul(m.mul(f, z), p)
    e = m.body.emit(f"sitofp {m.i} {exponent} to {m.f}")
    return e, f, m.fma(z, m.c(-0.5), y)


def _log_edges(m: Lanes, x: str, result: str) -> str:
    """NaN below zero and for NaN, -inf at zero, inf at inf."""
    infinity = m.cmp("oeq", x, m.c(float("inf")))
    result = m.select(infinity, x, result)
    result = m.select(m.cmp("ult", x, m.c(0.0)), m.c(float("nan")), result)
    return m.select(m.cmp("oeq", x, m.c(0.0)), m.c(float("-inf")), result)


def _log(m: Lanes, x: str) -> str:
    e, f, y = _log_parts(m, x)
    y = m.fma(e, m.c(LN2_LOW), y)
    return _log_edges(m, x, m.fma(e, m.c(LN2_HIGH), m.add(f, y)))


def _log2(m: Lanes, x: str) -> str:
    e, f, y = _log_parts(m, x)
    low = 0.44269504088896340735992
    z = m.mul(y, m.c(low))
    z = m.fma(f, m.c(low), z)
    z = m.add(m.add(z, y), f)
    return _log_edges(m, x, m.add(z, e))


def _tanh(m: Lanes, x: str) -> str:
    """A polynomial near 0; else (e - 1)/(e + 1) with e = exp(2|x|)."""
    size = m.abs(x)
    z = m.mul(x, x)
    p = m.horner(
        z,
        [
            -5.70498872745e-3,
            2.06390887954e-2,
            -5.37397155531e-2,
            1.33314422036e-1,
            -3.33332819422e-1,
        ],
    )
    small = m.fma(m.mul(p, z), size, size)
    capped = m.select(m.cmp("ogt", size, m.c(9.02)), m.c(9.02), size)
    rounded = m.fma(capped, m.c(2 * LOG2_E), m.c(ROUND_MAGIC))
    p = _reduced(m, m.add(capped, capped), rounded)
    power = m.float(m.int("add", m.int("shl", m.bits(rounded), m.k(23)), m.k(0x3F800000)))
    below = m.fma(p, power, m.sub(power, m.c(1.0)))
    large = m.div(below, m.add(below, m.c(2.0)))
    return m.copysign(m.select(m.cmp("olt", size, m.c(0.625)), small, large), x)


def _erf(m: Lanes, x: str) -> str:
    t = m.abs(x)
    s = m.mul(x, x)
    # Beyond 4 the result is 1; the clamp keeps 0 * inf out of the polynomial.
    tc = m.select(m.cmp("ogt", t, m.c(4.0)), m.c(4.0), t)
    sc = m.mul(tc, tc)
    high = m.fma(m.c(-1.72853470e-5), tc, m.c(3.83197126e-4))
    low = m.fma(m.c(-3.88396438e-3), tc, m.c(2.42546219e-2))
    r = m.fma(high, sc, low)
    for coefficient in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = m.fma(r, tc, m.c(coefficient))
    r = m.fma(r, tc, m.sub(m.c(-0.0), tc))
    large = m.copysign(m.sub(m.c(1.0), _exp(m, r)), x)
    p = m.horner(
        s,
        [
            -5.96761703e-4,
            4.99119423e-3,
            -2.67681349e-2,
            1.12819925e-1,
            -3.76125336e-1,
            1.28379166e-1,
        ],
    )
    small = m.fma(p, x, x)
    return m.select(m.cmp("ogt", t, m.c(0.927734375)), large, small)


def _f16_to_f32(m: Lanes, half: str) -> str:
    bits = m.body.emit(f"zext {vector('i16', m.lanes)} {half} to {m.i}")
    magnitude = m.int("and", bits, m.k(0x7FFF))
    sign = m.int("shl", m.int("and", bits, m.k(0x8000)), m.k(16))
    # The product rescales the exponent and makes subnormals normal.
    value = m.mul(m.float(m.int("shl", magnitude, m.k(13))), m.c(2.0**112))
    special = m.icmp("uge", magnitude, m.k(0x7C00))
    wide = m.int("or", m.int("shl", magnitude, m.k(13)), m.k(0x7F800000))
    found = m.iselect(special, wide, m.bits(value))
    return m.float(m.int("or", found, sign))


def _f32_to_f16(m: Lanes, x: str) -> str:
    bits = m.bits(x)
    sign = m.int("and", m.int("lshr", bits, m.k(16)), m.k(0x8000))
    size = m.int("and", bits, m.k(0x7FFFFFFF))
    odd = m.int("and", m.int("lshr", size, m.k(13)), m.k(1))
    normal = m.int("add", m.int("add", size, m.k(0xC8000FFF)), odd)
    normal = m.int("lshr", normal, m.k(13))
    # Adding 0.5 lines the subnormal's bits up at the bottom of the f32, rounded to nearest even.
    shifted = m.bits(m.add(m.float(size), m.c(0.5)))
    subnormal = m.int("sub", shifted, m.k(0x3F000000))
    found = m.iselect(m.icmp("ult", size, m.k(0x38800000)), subnormal, normal)
    found = m.iselect(m.icmp("uge", size, m.k(0x47800000)), m.k(0x7C00), found)
    found = m.iselect(m.icmp("ugt", size, m.k(0x7F800000)), m.k(0x7E00), found)
    found = m.int("or", found, sign)
    return m.body.emit(f"trunc {m.i} {found} to {vector('i16', m.lanes)}")


def _bf16_to_f32(m: Lanes, half: str) -> str:
    bits = m.body.emit(f"zext {vector('i16', m.lanes)} {half} to {m.i}")
    return m.float(m.int("shl", bits, m.k(16)))


def _f32_to_bf16(m: Lanes, x: str) -> str:
    bits = m.bits(x)
    odd = m.int("and", m.int("lshr", bits, m.k(16)), m.k(1))
    rounded = m.int("add", m.int("add", bits, m.k(0x7FFF)), odd)
    quiet = m.int("or", bits, m.k(0x400000))
    found = m.iselect(m.cmp("uno", x, x), quiet, rounded)
    found = m.int("lshr", found, m.k(16))
    return m.body.emit(f"trunc {m.i} {found} to {vector('i16', m.lanes)}")


def _f64_to_f32_odd(m: Lanes, x: str) -> str:
    """Rounds f64 to f32 "to odd": a second rounding to 16 bits is then as if done once."""
    d = vector("double", m.lanes)
    near = m.body.emit(f"fptrunc {d} {x} to {m.f}")
    back = m.body.emit(f"fpext {m.f} {near} to {d}")
    wide = m.body.intrinsic("fabs", "double", m.lanes, [x])
    size = m.body.intrinsic("fabs", "double", m.lanes, [back])
    above = m.body.emit(f"fcmp ogt {d} {wide}, {size}")
    below = m.body.emit(f"fcmp olt {d} {wide}, {size}")
    step = m.iselect(above, m.k(1), m.iselect(below, m.k(-1), m.k(0)))
    bits = m.bits(near)
    even = m.icmp("eq", m.int("and", bits, m.k(1)), m.k(0))
    return m.float(m.int("add", bits, m.iselect(even, step, m.k(0))))


Builder = Callable[..., str]
"""Of the lanes and the arguments."""

F32_FUNCTIONS: dict[str, Builder] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log,
    "log2": _log2,
    "tanh": _tanh,
    "erf": _erf,
}
"""Functions f32 -> f32."""

_CONVERSIONS: dict[str, tuple[str, str, Builder]] = {
    "f16_to_f32": ("i16", "float", _f16_to_f32),
    "f32_to_f16": ("float", "i16", _f32_to_f16),
    "bf16_to_f32": ("i16", "float", _bf16_to_f32),
    "f32_to_bf16": ("float", "i16", _f32_to_bf16),
    "f64_to_f32_odd": ("double", "float", _f64_to_f32_odd),
}


def define(
    module: ModuleText, stem: str, lanes: int, given: Sequence[str], found: str, build: Builder
) -> str:
    """Makes sure the helper with parameters of types ``given`` exists; returns its name."""
    name = f"plait.{stem}.x{lanes}"
    if name not in module.helpers:
        module.helpers[name] = ""  # holds the place, so that helpers print in order of need
        body = Body(module)
        names = [f"%x{number}" for number in range(len(given))]
        result = build(Lanes(body, lanes), *names)
        returned = vector(found, lanes)
        pairs = zip(given, names, strict=True)
        parameters = ", ".join(f"{vector(type, lanes)} {own}" for type, own in pairs)
        lines = "\n".join(body.lines)
        module.helpers[name] = (
            f"define internal {returned} @{name}({parameters}) alwaysinline nounwind {{\n"
            f"entry:\n{lines}\n  ret {returned} {result}\n}}\n"
        )
    return name


def convert(body: Body, conversion: str, lanes: int, x: str) -> str:
    """A conversion of the 16-bit floats, by hardware where there is such."""
    given, found, build = _CONVERSIONS[conversion]
    if body.module.features.half_conversion and conversion in ("f16_to_f32", "f32_to_f16"):
        half, single = vector("half", lanes), vector("float", lanes)
        bits = vector("i16", lanes)
        if conversion == "f16_to_f32":
            return body.emit(
                f"fpext {half} {body.emit(f'bitcast {bits} {x} to {half}')} to {single}"
            )
        return body.emit(f"bitcast {half} {body.emit(f'fptrunc {single} {x} to {half}')} to {bits}")
    name = define(body.module, conversion, lanes, [given], found, build)
    return body.call(name, vector(found, lanes), [(vector(given, lanes), x)])


LIBM: dict[str, str] = {"erf": "erf", "cbrt": "cbrt", "expm1": "expm1", "log1p": "log1p"}
"""Functions that have no LLVM intrinsic, under their C names (double)."""
for _name in ("asinh", "acosh", "atanh"):
    LIBM[_name] = _name


def call_libm(body: Body, function: str, spelled: str, lanes: int, args: list[str]) -> str:
    """Calls the process's C library, lane by lane."""
    name = LIBM[function] + ("f" if spelled == "float" else "")
    if lanes == 1:
        return body.call(name, spelled, [(spelled, a) for a in args])
    type = vector(spelled, lanes)
    result = "poison"
    for lane in range(lanes):
        parts = [(spelled, body.emit(f"extractelement {type} {a}, i32 {lane}")) for a in args]
        one = body.call(name, spelled, parts)
        result = body.emit(f"insertelement {type} {result}, {spelled} {one}, i32 {lane}")
    return result
