"""``plait.Tensor``: the methods of all layers, and what needs the rest of plait."""

from __future__ import annotations

from typing import Any, Self

from plait.dtypes import Array
from plait.frontend.indexing import Indexing


class Tensor(Indexing):
    """A lazy tensor: methods build the program, nothing is computed until it is asked for.

    Methods are named as in PyTorch and tinygrad; element types by PyTorch's names. Made by
    :func:`plait.empty` (an input), :func:`plait.tensor` (data), :func:`plait.zeros`, ...
    """

    __slots__ = ()

    def __repr__(self) -> str:
        what = "input" if self.op is None else self.op.name
        return f"<Tensor {self.dtype} {self.shape} {what}>"

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """Convolution, see :func:`plait.nn.functional.conv2d`."""
        from plait.nn.functional import conv2d

        return conv2d(self, weight, bias, stride, padding, dilation, groups)

    def numpy(self) -> Array:
        """Computes this tensor; its inputs must have data."""
        from plait.frontend.schedule import schedule

        return schedule(self).run()[0]
