"""Neural network functions: :mod:`plait.nn.functional`."""

from plait.nn import functional

__all__ = ["functional"]
