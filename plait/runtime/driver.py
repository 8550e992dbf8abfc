"""Takes a tensor program through the levels: plan it, lower it, run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import parse_pipeline

from plait import collector
from plait.dtypes import Array
from plait.errors import PlaitError
from plait.passes import remarks
from plait.passes.pipelines import PIPELINES

BACKENDS = ("numpy", "cpu", "cuda-sim", "cuda")
LEVELS: dict[str, tuple[str, ...]] = {
    "nest": ("convert-fuse-to-nest",),
    "loops": ("convert-fuse-to-nest", "convert-nest-to-loops"),
    "gpu": ("convert-fuse-to-nest", "nest-schedule", "convert-nest-to-gpu"),
}
"""The passes from a plan to each later level."""


class Runnable(Protocol):
    """A compiled plan."""

    def run(self, *arrays: Array) -> list[Array]: ...


def apply(module: ModuleOp, passes: Sequence[str], target: str | None = None) -> None:
    """Runs passes in place, each a name or a name with options such as
    ``fuse-optimal{limit-s=2}``; ``target`` goes to those that take one. The result is verified."""
    from plait.lowering import get_all_passes as lowerings
    from plait.passes import get_all_passes

    available: dict[str, Any] = {**get_all_passes(), **lowerings()}
    context = Context(allow_unregistered=True)
    with collector.paused():
        for spec in parse_pipeline(",".join(passes)):
            made: Any = available[spec.name]().from_pass_spec(spec)
            if target is not None and "target" in made.__dataclass_fields__:
                made = replace(made, target=target)
            remarks.enter(spec.name)
            try:
                made.apply(context, module)
            finally:
                remarks.enter("")
        module.verify()


def pipeline_passes(name: str) -> tuple[str, ...]:
    """The passes of a named pipeline; raises :class:`PlaitError` for an unknown one."""
    if name not in PIPELINES:
        raise PlaitError(f"unknown pipeline '{name}': expected one of {', '.join(PIPELINES)}")
    return PIPELINES[name]


def planned(program: ModuleOp, pipeline: str, target: str | None = None) -> ModuleOp:
    """The plan that a pipeline makes of a tensor program, which stays as it is."""
    passes = pipeline_passes(pipeline)
    module = program.clone()
    apply(module, passes, target)
    return module


def lowered(plan: ModuleOp, level: str, target: str | None = None) -> ModuleOp:
    """A plan at a later level: ``nest``, ``loops`` or ``gpu``."""
    module = plan.clone()
    apply(module, LEVELS[level], target)
    return module


def cuda_text(plan: ModuleOp, target: str = "cuda:sm_80") -> str:
    """The CUDA C of a plan's kernels."""
    from io import StringIO

    from plait.lowering.target_cuda import CudaTarget

    out = StringIO()
    CudaTarget().emit(Context(), lowered(plan, "gpu", target), out)
    return out.getvalue()


def llvm_text(plan: ModuleOp) -> str:
    """The LLVM IR of a plan's kernels."""
    from io import StringIO

    from plait.lowering.target_llvm import LLVMTarget

    out = StringIO()
    LLVMTarget().emit(Context(), lowered(plan, "loops"), out)
    return out.getvalue()


class Interpreted:
    """A plan on the ``numpy`` backend."""

    def __init__(self, plan: ModuleOp):
        self.plan = plan

    def run(self, *arrays: Array) -> list[Array]:
        from plait.runtime.interpret import run_module

        return run_module(self.plan, arrays)


def compiled(plan: ModuleOp, backend: str, target: str | None = None) -> Runnable:
    """A plan made ready to run on a backend.

    Raises :class:`PlaitError` for an unknown backend, or one whose driver, device or compiler is
    missing.
    """
    match backend:
        case "numpy":
            return Interpreted(plan)
        case "cpu":
            from plait.runtime.cpu import CompiledPlan

            return CompiledPlan(lowered(plan, "loops", target))
        case "cuda-sim":
            from plait.runtime.cuda_sim import CompiledPlan as SimulatedPlan

            return SimulatedPlan(lowered(plan, "gpu", target or "cuda:sm_80"))
        case "cuda":
            from plait.runtime.cuda import CompiledPlan as CudaPlan

            return CudaPlan(lowered(plan, "gpu", target or "cuda"))
        case _:
            raise PlaitError(f"unknown backend '{backend}': expected one of {', '.join(BACKENDS)}")
