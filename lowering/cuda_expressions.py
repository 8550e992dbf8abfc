"""Expressions of CUDA C for ``arith`` and ``math`` operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

from plait.lowering.cuda_types import c_type, unsigned_type, width

Operands = Sequence[str]

_FLOAT: dict[type[Operation], str] = {
    arith.AddfOp: "+",
    arith.SubfOp: "-",
    arith.MulfOp: "*",
    arith.DivfOp: "/",
}
_WRAPPING: dict[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.ShLIOp: "<<",
}
_BITWISE: dict[type[Operation], tuple[str, str]] = {
    arith.AndIOp: ("&", "&&"),
    arith.OrIOp: ("|", "||"),
    arith.XOrIOp: ("^", "!="),
}
_SIGNED: dict[type[Operation], str] = {
    arith.DivSIOp: "/",
    arith.RemSIOp: "%",
    arith.ShRSIOp: ">>",
}
_UNSIGNED: dict[type[Operation], str] = {
    arith.DivUIOp: "/",
    arith.RemUIOp: "%",
    arith.ShRUIOp: ">>",
}
_EXTREMA: dict[type[Operation], tuple[str, bool]] = {
    arith.MaxSIOp: (">", False),
    arith.MinSIOp: ("<", False),
    arith.MaxUIOp: (">", True),
    arith.MinUIOp: ("<", True),
}
_FUNCTIONS: dict[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.LogOp: "log",
    math.Log2Op: "log2",
    math.SqrtOp: "sqrt",
    math.SinOp: "sin",
    math.CosOp: "cos",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
    math.ErfOp: "erf",
    math.FloorOp: "floor",
    math.CeilOp: "ceil",
    math.RoundEvenOp: "rint",
    math.TruncOp: "trunc",
    math.PowFOp: "pow",
    math.Atan2Op: "atan2",
    math.CopySignOp: "copysign",
    math.FmaOp: "fma",
}
FUNCTION_NAMES = frozenset(name + suffix for name in _FUNCTIONS.values() for suffix in ("", "f"))
"""The functions of C that expressions call."""
_ORDER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_CMPF = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)


class Expressions:
    """Makes expressions; ``wide`` indices are 64-bit."""

    def __init__(self, wide: bool):
        self.wide = wide

    def of(self, op: Operation, operands: Operands) -> str:
        """The expression of an operation on its operands' expressions, in parentheses where they
        need them."""
        cls = op.__class__
        type = op.results[0].type
        if cls in _FLOAT:
            return f"{operands[0]} {_FLOAT[cls]} {operands[1]}"
        if cls in _FUNCTIONS:
            suffix = "" if isinstance(type, Float64Type) else "f"
            return f"{_FUNCTIONS[cls]}{suffix}({', '.join(map(bare, operands))})"
        if cls in _WRAPPING:
            return self.wrapping(_WRAPPING[cls], type, operands)
        if cls in _BITWISE:
            bitwise, logical = _BITWISE[cls]
            sign = logical if _is_bool(type) else bitwise
            return f"{operands[0]} {sign} {operands[1]}"
        if cls in _SIGNED:
            return f"{operands[0]} {_SIGNED[cls]} {operands[1]}"
        if cls in _UNSIGNED:
            return self.unsigned(_UNSIGNED[cls], type, operands)
        if cls in _EXTREMA:
            sign, unsigned = _EXTREMA[cls]
            a, b = (self.as_unsigned(o, type) for o in operands) if unsigned else operands
            return f"{a} {sign} {b} ? {operands[0]} : {operands[1]}"
        return self.other(op, type, operands)

    def wrapping(self, sign: str, type: Attribute, operands: Operands) -> str:
        """Integer arithmetic that wraps; indices never do."""
        a, b = operands
        if isinstance(type, IndexType):
            return f"{a} {sign} {b}"
        unsigned = unsigned_type(type, self.wide)
        if width(type) < 32:
            return f"({c_type(type)})({a} {sign} {b})"
        return f"({c_type(type)})(({unsigned}){a} {sign} ({unsigned}){b})"

    def unsigned(self, sign: str, type: Attribute, operands: Operands) -> str:
        a, b = operands
        if isinstance(type, IndexType):
            return f"{a} {sign} {b}"
        return f"({c_type(type)})({self.as_unsigned(a, type)} {sign} {self.as_unsigned(b, type)})"

    def as_unsigned(self, operand: str, type: Attribute) -> str:
        if _is_bool(type):
            return operand
        return f"({unsigned_type(type, self.wide)}){operand}"

    def other(self, op: Operation, type: Attribute, operands: Operands) -> str:
        match op:
            case arith.NegfOp():
                return f"-{operands[0]}"
            case arith.MaximumfOp():
                return f"plait_max({bare(operands[0])}, {bare(operands[1])})"
            case arith.MinimumfOp():
                return f"plait_min({bare(operands[0])}, {bare(operands[1])})"
            case arith.SelectOp():
                return f"{operands[0]} ? {operands[1]} : {operands[2]}"
            case arith.CmpiOp():
                return self.cmpi(op, operands)
            case arith.CmpfOp():
                return cmpf(_CMPF[op.predicate.value.data], *operands)
            case _:
                return self.conversion(op, type, operands[0])

    def cmpi(self, op: arith.CmpiOp, operands: Operands) -> str:
        predicate = _CMPI[op.predicate.value.data]
        sign = _ORDER[predicate[-2:]]
        type = op.lhs.type
        if predicate[0] == "u" and not isinstance(type, IndexType):
            a, b = (self.as_unsigned(operand, type) for operand in operands)
            return f"{a} {sign} {b}"
        return f"{operands[0]} {sign} {operands[1]}"

    def conversion(self, op: Operation, type: Attribute, x: str) -> str:
        have, want = op.operands[0].type, c_type(type, self.wide)
        match op:
            case arith.IndexCastOp() | arith.ExtSIOp() if _is_bool(have):
                return f"-({want}){x}"
            case arith.IndexCastOp() | arith.ExtSIOp() | arith.SIToFPOp() | arith.FPToSIOp():
                return f"({want}){x}"
            case arith.ExtUIOp() | arith.UIToFPOp():
                return f"({want}){self.as_unsigned(x, have)}"
            case arith.FPToUIOp():
                return f"({want})({unsigned_type(type, self.wide)}){x}"
            case arith.TruncIOp():
                return f"({x} & 1) != 0" if _is_bool(type) else f"({want}){x}"
            case arith.ExtFOp():
                return _widened(have, type, x)
            case arith.TruncFOp():
                return _narrowed(have, type, x)
            case arith.BitcastOp():
                return f"{_bitcast(have, type)}({bare(x)})"
            case _:
                raise DiagnosticException(f"cuda: no expression for '{op.name}'")


def bare(text: str) -> str:
    """An expression without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]


def cmpf(predicate: str, a: str, b: str) -> str:
    """A comparison of floats: ordered ones are false for NaN, unordered ones true."""
    if predicate in ("uno", "ord"):
        unordered = f"{a} != {a}" if a == b else f"{a} != {a} || {b} != {b}"
        return unordered if predicate == "uno" else f"!({unordered})"
    if predicate == "one":
        return f"{a} < {b} || {a} > {b}"
    if predicate == "ueq":
        return f"!({a} < {b} || {a} > {b})"
    if predicate == "une" or predicate[0] == "o":
        return f"{a} {_ORDER[predicate[1:]]} {b}"
    opposite = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}[predicate]
    return f"!({a} {opposite} {b})"


def _is_bool(type: Attribute) -> bool:
    return isinstance(type, IntegerType) and width(type) == 1  # pyright: ignore


def _widened(have: Attribute, want: Attribute, x: str) -> str:
    if isinstance(have, Float16Type):
        x = f"__half2float({bare(x)})"
    elif isinstance(have, BFloat16Type):
        x = f"__bfloat162float({bare(x)})"
    return f"(double){x}" if isinstance(want, Float64Type) else x


def _narrowed(have: Attribute, want: Attribute, x: str) -> str:
    source = "double" if isinstance(have, Float64Type) else "float"
    rounding = "" if source == "double" else "_rn"
    if isinstance(want, Float16Type):
        return f"__{source}2half{rounding}({bare(x)})"
    if isinstance(want, BFloat16Type):
        return f"__{source}2bfloat16{rounding}({bare(x)})"
    return f"(float){x}"


def _bitcast(have: Attribute, want: Attribute) -> str:
    source, target = c_type(have), c_type(want)
    table = {
        ("float", "int"): "__float_as_int",
        ("int", "float"): "__int_as_float",
        ("double", "long long"): "__double_as_longlong",
        ("long long", "double"): "__longlong_as_double",
        ("__half", "short"): "__half_as_short",
        ("short", "__half"): "__short_as_half",
        ("__nv_bfloat16", "short"): "__bfloat16_as_short",
        ("short", "__nv_bfloat16"): "__short_as_bfloat16",
    }
    if (source, target) not in table:
        raise DiagnosticException(f"cuda: cannot read the bits of {source} as {target}")
    return table[source, target]
