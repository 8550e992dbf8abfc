"""The ``lazy`` and ``fuse`` dialects for xDSL's interpreter, on numpy arrays."""

from __future__ import annotations

from typing import Any

from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation

from plait.dialects import fuse, lazy
from plait.dialects.lazy_numpy import Evaluator, Numbers


@register_impls
class FuseFunctions(InterpreterFunctions):
    """A group means what its operations mean."""

    @impl(fuse.GroupOp)
    def run_group(
        self, interpreter: Interpreter, op: fuse.GroupOp, args: tuple[Any, ...]
    ) -> PythonValues:
        return interpreter.run_ssacfg_region(op.body, args, op.label.data if op.label else "")

    @impl(fuse.KeepOp)
    def run_keep(
        self, interpreter: Interpreter, op: fuse.KeepOp, args: tuple[Any, ...]
    ) -> PythonValues:
        return args

    @impl_terminator(fuse.YieldOp)
    def run_yield(self, interpreter: Interpreter, op: fuse.YieldOp, args: tuple[Any, ...]):
        return ReturnedValues(args), ()


class LazyFunctions(InterpreterFunctions):
    """Every operation of ``lazy``."""

    def __init__(self, numbers: Numbers):
        self.evaluator = Evaluator(numbers)


def _run(
    functions: LazyFunctions, interpreter: Interpreter, op: Operation, args: tuple[Any, ...]
) -> PythonValues:
    return (functions.evaluator.value(op, args),)


for _operation in lazy.Lazy.operations:
    setattr(LazyFunctions, f"run_{_operation.name}", impl(_operation)(_run))
register_impls(LazyFunctions)
