"""Target llvm: every operation against numpy, one lane and many, and the measured errors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException

from plait.lowering.llvm_text import CpuFeatures
from plait.lowering.target_llvm import module_to_llvm_ir
from plait.runtime import cpu_jit

Array = np.ndarray[Any, np.dtype[Any]]

NUMPY: dict[str, Any] = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}


def parse(text: str) -> ModuleOp:
    ctx = Context()
    for name, dialect in get_all_dialects().items():
        ctx.register_dialect(name, dialect)
    module = Parser(ctx, text).parse_module()
    module.verify()
    return module


def kernel(inputs: list[str], result: str, body: str, n: int, lanes: int) -> str:
    """A kernel that applies ``body`` (%v0, %v1, ... to %r) to every element."""
    types = [*inputs, result]
    parameters = ", ".join(f"%b{i}: memref<{n}x{t}>" for i, t in enumerate(types))
    loads = "\n".join(
        f"%v{i} = memref.load %b{i}[%i] : memref<{n}x{t}>" for i, t in enumerate(inputs)
    )
    out = len(inputs)
    marks = f"{{plait.lanes = {lanes} : index}}" if lanes > 1 else ""
    return f"""
    func.func @k({parameters}, %begin: index, %end: index) {{
      %c1 = arith.constant 1 : index
      scf.for %i = %begin to %end step %c1 {{
        {loads}
        {body}
        memref.store %r, %b{out}[%i] : memref<{n}x{result}>
      }} {marks}
      func.return
    }}"""


def run(text: str, arrays: list[Array], end: int, features: CpuFeatures | None = None) -> None:
    ir = module_to_llvm_ir(parse(text), features=features or cpu_jit.host_features())
    library = cpu_jit.load(ir, ["k.packed"])
    function = library.function("k.packed", ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    function(pointers, 0, end)


def apply(
    inputs: list[tuple[str, Array]],
    result: str,
    body: str,
    lanes: int,
    features: CpuFeatures | None = None,
) -> Array:
    n = len(inputs[0][1])
    out = np.zeros(n, NUMPY[result])
    text = kernel([t for t, _ in inputs], result, body, n, lanes)
    run(text, [*(np.ascontiguousarray(a) for _, a in inputs), out], n, features)
    return out


FLOATS = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-40, 1e30, -1e30),
        *(np.inf, -np.inf, np.nan, 100.25, -7.125, 0.1),
    ],
    dtype=np.float32,
)
INTS = np.array([0, 1, -1, 2, 5, -5, 7, -7, 100, -128, 127, 3, 64], dtype=np.int32)


def pairs(values: Array) -> tuple[Array, Array]:
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


UNARY: dict[str, Callable[[Array], Array]] = {
    "math.absf": np.abs,
    "arith.negf": np.negative,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.log1p": np.log1p,
    "math.expm1": np.expm1,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
    "math.atan": np.arctan,
    "math.asin": np.arcsin,
    "math.acos": np.arccos,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.cbrt": np.cbrt,
    "math.erf": lambda x: np.array([math.erf(v) for v in x], x.dtype),
}


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_unary_float(type: str, lanes: int) -> None:
    values = FLOATS.astype(NUMPY[type])
    n = len(values)
    names = list(UNARY)
    parameters = ", ".join(f"%o{i}: memref<{n}x{type}>" for i in range(len(names)))
    body = "\n".join(
        f"%r{i} = {name} %v : {type}\nmemref.store %r{i}, %o{i}[%i] : memref<{n}x{type}>"
        for i, name in enumerate(names)
    )
    text = f"""func.func @k(%x: memref<{n}x{type}>, {parameters}, %b: index, %e: index) {{
      %c1 = arith.constant 1 : index
      scf.for %i = %b to %e step %c1 {{
        %v = memref.load %x[%i] : memref<{n}x{type}>
        {body}
      }} {{plait.lanes = {lanes} : index}}
      func.return
    }}"""
    outputs = [np.zeros(n, values.dtype) for _ in names]
    run(text, [values, *outputs], n)
    tolerance = 3e-7 if type == "f32" else 1e-14
    for name, found in zip(names, outputs, strict=True):
        with np.errstate(all="ignore"):
            wanted = UNARY[name](values.astype(np.float64)).astype(values.dtype)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-44, err_msg=name)
        zero = wanted == 0
        assert (np.signbit(found[zero]) == np.signbit(wanted[zero])).all(), name


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_binary_float(type: str, lanes: int) -> None:
    a, b = pairs(FLOATS.astype(NUMPY[type]))
    table: dict[str, Callable[[Array, Array], Array]] = {
        "arith.addf": np.add,
        "arith.subf": np.subtract,
        "arith.mulf": np.multiply,
        "arith.divf": np.divide,
        "arith.maximumf": np.maximum,
        "arith.minimumf": np.minimum,
        "arith.maxnumf": np.fmax,
        "arith.minnumf": np.fmin,
        "math.copysign": np.copysign,
        "math.atan2": np.arctan2,
        "math.powf": np.power,
    }
    for name, wanted in table.items():
        found = apply([(type, a), (type, b)], type, f"%r = {name} %v0, %v1 : {type}", lanes)
        with np.errstate(all="ignore"):
            expected = wanted(a, b)
        np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-44, err_msg=name)


@pytest.mark.parametrize("lanes", [1, 8])
def test_integer(lanes: int) -> None:
    a, b = pairs(INTS)
    safe = np.where(b == 0, 1, b)
    with np.errstate(all="ignore"):
        table: dict[str, Array] = {
            "arith.addi": a + b,
            "arith.subi": a - b,
            "arith.muli": a * b,
            "arith.andi": a & b,
            "arith.ori": a | b,
            "arith.xori": a ^ b,
            "arith.maxsi": np.maximum(a, b),
            "arith.minui": np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
            "arith.divsi": np.trunc(a / safe).astype(np.int32),
            "arith.remsi": np.fmod(a, safe),
        }
    for name, wanted in table.items():
        found = apply([("i32", a), ("i32", b)], "i32", f"%r = {name} %v0, %v1 : i32", lanes)
        chosen = b != 0 if name.startswith(("arith.div", "arith.rem")) else slice(None)
        np.testing.assert_array_equal(found[chosen], wanted[chosen], err_msg=name)


def test_division_never_traps() -> None:
    a = np.full(16, np.iinfo(np.int32).min, np.int32)
    b = np.tile(np.array([-1, 0], np.int32), 8)
    body = "%r = arith.divsi %v0, %v1 : i32"
    found = apply([("i32", a), ("i32", b)], "i32", body, 8)
    assert (found[::2] == a[::2]).all()


@pytest.mark.parametrize("lanes", [1, 8])
def test_compare_and_select(lanes: int) -> None:
    a, b = pairs(FLOATS)
    table = {"oeq": a == b, "une": a != b, "olt": a < b, "oge": a >= b}
    table["uno"] = np.isnan(a) | np.isnan(b)
    for name, wanted in table.items():
        body = f"%r = arith.cmpf {name}, %v0, %v1 : f32"
        found = apply([("f32", a), ("f32", b)], "i1", body, lanes)
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    body = "%c = arith.cmpf olt, %v0, %v1 : f32\n%r = arith.select %c, %v0, %v1 : f32"
    found = apply([("f32", a), ("f32", b)], "f32", body, lanes)
    np.testing.assert_array_equal(found, np.where(a < b, a, b))


@pytest.mark.parametrize("lanes", [1, 8])
def test_float_to_int_saturates(lanes: int) -> None:
    values = np.array([0.9, -0.9, 300.0, -300.0, 1e30, -1e30, np.nan, np.inf], np.float32)
    found = apply([("f32", values)], "i8", "%r = arith.fptosi %v0 : f32 to i8", lanes)
    np.testing.assert_array_equal(found, [0, 0, 127, -128, 127, -128, 0, 127])
    found = apply([("f32", values)], "i8", "%r = arith.fptoui %v0 : f32 to i8", lanes)
    np.testing.assert_array_equal(found.view(np.uint8), [0, 0, 255, 0, 255, 0, 0, 255])


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize("lanes", [1, 8])
def test_half_conversions(lanes: int, hardware: bool) -> None:
    if hardware and not cpu_jit.host_features().half_conversion:
        pytest.skip("no f16 conversion in hardware")
    features = CpuFeatures(half_conversion=hardware)
    bits = np.arange(65536, dtype=np.uint16)
    wide = bits.view(np.float16).astype(np.float32)
    body = "%r = arith.extf %v0 : f16 to f32"
    found = apply([("f16", bits.view(np.float16))], "f32", body, lanes, features)
    np.testing.assert_array_equal(found, wide)
    generator = np.random.default_rng(0)
    values = generator.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    near = generator.standard_normal(200_000) * 2.0 ** generator.integers(-30, 20, 200_000)
    values = np.concatenate([values, near.astype(np.float32), FLOATS])
    with np.errstate(all="ignore"):
        wanted = values.astype(np.float16)
    found = apply([("f32", values)], "f16", "%r = arith.truncf %v0 : f32 to f16", lanes, features)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("lanes", [1, 8])
def test_double_to_half_rounds_once(lanes: int) -> None:
    step = 2.0**-10
    values = np.array([1 + step / 2 + 2.0**-40, 1 + step / 2, 1 + step / 2 - 2.0**-40, 1e-300])
    values = np.concatenate([values, np.random.default_rng(1).standard_normal(1000), [np.inf]])
    found = apply([("f64", values)], "f16", "%r = arith.truncf %v0 : f64 to f16", lanes)
    np.testing.assert_array_equal(found, values.astype(np.float16))


@pytest.mark.parametrize("lanes", [1, 8])
def test_bfloat16(lanes: int) -> None:
    values = np.random.default_rng(2).integers(0, 2**32, 100_000, dtype=np.uint32)
    floats = values.view(np.float32)
    found = apply([("f32", floats)], "bf16", "%r = arith.truncf %v0 : f32 to bf16", lanes)
    rounded = ((values.astype(np.uint64) + 0x7FFF + ((values >> 16) & 1)) >> 16).astype(np.uint16)
    number = ~np.isnan(floats)
    np.testing.assert_array_equal(found[number], rounded[number])
    assert np.isnan((found[~number].astype(np.uint32) << 16).view(np.float32)).all()
    body = "%r = arith.addf %v0, %v0 : bf16"
    ones = np.full(16, 0x3F80, np.uint16)
    assert (apply([("bf16", ones)], "bf16", body, lanes) == 0x4000).all()


LIMITS = {
    "exp": 1.0,
    "exp2": 1.0,
    "log": 1.0,
    "log2": 1.5,
    "tanh": 1.5,
    "erf": 1.0,
    "sin": 1.55,
    "cos": 1.55,
}
"""Largest error in units in the last place, measured on every 1009th f32 (erf: 8009th)."""


@pytest.mark.parametrize("function", list(LIMITS))
def test_measured_error(function: str) -> None:
    step = 8009 if function == "erf" else 1009
    bits = np.arange(0, 2**32, step, dtype=np.int64).astype(np.uint32)
    values = np.concatenate([bits.view(np.float32), FLOATS])
    values = values[~np.isnan(values)]
    found = apply([("f32", values)], "f32", f"%r = math.{function} %v0 : f32", 16)
    wide = values.astype(np.float64)
    with np.errstate(all="ignore"):
        if function == "erf":
            wanted = np.array([math.erf(v) for v in wide])
        else:
            wanted = getattr(np, function)(wide)
        nearest = wanted.astype(np.float32)
        exponent = np.maximum(np.floor(np.log2(np.abs(wanted))), -126)
        error = np.abs(found - wanted) / 2.0 ** (exponent - 23)
    exact = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    assert np.where(exact, 0, error).max() <= LIMITS[function]


@pytest.mark.parametrize("function", ["sin", "cos"])
def test_angles_near_multiples_of_a_right_angle(function: str) -> None:
    angles = np.arange(-640_000, 640_000, dtype=np.float64) * (np.pi / 2)
    values = np.concatenate([angles.astype(np.float32), np.float32([1e30, -3e38, np.inf])])
    found = apply([("f32", values)], "f32", f"%r = math.{function} %v0 : f32", 16)
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, function)(values.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=1e-44)


@pytest.mark.parametrize("lanes", [1, 8])
def test_powers(lanes: int) -> None:
    special = [0, 1, 2, 3, 0.5, 1.5, np.inf, np.nan, 1e-45, 1e38, 2**24, 2**23 + 1, 16777215]
    special += [1e-30, 0.9999999, 1.0000001]
    signed = np.array([*special, *(-value for value in special)], dtype=np.float32)
    x, y = (grid.ravel().copy() for grid in np.meshgrid(signed, signed))
    rng = np.random.default_rng(0)
    bases = np.exp(rng.uniform(-80, 80, 100_000)).astype(np.float32)
    exponents = (rng.uniform(-100, 100, 100_000) / np.abs(np.log(bases))).astype(np.float32)
    x, y = np.concatenate([x, bases]), np.concatenate([y, exponents])
    found = apply([("f32", x), ("f32", y)], "f32", "%r = math.powf %v0, %v1 : f32", lanes)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=1.3e-7, atol=2e-45)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


def test_unknown_operation_is_a_diagnostic() -> None:
    text = """func.func @k(%x: memref<4xf32>, %b: index, %e: index) {
      %m = memref.alloca() : memref<4xf32>
      %v = memref.dim %m, %b : memref<4xf32>
      func.return
    }"""
    with pytest.raises(DiagnosticException, match=r"no lowering for 'memref\.dim'"):
        module_to_llvm_ir(parse(text))


def test_jam_and_lanes_agree_with_plain() -> None:
    n, m = 13, 37
    plain = f"""func.func @k(%x: memref<{n}x{m}xf32>, %o: memref<{n}x{m}xf32>,
                             %b: index, %e: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {n} : index
      %m = arith.constant {m} : index
      %z = arith.constant 0.0 : f32
      scf.for %i = %c0 to %n step %c1 {{
        scf.for %j = %c0 to %m step %c1 {{
          %s = scf.for %t = %c0 to %n step %c1 iter_args(%a = %z) -> (f32) {{
            %v = memref.load %x[%t, %j] : memref<{n}x{m}xf32>
            %w = memref.load %x[%i, %t] : memref<{n}x{m}xf32>
            %p = arith.mulf %v, %w : f32
            %q = arith.addf %a, %p : f32
            scf.yield %q : f32
          }}
          %even = arith.remui %j, %n : index
          %c = arith.cmpi ult, %even, %i : index
          %r = scf.if %c -> (f32) {{
            %u = memref.load %x[%i, %j] : memref<{n}x{m}xf32>
            scf.yield %u : f32
          }} else {{
            scf.yield %s : f32
          }}
          memref.store %r, %o[%i, %j] : memref<{n}x{m}xf32>
        }} JLOOP
      }} ILOOP
      func.return
    }}"""
    x = np.random.default_rng(3).standard_normal((n, m)).astype(np.float32)
    results: list[Array] = []
    for lanes in ("", "{plait.lanes = 8 : index}", "{plait.lanes = 8 : index, plait.overlap}"):
        for jam in ("", "{plait.jam = 4 : index}", "{plait.jam = 4 : index, plait.overlap}"):
            out = np.zeros_like(x)
            text = plain.replace("JLOOP", lanes).replace("ILOOP", jam)
            run(text, [x, out], 1)
            results.append(out)
    for found in results[1:]:
        np.testing.assert_allclose(found, results[0], rtol=1e-6)
