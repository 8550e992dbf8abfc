"""Activation functions, and element-wise functions with parameters."""

from __future__ import annotations

from typing import Any

from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.pointwise_binary import number
from plait.frontend.torch.table import common, lowers, pointwise
from plait.frontend.torch.types import Number

pointwise("silu")(Tensor.silu)
pointwise("mish")(Tensor.mish)
pointwise("hardswish")(Tensor.hardswish)
pointwise("hardsigmoid")(Tensor.hardsigmoid)


@pointwise("relu")
def relu(x: Tensor) -> Tensor:
    if x.dtype == "bool":
        raise UnsupportedError("booleans")
    return x.maximum(0)


@pointwise("gelu")
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


@lowers("elu")
def elu(x: Tensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Tensor:
    (value,), result = common([x], "DEFAULT")
    negative = (value * input_scale).expm1() * number(alpha)
    return ((value > 0).where(value, negative) * number(scale)).cast(result)


@lowers("leaky_relu")
def leaky_relu(x: Tensor, negative_slope: Number = 0.01) -> Tensor:
    (value,), result = common([x], "DEFAULT")
    return (value > 0).where(value, value * number(negative_slope)).cast(result)


@lowers("hardtanh")
def hardtanh(x: Tensor, min_val: Number = -1, max_val: Number = 1) -> Tensor:
    (value,), result = common([x], "DEFAULT")
    if not value.is_floating:
        raise UnsupportedError("limits of integers")
    return value.clamp(number(min_val), number(max_val)).cast(result)


@lowers("softplus")
def softplus(x: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor:
    (value,), result = common([x], "DEFAULT")
    scaled = value * number(beta)
    curved = scaled.exp().log1p() / beta
    return (scaled > number(threshold)).where(value, curved).cast(result)


@lowers("threshold")
def threshold(x: Tensor, threshold: Number, value: Number) -> Tensor:
    return (x <= threshold).where(x.full_like(number(value)), x)


@lowers("threshold_backward")
def threshold_backward(g: Tensor, x: Tensor, threshold: Number) -> Tensor:
    (gradient, value), result = common([g, x], "DEFAULT")
    return (value <= threshold).where(gradient.full_like(0), gradient).cast(result)


@lowers("lerp.Scalar", "lerp.Tensor")
def lerp(x: Tensor, end: Tensor, weight: Any) -> Tensor:
    (a, b, w), result = common([x, end, weight], "DEFAULT")
    return (w.abs() < 0.5).where(a + w * (b - a), b - (b - a) * (1 - w)).cast(result)


def _scaled(parts: list[Tensor], value: Any) -> tuple[list[Tensor], str]:
    made, result = common(parts, "DEFAULT")
    if made[0].dtype == "bool" or isinstance(value, Tensor):
        raise UnsupportedError("booleans")
    return made, result


@lowers("addcmul")
def addcmul(x: Tensor, first: Tensor, second: Tensor, value: Number = 1) -> Tensor:
    (a, b, c), result = _scaled([x, first, second], value)
    return (a + (b * c if value == 1 else b * value * c)).cast(result)


@lowers("addcdiv")
def addcdiv(x: Tensor, first: Tensor, second: Tensor, value: Number = 1) -> Tensor:
    (a, b, c), result = _scaled([x, first, second], value)
    if not a.is_floating:
        raise UnsupportedError("division of integers")
    return (a + (b if value == 1 else b * value) / c).cast(result)


@lowers("_to_copy", "_to_copy.default")
def to_copy(x: Tensor, dtype: Any = None, **options: Any) -> Tensor:
    from plait.frontend.torch.types import dtype_name

    device = options.get("device")
    if device is not None and device.type != "cpu":
        raise UnsupportedError(f"device {device}")
    if dtype is None:
        return x
    name = dtype_name(dtype)
    if x.is_floating and name in ("int8", "uint8", "int16"):
        x = x.cast("int32")  # what does not fit wraps, as on the machines PyTorch runs on
    return x.cast(name)
