"""How much arithmetic operations do, in units of one addition."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xdsl.ir import Operation

from plait.dialects import lazy

_COSTLY = (
    lazy.ExpOp,
    lazy.Exp2Op,
    lazy.LogOp,
    lazy.Log2Op,
    lazy.SinOp,
    lazy.CosOp,
    lazy.TanOp,
    lazy.TanhOp,
    lazy.ErfOp,
    lazy.SigmoidOp,
    lazy.PowOp,
    lazy.Atan2Op,
)
_MIDDLING = (lazy.SqrtOp, lazy.RsqrtOp, lazy.ReciprocalOp, lazy.DivOp, lazy.RemOp)
_FREE = (lazy.CastOp, lazy.BitcastOp)


def work_of(op: Operation) -> int:
    """Instructions per element of the result, roughly."""
    match op:
        case lazy.RngBitsOp():
            return 100
        case lazy.ElementwiseOp():
            if isinstance(op, _FREE):
                return 0
            return 16 if isinstance(op, _COSTLY) else 6 if isinstance(op, _MIDDLING) else 1
        case _:
            return 0


def operations_of(ops: Iterable[Operation]) -> int:
    """Instructions that evaluate every operation once on all its elements."""
    total = 0
    for op in ops:
        if isinstance(op, lazy.ReduceOp | lazy.ArgReduceOp | lazy.ScanOp):
            total += prod(lazy.shape_of(op.operand))
        elif isinstance(op, lazy.ScatterOp):
            total += prod(lazy.shape_of(op.updates))
        else:
            work = work_of(op)
            total += work * prod(lazy.shape_of(op.results[0])) if work else 0
    return total
