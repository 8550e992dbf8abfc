"""The pass ``fuse-elementwise-reduce``."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from plait.passes.fusion.engine import merge_groups_by_value
from plait.passes.fusion.kernels import (
    aligned,
    enough_rows,
    fits,
    one_space,
    same_sweeps,
    saves_bytes,
)


@dataclass(frozen=True)
class FuseElementwiseReducePass(ModulePass):
    """Merges groups that walk one space, pointwise or reducing, if the plan moves fewer bytes.

    That covers elementwise siblings, a stored value and the reduce that reads it, and further
    work on the rows of a reduce. The merged kernel walks the space no more often than before; what
    needs a reduce and then the full space again is `fuse-sweeps`.

    Before:
    ```mlir
    %0 = fuse.group "sum_0" (%a = %x : tensor<64x8xf32>) -> tensor<64xf32> {
      %s = lazy.reduce sum %a axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
      fuse.yield %s : tensor<64xf32>
    }
    %1 = fuse.group "map_1" (%a = %x : tensor<64x8xf32>) -> tensor<64x8xf32> {
      %e = lazy.exp %a : tensor<64x8xf32>
      fuse.yield %e : tensor<64x8xf32>
    }
    ```
    After:
    ```mlir
    %0, %1 = fuse.group "sum_0+1" (%a = %x : tensor<64x8xf32>)
        -> tensor<64xf32>, tensor<64x8xf32> {
      %s = lazy.reduce sum %a axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
      %e = lazy.exp %a : tensor<64x8xf32>
      fuse.yield %s, %e : tensor<64xf32>, tensor<64x8xf32>
    }
    ```
    Remarks: `fuse.groups-merged` (passed); missed: `fuse.space-differs`, `fuse.points-differ`,
    `fuse.needs-another-sweep`, `fuse.too-few-rows`, `fuse.too-many-buffers`,
    `fuse.too-many-operations`, `fuse.saves-nothing`, `fuse.closes-cycle`.
    """

    name = "fuse-elementwise-reduce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rule = (one_space, aligned, same_sweeps, enough_rows, fits, saves_bytes)
        merge_groups_by_value(op, rule, "fuse.groups-merged")
