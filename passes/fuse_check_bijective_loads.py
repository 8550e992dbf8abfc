"""The pass ``fuse-check-bijective-loads``."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from plait.dialects.fuse import GroupOp
from plait.passes.fusion.footprint import Footprint
from plait.passes.fusion.footprints import Memo, footprint_of_group
from plait.passes.fusion.plan import functions_with_groups


@dataclass(frozen=True)
class FuseCheckBijectiveLoadsPass(ModulePass):
    """Writes on every group how it reads each of its operands.

    The attribute `fuse.loads` has one entry per operand: the ways in which it is read, each
    *phase access*. The phase is `early` (before the reduce, or in a pointwise group) or `late`
    (after it). The access is, from the full iteration space to the elements of the buffer,
    `bijective` (one to one and onto), `injective` (part of the buffer or of the space, each element
    once), `broadcast` (elements are read again) or `irregular` (data says where).

    Before:
    ```mlir
    %0 = fuse.group (%a = %x : tensor<4x8xf32>, %b = %y : tensor<4xf32>) -> tensor<4xf32> {
      %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      %t = lazy.add %s, %b : tensor<4xf32>
      fuse.yield %t : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    %0 = fuse.group (%a = %x : tensor<4x8xf32>, %b = %y : tensor<4xf32>) -> tensor<4xf32>
        attributes {fuse.loads = [["early bijective"], ["late bijective"]]} {
      %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      %t = lazy.add %s, %b : tensor<4xf32>
      fuse.yield %t : tensor<4xf32>
    }
    ```
    """

    name = "fuse-check-bijective-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        memo = Memo()
        for function in functions_with_groups(op):
            for group in function.body.block.ops:
                if isinstance(group, GroupOp):
                    group.attributes["fuse.loads"] = _loads(group, footprint_of_group(group, memo))


def _loads(group: GroupOp, footprint: Footprint) -> ArrayAttr[Attribute]:
    found: list[list[str]] = [[] for _ in group.inputs]
    position = {value: number for number, value in enumerate(group.inputs)}
    for load in footprint.loads:
        entry = f"{'late' if load.late else 'early'} {load.access}"
        ways = found[position[load.buffer]]
        if entry not in ways:
            ways.append(entry)
    return ArrayAttr(ArrayAttr(StringAttr(way) for way in sorted(ways)) for ways in found)
