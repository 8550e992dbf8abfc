"""The target ``cuda``: CUDA C text of the kernels of a level 4 module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects import func, gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.target import Target

from plait.lowering.cuda_function import FunctionPrinter

EXTREMA = """\
// NaN wins, as in numpy: fmaxf and fminf would drop it.
template <typename T> static __device__ __forceinline__ T plait_max(T a, T b)
{
  return a > b || a != a ? a : b;
}
template <typename T> static __device__ __forceinline__ T plait_min(T a, T b)
{
  return a < b || a != a ? a : b;
}
"""
VECTOR = """\
// Elements that one access moves.
template <typename T, int N> struct __align__(sizeof(T) * N) plait_vector {
  T at[N];
};
"""
HELPERS = {"plait_m": EXTREMA, "plait_vector": VECTOR}
"""What names with a beginning need."""
_HEADERS = {"half": "cuda_fp16.h", "bfloat16": "cuda_bf16.h"}
"""The header that names with a word in them come from."""


@dataclass(frozen=True)
class CudaTarget(Target):
    """Prints every ``gpu.func`` of a module as a ``__global__`` function.

    The text depends on the module alone: the same program gives the same text.
    """

    name = "cuda"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(print_module(module))


def functions_of(module: ModuleOp) -> list[gpu.FuncOp]:
    """The kernels of a level 4 module; raises a diagnostic if it is not one."""
    found = [
        op
        for inner in module.ops
        if isinstance(inner, gpu.ModuleOp)
        for op in inner.body.block.ops
        if isinstance(op, gpu.FuncOp)
    ]
    earlier = ("nest.", "fuse.", "lazy.")
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    inside = [op for function in functions for op in function.body.block.ops]
    if not found and any(op.name.startswith(earlier) for op in (*module.ops, *inside)):
        raise DiagnosticException(
            "cuda: expected gpu functions, found kernels of an earlier level: run "
            "convert-fuse-to-nest, nest-schedule and convert-nest-to-gpu first"
        )
    return found


def print_module(module: ModuleOp) -> str:
    """The CUDA C of a module."""
    texts = [FunctionPrinter(function).print() for function in functions_of(module)]
    includes = "".join(
        f"#include <{header}>\n"
        for word, header in _HEADERS.items()
        if any(word in text for text in texts)
    )
    helpers = [helper for word, helper in HELPERS.items() if any(word in text for text in texts)]
    return "\n".join(part for part in (includes, *helpers, *texts) if part)
