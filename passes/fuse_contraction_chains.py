"""The pass ``fuse-contraction-chains``."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from plait.passes.analysis import targets
from plait.passes.fusion.chain_rules import ChainRules
from plait.passes.fusion.chains import ChainFinder
from plait.passes.fusion.objective import objective
from plait.passes.fusion.plan import functions_with_groups


@dataclass(frozen=True)
class FuseContractionChainsPass(ModulePass):
    """Merges a reduce with what consumes its result in other places than where it is made (two
    matrix products in a row, attention, a reduce of a reduce) or with one that reads the same large
    buffer in other places (both gradients of a product and the update of its weight).

    If every element is needed once, it is computed where it is needed. If not, the kernel runs over
    the axes that both have in common, its rows, and `fuse.keep` says what it keeps of a row on
    chip: scores and probabilities of attention, a column of a weight. It must fit there, and what
    all rows read again must stay in cache. A product loses speed inside of another kernel; it stays
    apart where that is more than the launch and the bytes it saves.

    Before:
    ```mlir
    %0 = fuse.group "sum_0" (%a = %x : tensor<64x16x8xf32>) -> tensor<64x16xf32> {
      %s = lazy.reduce sum %a axes = [2] : tensor<64x16x8xf32> -> tensor<64x16xf32>
      fuse.yield %s : tensor<64x16xf32>
    }
    %1 = fuse.group "max_1" (%b = %0 : tensor<64x16xf32>) -> tensor<64xf32> {
      %m = lazy.reduce max %b axes = [1] : tensor<64x16xf32> -> tensor<64xf32>
      fuse.yield %m : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %0 = fuse.group "sum_0+1" (%a = %x : tensor<64x16x8xf32>) -> tensor<64xf32> {
      %s = lazy.reduce sum %a axes = [2] : tensor<64x16x8xf32> -> tensor<64x16xf32>
      %m = lazy.reduce max %s axes = [1] : tensor<64x16xf32> -> tensor<64xf32>
      fuse.yield %m : tensor<64xf32>
    }
    ```
    Remarks: `fuse.chain-merged` (passed); missed: `fuse.no-rows`, `fuse.row-too-long`,
    `fuse.reduce-repeated`, `fuse.operand-too-large`, `fuse.product-slower`, `fuse.too-few-rows`,
    `fuse.runs-in-order`, `fuse.too-many-buffers`, `fuse.too-many-operations`, `fuse.closes-cycle`.
    """

    name = "fuse-contraction-chains"

    target: str = targets.DEFAULT
    """The machine to model: a name from the target descriptions, such as ``cuda:sm_80``."""

    objective: str = "time"
    """What decides: modelled ``time``, or ``bytes`` alone."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_with_groups(op):
            rules = ChainRules(targets.get(self.target), objective(self.objective))
            ChainFinder.of(function, rules).run()
