"""``plait.Tensor``: the methods of all layers, and what needs the rest of plait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from plait.dtypes import Array
from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.indexing import Indexing


class Tensor(Indexing):
    """A lazy tensor: methods build the program, nothing is computed until it is asked for.

    Methods are named as in PyTorch and tinygrad; element types by PyTorch's names. ``dim`` may be
    written for ``axis``, and numpy arrays be mixed in as data. Made by :func:`plait.empty` (an
    input), :func:`plait.tensor` (data), :func:`plait.zeros`, ...

    Wrong arguments raise :class:`PlaitError` with one line that says what was expected and found.
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

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[position] for position in range(len(self))])

    def item(self) -> Any:
        """Computes this tensor of one element, as a number of Python."""
        if self.size != 1:
            raise PlaitError(f"item takes a tensor of one element, found shape {self.shape}")
        return self.numpy().reshape(()).item()

    def tolist(self) -> Any:
        """Computes this tensor, as nested lists."""
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        computed = self.numpy()
        return computed if dtype is None else computed.astype(dtype)


for _layer in Tensor.__mro__[:-1]:
    make_public(_layer)
