"""The pass ``fuse-horizontal``."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from plait.passes.analysis import targets
from plait.passes.fusion.horizontal import merge_small_kernels
from plait.passes.fusion.plan import functions_with_groups


@dataclass(frozen=True)
class FuseHorizontalPass(ModulePass):
    """Puts small pointwise kernels that do not depend on each other side by side in one launch:
    the steps of an optimiser over many parameters.

    It saves no bytes but launches, so it is for kernels that are mostly launch. The kernel runs
    over the largest of the results; a thread past the end of a smaller one skips it.

    Before:
    ```mlir
    %0 = fuse.group "map_0" (%a = %x : tensor<20xf32>) -> tensor<20xf32> {
      %e = lazy.exp %a : tensor<20xf32>
      fuse.yield %e : tensor<20xf32>
    }
    %1 = fuse.group "map_1" (%a = %y : tensor<7xf32>) -> tensor<7xf32> {
      %t = lazy.tanh %a : tensor<7xf32>
      fuse.yield %t : tensor<7xf32>
    }
    ```
    After:
    ```mlir
    %0, %1 = fuse.group "map_0+1" (%a = %x : tensor<20xf32>, %b = %y : tensor<7xf32>)
        -> tensor<20xf32>, tensor<7xf32> {
      %e = lazy.exp %a : tensor<20xf32>
      %t = lazy.tanh %b : tensor<7xf32>
      fuse.yield %e, %t : tensor<20xf32>, tensor<7xf32>
    }
    ```
    Remarks: `fuse.side-by-side` (passed); missed: `fuse.depends`, `fuse.closes-cycle`,
    `fuse.sizes-differ`, `fuse.too-many-buffers`, `fuse.too-many-operations`.
    """

    name = "fuse-horizontal"

    target: str = targets.DEFAULT
    """The machine to model: a name from the target descriptions, such as ``cuda:sm_80``."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_with_groups(op):
            merge_small_kernels(function, targets.get(self.target))
