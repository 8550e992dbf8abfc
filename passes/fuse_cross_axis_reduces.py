"""The pass ``fuse-cross-axis-reduces``."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from plait.passes.analysis import targets
from plait.passes.fusion.objective import objective
from plait.passes.fusion.plan import functions_with_groups
from plait.passes.fusion.siblings import SiblingFinder


@dataclass(frozen=True)
class FuseCrossAxisReducesPass(ModulePass):
    """Merges reduces of the same data that keep different axes: the gradients of a weight and of
    its bias, sums along rows and along columns.

    The kernel runs over the largest result; the points of a smaller one compute it as well. What
    both read must stay in cache meanwhile, and the reduces of the smaller result must not be
    longer, since fewer threads share them. A product loses speed beside another reduce; it stays
    apart where that is more than what is saved.

    Before:
    ```mlir
    %0 = fuse.group "sum_0" (%a = %x : tensor<16x64x8xf32>) -> tensor<64x8xf32> {
      %s = lazy.reduce sum %a axes = [0] : tensor<16x64x8xf32> -> tensor<64x8xf32>
      fuse.yield %s : tensor<64x8xf32>
    }
    %1 = fuse.group "max_1" (%b = %x : tensor<16x64x8xf32>) -> tensor<16x64xf32> {
      %m = lazy.reduce max %b axes = [2] : tensor<16x64x8xf32> -> tensor<16x64xf32>
      fuse.yield %m : tensor<16x64xf32>
    }
    ```
    After:
    ```mlir
    %0, %1 = fuse.group "sum_0+1" (%a = %x : tensor<16x64x8xf32>)
        -> tensor<64x8xf32>, tensor<16x64xf32> {
      %s = lazy.reduce sum %a axes = [0] : tensor<16x64x8xf32> -> tensor<64x8xf32>
      %m = lazy.reduce max %a axes = [2] : tensor<16x64x8xf32> -> tensor<16x64xf32>
      fuse.yield %s, %m : tensor<64x8xf32>, tensor<16x64xf32>
    }
    ```
    Remarks: `fuse.siblings-merged` (passed); missed: `fuse.longer-reduce`, `fuse.data-too-large`,
    `fuse.product-slower`, `fuse.runs-in-order`, `fuse.depends`, `fuse.closes-cycle`,
    `fuse.too-many-buffers`, `fuse.too-many-operations`.
    """

    name = "fuse-cross-axis-reduces"

    target: str = targets.DEFAULT
    """The machine to model: a name from the target descriptions, such as ``cuda:sm_80``."""

    objective: str = "time"
    """What decides: modelled ``time``, or ``bytes`` alone."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_with_groups(op):
            decides = objective(self.objective)
            SiblingFinder.of(function, targets.get(self.target), decides).run()
