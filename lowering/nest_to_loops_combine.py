"""What each reduction kind starts from and how it combines two values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from plait.lowering.llvm_types import is_float

Add = Callable[[Operation], SSAValue]

_SUM_FLAGS = arith.FastMathFlagsAttr([FastMathFlag.REASSOC, FastMathFlag.ALLOW_CONTRACT])

_FLOAT: dict[str, type[Operation]] = {
    "prod": arith.MulfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
_INTEGER: dict[str, type[Operation]] = {
    "sum": arith.AddiOp,
    "prod": arith.MuliOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
    "umax": arith.MaxUIOp,
    "umin": arith.MinUIOp,
    "any": arith.OrIOp,
    "all": arith.AndIOp,
}
_BOOLEAN: dict[str, type[Operation]] = {
    "sum": arith.OrIOp,
    "max": arith.OrIOp,
    "umax": arith.OrIOp,
    "any": arith.OrIOp,
    "prod": arith.AndIOp,
    "min": arith.AndIOp,
    "umin": arith.AndIOp,
    "all": arith.AndIOp,
}


def _width(type: Attribute) -> int:
    if isinstance(type, IndexType):
        return 64
    assert isa(type, IntegerType)
    return type.width.data


def start_value(kind: str, type: Attribute) -> float | int:
    """The value of a reduction over nothing."""
    if kind == "argindex":
        return (1 << (_width(type) - 1)) - 1
    if kind in ("argmax", "argmin", "uargmax", "uargmin"):
        kind = kind.replace("arg", "")
    if is_float(type):
        return {"sum": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}[kind]
    width = _width(type)
    if width == 1:
        return 1 if _BOOLEAN[kind] is arith.AndIOp else 0
    high = (1 << (width - 1)) - 1
    starts = {"sum": 0, "prod": 1, "max": -high - 1, "min": high, "umax": 0, "umin": -1}
    return starts.get(kind, 0 if kind == "any" else -1)


def combine(
    add: Add, kind: str, old: Sequence[SSAValue], new: Sequence[SSAValue]
) -> list[SSAValue]:
    """The combination of a running result and one more element."""
    if "arg" in kind:
        return _combine_arg(add, kind, old, new)
    type = new[0].type
    if is_float(type):
        if kind == "sum":
            _allow_contraction(new[0])
            return [add(arith.AddfOp(old[0], new[0], flags=_SUM_FLAGS))]
        return [add(_FLOAT[kind](old[0], new[0]))]  # pyright: ignore[reportCallIssue]
    table = _BOOLEAN if _width(type) == 1 else _INTEGER
    return [add(table[kind](old[0], new[0]))]  # pyright: ignore[reportCallIssue]


def _allow_contraction(value: SSAValue) -> None:
    """A product that is only summed may be fused into the addition."""
    owner = value.owner
    if isinstance(owner, arith.MulfOp) and not owner.result.uses:
        owner.properties["fastmath"] = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])


def _combine_arg(
    add: Add, kind: str, old: Sequence[SSAValue], new: Sequence[SSAValue]
) -> list[SSAValue]:
    """The first of the extreme values; NaN counts as the extreme."""
    best, where = old
    value, index = new
    largest = kind.endswith("max")
    earlier = add(arith.CmpiOp(index, where, "slt"))
    if is_float(value.type):
        better = add(arith.CmpfOp(value, best, "ogt" if largest else "olt"))
        same = add(arith.CmpfOp(value, best, "oeq"))
        nan = add(arith.CmpfOp(value, value, "uno"))
        number = add(arith.CmpfOp(best, best, "ord"))
        better = add(arith.OrIOp(better, add(arith.AndIOp(nan, number))))
    else:
        sign = "u" if kind.startswith("u") or _width(value.type) == 1 else "s"
        better = add(arith.CmpiOp(value, best, sign + ("gt" if largest else "lt")))
        same = add(arith.CmpiOp(value, best, "eq"))
    take = add(arith.OrIOp(better, add(arith.AndIOp(same, earlier))))
    return [
        add(arith.SelectOp(take, value, best)),
        add(arith.SelectOp(take, index, where)),
    ]
