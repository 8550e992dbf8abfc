"""Gradients of the elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from plait.dialects import lazy
from plait.dtypes import is_float
from plait.frontend.tensor import Tensor

Gradients = Sequence[Tensor | None]
Rule = Callable[[Tensor, Sequence[Tensor], Tensor], Gradients]
"""From a result, what it was made of and its gradient to the gradients of those."""


def _extremum(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    """The larger (or smaller) operand gets the gradient; equal ones share it."""
    a, b = x
    half = g * 0.5
    tie = a == b
    first = a > b if y.op is lazy.MaxOp else a < b
    second = b > a if y.op is lazy.MaxOp else b < a
    zero = g.full_like(0)
    return tie.where(half, first.where(g, zero)), tie.where(half, second.where(g, zero))


def _pow(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    a, b = x
    zero = g.full_like(0)
    base = (b == 0).where(zero, b * a.binary(lazy.PowOp, b - 1))
    safe = (a > 0).where(a, 1.0)
    exponent = (a > 0).where(y * safe.log(), zero)
    return g * base, g * exponent


def _rem(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    a, b = x
    return g, -g * (a / b).trunc()


def _atan2(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    a, b = x
    scale = g / (a * a + b * b)
    return b * scale, -a * scale


def _cast(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    return (g.cast(x[0].element) if is_float(x[0].element) else None,)


def _select(y: Tensor, x: Sequence[Tensor], g: Tensor) -> Gradients:
    zero = g.full_like(0)
    return None, x[0].where(g, zero), x[0].where(zero, g)


ELEMENTWISE: dict[type[lazy.LazyOp], Rule] = {
    lazy.NegOp: lambda y, x, g: (-g,),
    lazy.AbsOp: lambda y, x, g: (g * x[0].sign(),),
    lazy.ExpOp: lambda y, x, g: (g * y,),
    lazy.Exp2Op: lambda y, x, g: (g * y * math.log(2),),
    lazy.LogOp: lambda y, x, g: (g / x[0],),
    lazy.Log2Op: lambda y, x, g: (g / x[0] * (1 / math.log(2)),),
    lazy.SqrtOp: lambda y, x, g: (g / (y * 2),),
    lazy.RsqrtOp: lambda y, x, g: (g * y * y * y * -0.5,),
    lazy.ReciprocalOp: lambda y, x, g: (-g * y * y,),
    lazy.SinOp: lambda y, x, g: (g * x[0].cos(),),
    lazy.CosOp: lambda y, x, g: (-g * x[0].sin(),),
    lazy.TanOp: lambda y, x, g: (g * (y * y + 1),),
    lazy.TanhOp: lambda y, x, g: (g * (1 - y * y),),
    lazy.ErfOp: lambda y, x, g: (g * (-(x[0] * x[0])).exp() * (2 / math.sqrt(math.pi)),),
    lazy.SigmoidOp: lambda y, x, g: (g * y * (1 - y),),
    lazy.AddOp: lambda y, x, g: (g, g),
    lazy.SubOp: lambda y, x, g: (g, -g),
    lazy.MulOp: lambda y, x, g: (g * x[1], g * x[0]),
    lazy.DivOp: lambda y, x, g: (g / x[1], -g * y / x[1]),
    lazy.RemOp: _rem,
    lazy.PowOp: _pow,
    lazy.Atan2Op: _atan2,
    lazy.MaxOp: _extremum,
    lazy.MinOp: _extremum,
    lazy.SelectOp: _select,
    lazy.CastOp: _cast,
    lazy.MaterializeOp: lambda y, x, g: (g,),
}
"""Rounding and signs are flat almost everywhere and have no rule."""
