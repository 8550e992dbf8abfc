"""One ``arith`` or ``math`` operation, on scalars or vectors, as LLVM IR text.

A handler gets the operand texts (all of one number of lanes) and returns the result's. The
16-bit floats are widened to f32 around every arithmetic operation, as the ``nest`` level means it.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

from plait.lowering.llvm_math import LIBM, call_libm, convert
from plait.lowering.llvm_text import Body
from plait.lowering.llvm_types import (
    HALF_TYPES,
    bit_width,
    compute_type,
    literal,
    llvm_type,
    splat,
    suffix,
    vector,
)
from plait.lowering.llvm_wide import call_f32

Handler = Callable[[Body, Operation, list[str], int], str]

_CMPF = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_CMPI = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]

_INT_BINARY: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.ShLIOp: "shl",
    arith.ShRUIOp: "lshr",
    arith.ShRSIOp: "ashr",
}
_INT_MINMAX: dict[type[Operation], str] = {
    arith.MaxSIOp: "smax",
    arith.MinSIOp: "smin",
    arith.MaxUIOp: "umax",
    arith.MinUIOp: "umin",
}
_DIVISIONS: dict[type[Operation], str] = {
    arith.DivSIOp: "sdiv",
    arith.DivUIOp: "udiv",
    arith.RemSIOp: "srem",
    arith.RemUIOp: "urem",
}
_FLOAT_BINARY: dict[type[Operation], str] = {
    arith.AddfOp: "fadd",
    arith.SubfOp: "fsub",
    arith.MulfOp: "fmul",
    arith.DivfOp: "fdiv",
}
_FLOAT_MINMAX: dict[type[Operation], str] = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
}
_INTRINSICS: dict[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.CeilOp: "ceil",
    math.FloorOp: "floor",
    math.TruncOp: "trunc",
    math.RoundOp: "round",
    math.RoundEvenOp: "roundeven",
    math.SqrtOp: "sqrt",
    math.CopySignOp: "copysign",
    math.FmaOp: "fma",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.LogOp: "log",
    math.Log2Op: "log2",
    math.Log10Op: "log10",
    math.SinOp: "sin",
    math.CosOp: "cos",
    math.TanOp: "tan",
    math.AsinOp: "asin",
    math.AcosOp: "acos",
    math.AtanOp: "atan",
    math.Atan2Op: "atan2",
    math.SinhOp: "sinh",
    math.CoshOp: "cosh",
    math.TanhOp: "tanh",
    math.PowFOp: "pow",
}
_LIBRARY: dict[type[Operation], str] = {
    math.ErfOp: "erf",
    math.CbrtOp: "cbrt",
    math.ExpM1Op: "expm1",
    math.Log1pOp: "log1p",
    math.AsinhOp: "asinh",
    math.AcoshOp: "acosh",
    math.AtanhOp: "atanh",
}
_EXPANDED: dict[type[Operation], str] = {
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.LogOp: "log",
    math.Log2Op: "log2",
    math.TanhOp: "tanh",
    math.ErfOp: "erf",
    math.SinOp: "sin",
    math.CosOp: "cos",
    math.PowFOp: "pow",
}
"""What f32 has an expansion of."""


def _flags(op: Operation) -> str:
    """Fast-math flags as LLVM spells them, with a trailing blank."""
    attribute = op.properties.get("fastmath")
    if not isinstance(attribute, arith.FastMathFlagsAttr) or not attribute.data:
        return ""
    return " ".join(flag.value for flag in attribute.data) + " "


def _wrap_flags(op: Operation) -> str:
    attribute = op.properties.get("overflowFlags")
    if isinstance(op.results[0].type, IndexType):
        return "nsw "
    if not isinstance(attribute, arith.IntegerOverflowAttr) or not attribute.data:
        return ""
    return " ".join(flag.value for flag in attribute.data) + " "


def _int_binary(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    name = _INT_BINARY[type(op)]
    flags = _wrap_flags(op) if name in ("add", "sub", "mul") else ""
    type_ = vector(llvm_type(op.results[0].type), lanes)
    return body.emit(f"{name} {flags}{type_} {args[0]}, {args[1]}")


def _int_minmax(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    return body.intrinsic(_INT_MINMAX[type(op)], llvm_type(op.results[0].type), lanes, args)


def _division(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    """Division that cannot trap: by zero it gives an unspecified value, and MIN / -1 wraps."""
    name = _DIVISIONS[type(op)]
    spelled = llvm_type(op.results[0].type)
    type_, flag = vector(spelled, lanes), vector("i1", lanes)
    value, divisor = args
    if not divisor.startswith("%") and divisor not in ("0", "-1") and "<" not in divisor:
        return body.emit(f"{name} {type_} {value}, {divisor}")
    if divisor.startswith("<") and " 0," not in divisor and " -1" not in divisor:
        return body.emit(f"{name} {type_} {value}, {divisor}")
    one, zero = splat(spelled, "1", lanes), splat(spelled, "0", lanes)
    unsafe = body.emit(f"icmp eq {type_} {divisor}, {zero}")
    negative = unsafe
    if name in ("sdiv", "srem"):
        negative = body.emit(f"icmp eq {type_} {divisor}, {splat(spelled, '-1', lanes)}")
        unsafe = body.emit(f"or {flag} {unsafe}, {negative}")
    divisor = body.emit(f"select {flag} {unsafe}, {type_} {one}, {type_} {divisor}")
    found = body.emit(f"{name} {type_} {value}, {divisor}")
    if name == "sdiv":
        opposite = body.emit(f"sub {type_} {zero}, {value}")
        found = body.emit(f"select {flag} {negative}, {type_} {opposite}, {type_} {found}")
    return found


def _float_binary(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    type_ = vector(llvm_type(compute_type(op.results[0].type)), lanes)
    return body.emit(f"{_FLOAT_BINARY[type(op)]} {_flags(op)}{type_} {args[0]}, {args[1]}")


def _float_minmax(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    spelled = llvm_type(compute_type(op.results[0].type))
    return body.intrinsic(_FLOAT_MINMAX[type(op)], spelled, lanes, args)


def _negf(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    return body.emit(f"fneg {vector(llvm_type(compute_type(op.results[0].type)), lanes)} {args[0]}")


def _intrinsic(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    type_ = compute_type(op.results[0].type)
    expanded = _EXPANDED.get(type(op))
    if expanded is not None and isinstance(type_, Float32Type):
        return call_f32(body, expanded, lanes, args)
    return body.intrinsic(_INTRINSICS[type(op)], llvm_type(type_), lanes, args)


def _library(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    type_ = compute_type(op.results[0].type)
    expanded = _EXPANDED.get(type(op))
    if expanded is not None and isinstance(type_, Float32Type):
        return call_f32(body, expanded, lanes, args)
    assert _LIBRARY[type(op)] in LIBM
    return call_libm(body, _LIBRARY[type(op)], llvm_type(type_), lanes, args)


def _rsqrt(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    type_ = compute_type(op.results[0].type)
    spelled = llvm_type(type_)
    root = body.intrinsic("sqrt", spelled, lanes, args)
    one = splat(spelled, literal(1.0, type_), lanes)
    return body.emit(f"fdiv {vector(spelled, lanes)} {one}, {root}")


def _absi(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    spelled = llvm_type(op.results[0].type)
    type_ = vector(spelled, lanes)
    return body.call(
        f"llvm.abs.{suffix(spelled, lanes)}", type_, [(type_, args[0]), ("i1", "false")]
    )


def _count_zeros(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    name = "ctlz" if isinstance(op, math.CountLeadingZerosOp) else "cttz"
    spelled = llvm_type(op.results[0].type)
    type_ = vector(spelled, lanes)
    return body.call(
        f"llvm.{name}.{suffix(spelled, lanes)}", type_, [(type_, args[0]), ("i1", "false")]
    )


def _popcount(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    return body.intrinsic("ctpop", llvm_type(op.results[0].type), lanes, args)


def _cmp(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    assert isinstance(op, arith.CmpiOp | arith.CmpfOp)
    type_ = vector(llvm_type(compute_type(op.operands[0].type)), lanes)
    code = op.predicate.value.data
    if isinstance(op, arith.CmpiOp):
        return body.emit(f"icmp {_CMPI[code]} {type_} {args[0]}, {args[1]}")
    return body.emit(f"fcmp {_CMPF[code]} {type_} {args[0]}, {args[1]}")


def _select(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    type_ = vector(llvm_type(op.results[0].type), lanes)
    flag = vector("i1", lanes)
    return body.emit(f"select {flag} {args[0]}, {type_} {args[1]}, {type_} {args[2]}")


def float_cast(body: Body, value: str, given: Attribute, wanted: Attribute, lanes: int) -> str:
    """Converts between float types, rounding once, to nearest even."""
    if given == wanted:
        return value
    if isinstance(given, HALF_TYPES):
        stem = "f16" if isinstance(given, Float16Type) else "bf16"
        value = convert(body, f"{stem}_to_f32", lanes, value)
        if isinstance(wanted, Float64Type):
            return body.emit(f"fpext {vector('float', lanes)} {value} to {vector('double', lanes)}")
        if isinstance(wanted, Float32Type):
            return value
    if isinstance(wanted, HALF_TYPES):
        stem = "bf16" if isinstance(wanted, BFloat16Type) else "f16"
        if isinstance(given, Float64Type):
            value = convert(body, "f64_to_f32_odd", lanes, value)
        return convert(body, f"f32_to_{stem}", lanes, value)
    single, double = vector("float", lanes), vector("double", lanes)
    if isinstance(wanted, Float64Type):
        return body.emit(f"fpext {single} {value} to {double}")
    return body.emit(f"fptrunc {double} {value} to {single}")


def _float_to_float(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    return float_cast(body, args[0], op.operands[0].type, op.results[0].type, lanes)


def _float_to_int(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    """Truncates toward zero and saturates; NaN gives 0."""
    kind = "fptosi" if isinstance(op, arith.FPToSIOp) else "fptoui"
    given = llvm_type(compute_type(op.operands[0].type))
    wanted = llvm_type(op.results[0].type)
    name = f"llvm.{kind}.sat.{suffix(wanted, lanes)}.{suffix(given, lanes)}"
    return body.call(name, vector(wanted, lanes), [(vector(given, lanes), args[0])])


def _int_to_float(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    kind = "sitofp" if isinstance(op, arith.SIToFPOp) else "uitofp"
    given, result = llvm_type(op.operands[0].type), op.results[0].type
    if isinstance(result, HALF_TYPES):
        double = vector("double", lanes)
        wide = body.emit(f"{kind} {vector(given, lanes)} {args[0]} to {double}")
        single = convert(body, "f64_to_f32_odd", lanes, wide)
        stem = "bf16" if isinstance(result, BFloat16Type) else "f16"
        return convert(body, f"f32_to_{stem}", lanes, single)
    return body.emit(
        f"{kind} {vector(given, lanes)} {args[0]} to {vector(llvm_type(result), lanes)}"
    )


def _int_to_int(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    given, wanted = op.operands[0].type, op.results[0].type
    before, after = bit_width(given), bit_width(wanted)
    if before == after:
        return args[0]
    name = "trunc" if before > after else "zext" if isinstance(op, arith.ExtUIOp) else "sext"
    return body.emit(
        f"{name} {vector(llvm_type(given), lanes)} {args[0]} to {vector(llvm_type(wanted), lanes)}"
    )


def _bitcast(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    given, wanted = llvm_type(op.operands[0].type), llvm_type(op.results[0].type)
    if given == wanted:
        return args[0]
    return body.emit(f"bitcast {vector(given, lanes)} {args[0]} to {vector(wanted, lanes)}")


HANDLERS: dict[type[Operation], Handler] = {
    **dict.fromkeys(_INT_BINARY, _int_binary),
    **dict.fromkeys(_INT_MINMAX, _int_minmax),
    **dict.fromkeys(_DIVISIONS, _division),
    **dict.fromkeys(_FLOAT_BINARY, _float_binary),
    **dict.fromkeys(_FLOAT_MINMAX, _float_minmax),
    **dict.fromkeys(_INTRINSICS, _intrinsic),
    **dict.fromkeys(_LIBRARY, _library),
    arith.NegfOp: _negf,
    arith.CmpiOp: _cmp,
    arith.CmpfOp: _cmp,
    arith.SelectOp: _select,
    arith.ExtFOp: _float_to_float,
    arith.TruncFOp: _float_to_float,
    arith.FPToSIOp: _float_to_int,
    arith.FPToUIOp: _float_to_int,
    arith.SIToFPOp: _int_to_float,
    arith.UIToFPOp: _int_to_float,
    arith.ExtSIOp: _int_to_int,
    arith.ExtUIOp: _int_to_int,
    arith.TruncIOp: _int_to_int,
    arith.IndexCastOp: _int_to_int,
    arith.BitcastOp: _bitcast,
    math.RsqrtOp: _rsqrt,
    math.AbsIOp: _absi,
    math.CountLeadingZerosOp: _count_zeros,
    math.CountTrailingZerosOp: _count_zeros,
    math.CtPopOp: _popcount,
}
"""Every elementwise operation that can be printed."""

_RAW: tuple[type[Operation], ...] = (
    arith.SelectOp,
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.BitcastOp,
)
"""Operations that take and give 16-bit floats as they are."""


def emit_elementwise(body: Body, op: Operation, args: list[str], lanes: int) -> str:
    """The result of ``op`` on ``lanes`` elements."""
    handler = HANDLERS.get(type(op))
    if handler is None:
        raise DiagnosticException(
            f"target llvm: no lowering for '{op.name}'; lower it to arith or math first"
        )
    if isinstance(op, _RAW):
        return handler(body, op, args, lanes)
    widened = [
        float_cast(body, arg, operand.type, compute_type(operand.type), lanes)
        for arg, operand in zip(args, op.operands, strict=True)
    ]
    result = handler(body, op, widened, lanes)
    type_ = op.results[0].type
    if isinstance(type_, HALF_TYPES):
        return float_cast(body, result, compute_type(type_), type_, lanes)
    return result
