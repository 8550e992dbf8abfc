"""PyTorch as it is used here: untyped, and imported when this package is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from plait.errors import PlaitError

try:
    torch: Any = import_module("torch")
except ImportError:
    raise PlaitError("PyTorch is missing: install it with `pip install 'plait[torch]'`") from None

aten: Any = torch.ops.aten
prims: Any = import_module("torch._prims_common")
fx: Any = import_module("torch.fx")


class UnsupportedError(Exception):
    """An operator, or what it is given, has no exact counterpart here: PyTorch runs it."""
