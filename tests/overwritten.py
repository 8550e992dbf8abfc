"""A check of plans, independent of the pass: nothing reads a buffer that was written over."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from plait.dialects.fuse import GroupOp
from plait.passes.analysis.counts import base_of


def overwritten_reads(module: ModuleOp) -> list[str]:
    """The groups that read, or the results that show, a buffer after it was written over."""
    found: list[str] = []
    for function in module.ops:
        assert isinstance(function, FuncOp)
        gone: set[SSAValue] = set()
        for op in function.body.block.ops:
            if isinstance(op, GroupOp):
                found += [str(op.label) for value in op.inputs if value in gone]
                gone.update(op.inputs[number] for number in op.updates.values())
            elif isinstance(op, ReturnOp):
                found += [f"result {k}" for k, v in enumerate(op.arguments) if base_of(v) in gone]
    return found
