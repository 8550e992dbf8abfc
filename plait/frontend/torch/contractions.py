"""Products of matrices."""

from __future__ import annotations

from plait.frontend.elementwise import broadcast_shape
from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.reductions import accumulated
from plait.frontend.torch.table import lowers, representable
from plait.frontend.torch.types import Number


def product(x: Tensor, y: Tensor) -> Tensor:
    """In the type that sums are kept in."""
    if x.dtype == "bool":
        raise UnsupportedError("products of matrices of booleans")
    return accumulated(x).matmul(accumulated(y))


@lowers("mm", "bmm", "mv", "dot", "matmul")
def mm(x: Tensor, y: Tensor) -> Tensor:
    return product(x, y).cast(x.element)


@lowers("addmm", "baddbmm", "addmv")
def addmm(x: Tensor, y: Tensor, z: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    made = product(y, z)
    scaled = made if alpha == 1 else made * representable(alpha, x.dtype)
    if beta:
        start = accumulated(x).expand(broadcast_shape(x.shape, made.shape))
        scaled = scaled + (start if beta == 1 else start * representable(beta, x.dtype))
    return scaled.cast(x.element)


@lowers("outer", "ger", result=True)
def outer(x: Tensor, y: Tensor, *, result: Tensor) -> Tensor:
    return x.cast(result.element).unsqueeze(1) * y.cast(result.element).unsqueeze(0)
