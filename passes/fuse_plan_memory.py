"""The pass ``fuse-plan-memory``."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.passes import remarks
from plait.passes.analysis.counts import base_of
from plait.passes.analysis.rows import Rows, core_of, rows_of_group
from plait.passes.analysis.updates import may_update
from plait.passes.fusion.plan import functions_with_groups


@dataclass(frozen=True)
class FusePlanMemoryPass(ModulePass):
    """Writes results that take over a donated argument into its buffer, without a copy.

    The kernel that computes such a result must be the last to read the argument, and must not need
    elsewhere what it overwrites. Elements that stay as they are, around an assigned slice, are then
    neither read nor written.

    Before:
    ```mlir
    func.func @main(%x: tensor<8xf32> {lazy.donated}, %y: tensor<2xf32>)
        -> (tensor<8xf32> {lazy.aliases = 0 : i64}) {
      %0 = fuse.group "copy_0" (%a = %x : tensor<8xf32>, %b = %y : tensor<2xf32>) -> tensor<8xf32> {
        %1 = lazy.slice %a starts = [2] stops = [8] steps = [1] : tensor<8xf32> -> tensor<6xf32>
        %2 = lazy.concat %b, %1 axis = 0 : tensor<2xf32>, tensor<6xf32> -> tensor<8xf32>
        fuse.yield %2 : tensor<8xf32>
      }
      func.return %0 : tensor<8xf32>
    }
    ```
    After, the group has `fuse.updates = array<i64: 0>`: it reads `%y` and writes two elements.

    Remarks: `fuse.updated-in-place` (passed); missed: `fuse.read-later`, `fuse.overwrites-reads`.
    """

    name = "fuse-plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_with_groups(op):
            taken_over = _taken_over(function)
            order = _Order.of(function) if taken_over else None
            for value, argument in taken_over:
                assert order is not None
                _update(order, value, argument)


@dataclass(frozen=True)
class _Order:
    """Where the operations of a function stand, and the buffers it returns."""

    position: dict[Operation, int]
    returned: set[SSAValue]
    _rows: dict[GroupOp, Rows | None] = field(default_factory=dict[GroupOp, Rows | None])

    @staticmethod
    def of(function: FuncOp) -> _Order:
        terminator = function.body.block.last_op
        assert isinstance(terminator, ReturnOp)
        position = {op: number for number, op in enumerate(function.body.block.ops)}
        return _Order(position, {base_of(value) for value in terminator.arguments})

    def rows(self, group: GroupOp) -> Rows | None:
        """The rows of a group that keeps values."""
        if group not in self._rows:
            self._rows[group] = rows_of_group(group, map(core_of, group.yield_op.arguments))
        return self._rows[group]

    def reads_later(self, group: GroupOp, argument: BlockArgument) -> str | None:
        """What reads an argument after a group, or returns it."""
        if argument in self.returned:
            return "the caller"
        own = self.position[group]
        readers = {use.operation for use in argument.uses}
        later = [op for op in readers if self.position[op] > own]
        if not later:
            return None
        op = min(later, key=self.position.__getitem__)
        return op.label.data if isinstance(op, GroupOp) and op.label else op.name


def _taken_over(function: FuncOp) -> list[tuple[SSAValue, BlockArgument]]:
    """The results that alias an argument, as groups yield them, with the argument."""
    terminator = function.body.block.last_op
    assert isinstance(terminator, ReturnOp)
    entries = function.res_attrs.data if function.res_attrs is not None else ()
    found = list[tuple[SSAValue, BlockArgument]]()
    for value, entry in zip(terminator.arguments, entries, strict=False):
        alias = entry.data.get("lazy.aliases")
        if isinstance(alias, IntegerAttr):
            while isinstance(value.owner, lazy.ReshapeOp):
                value = value.owner.operand
            found.append((value, function.body.block.args[alias.value.data]))
    return found


def _update(order: _Order, value: SSAValue, argument: BlockArgument) -> None:
    group = value.owner
    if not isinstance(group, GroupOp) or argument not in group.inputs:
        return
    assert isinstance(value, OpResult)
    number, label = group.inputs.index(argument), group.label.data if group.label else "group"
    later = order.reads_later(group, argument)
    if later is not None:
        remarks.missed(
            "fuse.read-later",
            f"'{label}' writes a copy: what it would overwrite is read afterwards",
            kernel=label,
            reader=later,
        )
        return
    results = list(group.yield_op.arguments)
    alone = results.count(results[value.index]) == 1 and group.inputs.count(argument) == 1
    if not alone or not may_update(
        results, value.index, group.block.args[number], order.rows(group)
    ):
        remarks.missed(
            "fuse.overwrites-reads",
            f"'{label}' writes a copy: it needs what it would overwrite for other elements",
            kernel=label,
        )
        return
    group.set_updates({**group.updates, value.index: number})
    remarks.passed(
        "fuse.updated-in-place", f"'{label}' writes over its input", kernel=label, input=number
    )
