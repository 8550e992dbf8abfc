"""PyTorch programs as plait's: graphs of ``aten`` operators, and a backend of ``torch.compile``."""

from plait.frontend.torch.backend import plait_backend
from plait.frontend.torch.coverage import Coverage, coverage
from plait.frontend.torch.export import program, to_mlir

__all__ = ["Coverage", "coverage", "plait_backend", "program", "to_mlir"]
