"""The pass ``fuse-sweeps``."""

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
    row_stays_on_chip,
    saves_bytes,
    short_rows,
)


@dataclass(frozen=True)
class FuseSweepsPass(ModulePass):
    """Merges a reduce with what uses its result under the same axes: softmax, norms.

    The kernel walks each row several times, one sweep after the other; it is worth it where a row
    stays on chip between them, so that memory is read once, and where there are enough rows to
    run in parallel.

    Before:
    ```mlir
    %0 = fuse.group "max_0" (%a = %x : tensor<64x8xf32>) -> tensor<64xf32> {
      %m = lazy.reduce max %a axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
      fuse.yield %m : tensor<64xf32>
    }
    %1 = fuse.group "map_1" (%a = %x : tensor<64x8xf32>, %b = %0 : tensor<64xf32>)
        -> tensor<64x8xf32> {
      %c = lazy.reshape %b : tensor<64xf32> -> tensor<64x1xf32>
      %d = lazy.expand %c : tensor<64x1xf32> -> tensor<64x8xf32>
      %e = lazy.sub %a, %d : tensor<64x8xf32>
      fuse.yield %e : tensor<64x8xf32>
    }
    ```
    After:
    ```mlir
    %0 = fuse.group "max_0+1" (%a = %x : tensor<64x8xf32>) -> tensor<64x8xf32> {
      %m = lazy.reduce max %a axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
      %c = lazy.reshape %m : tensor<64xf32> -> tensor<64x1xf32>
      %d = lazy.expand %c : tensor<64x1xf32> -> tensor<64x8xf32>
      %e = lazy.sub %a, %d : tensor<64x8xf32>
      fuse.yield %e : tensor<64x8xf32>
    }
    ```
    Remarks: `fuse.sweeps-merged` (passed); missed: `fuse.row-too-long` and those of
    `fuse-elementwise-reduce` but `fuse.needs-another-sweep`.
    """

    name = "fuse-sweeps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rule = (one_space, aligned, row_stays_on_chip, enough_rows, fits, saves_bytes)
        merge_groups_by_value(op, rule, "fuse.sweeps-merged", (short_rows,))
