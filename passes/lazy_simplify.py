"""The pass ``lazy-simplify``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.passes import ModulePass

from plait.dialects import lazy
from plait.dialects.lazy_fold import folded_constant
from plait.passes import remarks
from plait.passes.analysis.blocks import only_block
from plait.passes.simplify.builder import Builder, key_of
from plait.passes.simplify.centred import vanish_centred_sum
from plait.passes.simplify.counting import count_mask
from plait.passes.simplify.identities import simplify_elementwise
from plait.passes.simplify.narrowing import narrow
from plait.passes.simplify.reduces import simplify_reduce
from plait.passes.simplify.scattering import select_update
from plait.passes.simplify.selecting import select_one
from plait.passes.simplify.views import simplify_view

Rule = Callable[[Operation, Builder], SSAValue | None]

RULES: tuple[tuple[str, Rule], ...] = (
    ("identity", simplify_elementwise),
    ("view", simplify_view),
    ("narrow", narrow),
    ("centred-sum", vanish_centred_sum),
    ("reduce", simplify_reduce),
    ("mask-count", count_mask),
    ("select-one", select_one),
    ("select-update", select_update),
)
"""Tried in order on every operation whose operands are simplified already."""

_REMARKS = {
    "centred-sum": "the sum of a centred value is zero",
    "select-one": "the sum over a one-hot selection is a gather",
    "select-update": "the scatter of one update a line is a selection",
    "mask-count": "the sum over a mask is a closed form of the indices",
}

_MAX_REWRITES = 64
"""Rewrites in a row that start from one operation."""


@dataclass(frozen=True)
class LazySimplifyPass(ModulePass):
    """Brings a tensor program into a canonical form, in one walk.

    Equal operations become one; neutral operands vanish; a sum of copies is a product; reduces of
    one kind in a row are one; ``sum(x - mean(x))`` is zero; a sum over a mask made of views of one
    value (`arange`) is a closed form; a sum over a one-hot selection is a gather, a scatter of one
    update a line into copies of one value such a selection; what nothing uses goes. The walk is
    linear: every operation is looked up once in a table of all the others.

    Before:
    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
      %0 = lazy.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
      %1 = lazy.expand %0 : tensor<4x1xf32> -> tensor<4x8xf32>
      %2 = lazy.reduce sum %1 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      %3 = lazy.reduce sum %2 axes = [0] : tensor<4xf32> -> tensor<f32>
      func.return %3 : tensor<f32>
    }
    ```
    After:
    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
      %0 = lazy.constant dense<8.000000e+00> : tensor<4xf32>
      %1 = lazy.mul %x, %0 : tensor<4xf32>
      %2 = lazy.reduce sum %1 axes = [0] : tensor<4xf32> -> tensor<f32>
      func.return %2 : tensor<f32>
    }
    ```
    Remarks: `lazy.simplified` (passed), for vanishing sums and closed forms.
    """

    name = "lazy-simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                simplify(function)


def simplify(function: FuncOp) -> None:
    """Simplifies one function of one block."""
    block = only_block(function)
    build = Builder(block)
    for op in list(block.ops):
        if isinstance(op, lazy.LazyOp):
            _visit(op, build)
    _erase_dead(function)
    _settle_constants(function)


def _settle_constants(function: FuncOp) -> None:
    """Computes results that are made of small constants alone. Other masks are left to be computed
    where they are needed: as a constant they would be read from memory."""
    block = only_block(function)
    varying = set[Operation]()
    for op in block.ops:
        owners = [value.owner for value in op.operands]
        known = all(isinstance(owner, lazy.LazyOp) and owner not in varying for owner in owners)
        if not known or isinstance(op, lazy.RngBitsOp):
            varying.add(op)
    pending = [value.owner for value in block.last_op.operands] if block.last_op else []
    settled = set[Operation]()
    while pending:
        op = pending.pop()
        if isinstance(op, lazy.LazyOp) and op not in varying and op not in settled:
            settled.add(op)
            pending.extend(operand.owner for operand in op.operands)
    for op in list(block.ops):
        constant = isinstance(op, lazy.LazyOp) and op in settled
        value = folded_constant(op, masks=True) if constant else None
        if value is not None:
            made = lazy.ConstantOp(value)
            block.insert_op_before(made, op)
            op.results[0].replace_all_uses_with(made.result)
    _erase_dead(function)


def _visit(op: Operation, build: Builder) -> None:
    """Simplifies one operation, then what that inserted, until nothing changes."""
    pending = [op]
    rewrites = 0
    while pending:
        current = pending.pop()
        value = _known(current, build)
        if value is None and rewrites < _MAX_REWRITES:
            build.point, build.fresh, build.waiting = current, [], set(pending)
            value = _apply_rules(current, build)
            if value is not None:
                rewrites += 1
                pending.extend(reversed(build.fresh))
        if value is None:
            build.known[key_of(current)] = current
            continue
        if value is not current.results[0]:
            key = key_of(current)
            if build.known.get(key) is current:
                del build.known[key]
            current.results[0].replace_all_uses_with(value)
            current.detach()
            current.erase()


def _known(op: Operation, build: Builder) -> SSAValue | None:
    """The value of an equal operation before this one."""
    found = build.known.get(key_of(op))
    return None if found is None or found is op else found.results[0]


def _apply_rules(op: Operation, build: Builder) -> SSAValue | None:
    folded = _fold(op, build)
    if folded is not None:
        return folded
    for name, rule in RULES:
        value = rule(op, build)
        if value is not None:
            if name in _REMARKS:
                remarks.passed("lazy.simplified", _REMARKS[name], rule=name)
            return value
    return None


def _fold(op: Operation, build: Builder) -> SSAValue | None:
    """The operation's own folder."""
    if not isinstance(op, lazy.LazyOp) or isinstance(op, lazy.ConstantOp):
        return None
    folded = op.fold()
    if not folded:
        return None
    (result,) = folded
    if isinstance(result, SSAValue):
        return result
    return _constant(result, op.results[0].type, build)


def _constant(value: Attribute, type: Attribute, build: Builder) -> SSAValue | None:
    assert isinstance(type, TypeAttribute)
    made = lazy.LazyConstantMaterialization().materialize_constant(value, type)
    return None if made is None else build.add(made)


def _erase_dead(function: FuncOp) -> None:
    for op in reversed(list(only_block(function).ops)):
        if isinstance(op, lazy.LazyOp) and not any(result.uses for result in op.results):
            op.detach()
            op.erase()
