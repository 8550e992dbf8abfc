"""``plait.schedule``: tensors to a plan that can be read, reported and run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from plait.errors import PlaitError
from plait.frontend.api import make_public, shown
from plait.frontend.arguments import bound
from plait.frontend.tensor import Tensor
from plait.frontend.trace import build_module
from plait.passes import remarks
from plait.passes.analysis import targets
from plait.runtime import driver


class Asm:
    """The text of a plan at a level: ``lazy fuse nest gpu loops cuda llvm``."""

    def __init__(self, plan: Plan):
        self._plan = plan

    def __getitem__(self, level: str) -> str:
        plan = self._plan
        makers: dict[str, Callable[[], str]] = {
            "lazy": lambda: str(plan.program),
            "fuse": lambda: str(plan.module),
            "nest": lambda: str(driver.lowered(plan.module, "nest", plan.target)),
            "gpu": lambda: str(driver.lowered(plan.module, "gpu", plan.target or "cuda:sm_80")),
            "loops": lambda: str(driver.lowered(plan.module, "loops", plan.target)),
            "cuda": lambda: driver.cuda_text(plan.module, plan.target or "cuda:sm_80"),
            "llvm": lambda: driver.llvm_text(plan.module),
        }
        if level not in makers:
            raise PlaitError(f"unknown level '{level}': expected one of {', '.join(makers)}")
        return makers[level]()


class Plan:
    """A kernel plan of a program, its costs, its code at every level, and its results."""

    def __init__(
        self,
        program: ModuleOp,
        inputs: Sequence[Tensor],
        pipeline: str = "default",
        target: str | None = None,
    ):
        self.program = program
        """The program, level 1."""
        self.inputs = list(inputs)
        """The tensor of each argument, in the order in which the program first uses them."""
        self.target = target
        with remarks.collect() as decisions:
            self.module = driver.planned(program, pipeline, target)
            """The plan, level 2."""
        self.decisions = decisions
        """What the passes did and declined."""
        self._compiled: dict[str, driver.Runnable] = {}

    @cached_property
    def _report(self) -> dict[str, Any]:
        from plait.passes.analysis.counts import report

        return report(self.module, self.target) if self.target else report(self.module)

    def report(self) -> dict[str, Any]:
        """Kernels, bytes and modelled time: the keys of ``plait report --json``."""
        return self._report

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """What each kernel does and costs."""
        return self.report()["detail"]

    def explain(self, *kernels: str) -> list[str]:
        """The decisions about a kernel, why two are not one, or all decisions, a line each."""
        from plait.passes.fusion.why import explained

        return explained(self.module, self.decisions, kernels)

    @property
    def asm(self) -> Asm:
        """The text at each level."""
        return Asm(self)

    def run(
        self, *arrays: Any, backend: str = "cpu", stream: Any = None, **named: Any
    ) -> list[Any]:
        """The outputs, in the order of the tensors that were given to :func:`schedule`.

        ``arrays`` are the data of the inputs without data, in the order of ``inputs``: that in
        which the program first uses them, walking the outputs from the first on and operands from
        the left. With an array for every input, all of them are taken from ``arrays``. Inputs may
        be given by name too: ``plan.run(x=array)`` for ``plait.empty(..., name="x")``, and
        ``input<position>`` for those without one. Arrays must have the shape and dtype of their
        input, bfloat16 as ``uint16`` bit patterns; numbers and lists are converted.

        The ``cuda`` backend takes arrays in device memory as they are, and then leaves the outputs
        there, as ``pycuda.gpuarray.GPUArray``; ``stream`` is the ``pycuda.driver.Stream`` to work
        in.

        Raises :class:`PlaitError` with the name of the input that an array does not fit.
        """
        plan, given = self.compiled(backend), bound(self.inputs, arrays, named)
        if stream is None:
            return plan.run(*given)
        if backend != "cuda":
            raise PlaitError(f"run: backend '{backend}' has no streams: expected backend='cuda'")
        streamed: Any = plan
        return streamed.run(*given, stream=stream)

    def compiled(self, backend: str = "cpu") -> driver.Runnable:
        """The plan made ready for a backend, once."""
        if backend not in self._compiled:
            self._compiled[backend] = driver.compiled(self.module, backend, self.target)
        return self._compiled[backend]


def schedule(*outputs: Tensor, pipeline: str = "default", target: str | None = None) -> Plan:
    """Plans the program that computes ``outputs``."""
    if not outputs:
        raise PlaitError("schedule needs at least one tensor")
    program, inputs = build_module(outputs)
    if target is not None:
        targets.get(target)
    return Plan(program, inputs, pipeline, target)


def outputs_of(made: Any) -> list[Tensor]:
    """What a function returned as a list of tensors; raises :class:`PlaitError` if it is none."""
    several = isinstance(made, list | tuple)
    listed: list[Any] = list(cast(Sequence[Any], made)) if several else [made]
    if not listed or any(not isinstance(each, Tensor) for each in listed):
        raise PlaitError(f"expected a tensor or a sequence of them as result, found {shown(made)}")
    return listed


def compile(
    function: Callable[..., Any], *, pipeline: str = "default", backend: str = "cpu"
) -> Callable[..., Any]:
    """A function of numpy arrays that runs ``function``, written on tensors, as a compiled plan.

    It is planned once for each combination of shapes and dtypes. A single tensor comes back as one
    array, several as a list.
    """
    from plait.frontend.creation import empty

    plans: dict[Any, tuple[Plan, bool]] = {}

    def compiled(*arrays: Any) -> Any:
        taken = [np.asarray(array) for array in arrays]
        key = tuple((array.shape, array.dtype) for array in taken)
        if key not in plans:
            inputs = [empty(array.shape, dtype=array.dtype) for array in taken]
            outputs: Any = function(*inputs)
            single = isinstance(outputs, Tensor)
            listed = outputs_of(outputs)
            program, order = build_module(listed, inputs)
            plans[key] = Plan(program, order, pipeline), single
        plan, single = plans[key]
        results = plan.run(*taken, backend=backend)
        return results[0] if single else results

    return compiled


make_public(globals())
