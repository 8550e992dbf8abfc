"""Element-wise functions of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.table import lowers, pointwise

FLOAT = "INT_TO_FLOAT"


def _enter(kind: str, functions: dict[str, Callable[[Tensor], Tensor]]) -> None:
    for name, function in functions.items():
        pointwise(name, kind=kind)(function)


def _real(x: Tensor) -> Tensor:
    """No arithmetic on booleans: PyTorch refuses it."""
    if x.dtype == "bool":
        raise UnsupportedError("booleans")
    return x


def _odd(x: Tensor, size: Tensor) -> Tensor:
    """``size`` with the sign of ``x``, also that of 0."""
    return (x == 0).where(x, (x < 0).where(-size, size))


def _sinh(x: Tensor) -> Tensor:
    e = x.abs().expm1()
    half = (x.abs() * 0.5).exp()
    size = (x.abs() > 20).where(half * 0.5 * half, (e + e / (e + 1)) * 0.5)
    return _odd(x, size)


def _cosh(x: Tensor) -> Tensor:
    half = (x.abs() * 0.5).exp()
    return (x.abs() > 20).where(half * 0.5 * half, (x.exp() + (-x).exp()) * 0.5)


def _asinh(x: Tensor) -> Tensor:
    a = x.abs()
    near = (a + a * a / (1 + (1 + a * a).sqrt())).log1p()
    return _odd(x, (a > 1e8).where(a.log() + math.log(2), near))


def _acosh(x: Tensor) -> Tensor:
    t = x - 1
    near = (t + (t * 2 + t * t).sqrt()).log1p()
    return (x < 1).where(math.nan, (x > 1e8).where(x.log() + math.log(2), near))


def _atanh(x: Tensor) -> Tensor:
    a = x.abs()
    return _odd(x, (a * 2 / (1 - a)).log1p() * 0.5)


def _cosine(x: Tensor) -> Tensor:
    """sqrt(1 - x * x), accurate near 1."""
    return ((1 - x) * (1 + x)).sqrt()


_enter(
    FLOAT,
    {
        "acos": lambda x: _cosine(x).atan2(x),
        "acosh": _acosh,
        "asin": lambda x: x.atan2(_cosine(x)),
        "asinh": _asinh,
        "atan": lambda x: x.atan2(1.0),
        "atanh": _atanh,
        "cos": Tensor.cos,
        "cosh": _cosh,
        "deg2rad": lambda x: x * (math.pi / 180),
        "erf": Tensor.erf,
        "exp": Tensor.exp,
        "exp2": Tensor.exp2,
        "expm1": Tensor.expm1,
        "log": Tensor.log,
        "log10": lambda x: x.log() * (1 / math.log(10)),
        "log1p": Tensor.log1p,
        "log2": Tensor.log2,
        "rad2deg": lambda x: x * (180 / math.pi),
        "reciprocal": Tensor.reciprocal,
        "rsqrt": Tensor.rsqrt,
        "sigmoid": Tensor.sigmoid,
        "sin": Tensor.sin,
        "sinh": _sinh,
        "sqrt": Tensor.sqrt,
        "tan": Tensor.tan,
        "tanh": Tensor.tanh,
    },
)
_enter(
    "DEFAULT",
    {
        "abs": lambda x: x if x.dtype == "bool" or x.dtype.startswith("uint") else x.abs(),
        "ceil": Tensor.ceil,
        "floor": Tensor.floor,
        "frac": lambda x: x - x.trunc(),
        "neg": lambda x: -_real(x),
        "positive": _real,
        "round": Tensor.round,
        "square": lambda x: x * x,
        "trunc": Tensor.trunc,
    },
)
_enter(
    "ALWAYS_BOOL",
    {
        "isfinite": Tensor.isfinite,
        "isinf": Tensor.isinf,
        "isnan": Tensor.isnan,
        "isneginf": lambda x: x == -math.inf,
        "isposinf": lambda x: x == math.inf,
        "logical_not": lambda x: x == 0,
        "signbit": lambda x: signbit(x),
    },
)


def signbit(x: Tensor) -> Tensor:
    integer = {"float32": "int32", "float64": "int64"}.get(x.dtype)
    if x.is_floating and integer is None:
        raise UnsupportedError(f"the sign bit of {x.dtype}")
    return (x.bitcast(integer) if integer else x) < 0


@pointwise("sign", "sgn")
def sign(x: Tensor) -> Tensor:
    if x.dtype == "bool":
        return x
    return (x > 0).cast(x.element) - (x < 0).cast(x.element)


@lowers("bitwise_not")
def bitwise_not(x: Tensor) -> Tensor:
    return ~x


_LARGEST = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}


@lowers("nan_to_num")
def nan_to_num(
    x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not x.is_floating:
        return x
    if x.dtype not in _LARGEST:
        raise UnsupportedError(f"the largest number of {x.dtype}")
    top = _LARGEST[x.dtype] if posinf is None else posinf
    bottom = -_LARGEST[x.dtype] if neginf is None else neginf
    finite = (x == math.inf).where(top, (x == -math.inf).where(bottom, x))
    return x.isnan().where(0.0 if nan is None else nan, finite)
