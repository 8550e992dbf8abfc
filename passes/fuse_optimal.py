"""The pass ``fuse-optimal``."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from plait.passes import remarks
from plait.passes.analysis import targets
from plait.passes.fusion.chains import mark_kept
from plait.passes.fusion.optimal import LIMIT_S, Best, Search
from plait.passes.fusion.plan import Plan, functions_with_groups


@dataclass(frozen=True)
class FuseOptimalPass(ModulePass):
    """Merges groups into the plan that moves the fewest bytes, then has the fewest kernels, by an
    exact search over the kernels that the other passes could make: the yardstick for their choices.

    For graphs of up to about 30 groups. When the time is up, the plan is the best that was found,
    and the remark says what no plan can go below.

    Before:
    ```mlir
    %0 = fuse.group "map_0" (%a = %x : tensor<64xf32>) -> tensor<64xf32> {
      %s = lazy.exp %a : tensor<64xf32>
      fuse.yield %s : tensor<64xf32>
    }
    %1 = fuse.group "sum_1" (%b = %0 : tensor<64xf32>) -> tensor<f32> {
      %m = lazy.reduce sum %b axes = [0] : tensor<64xf32> -> tensor<f32>
      fuse.yield %m : tensor<f32>
    }
    ```
    After, if something else reads `%0`, it is stored by the one kernel that also sums it.

    Remarks: `fuse.optimal` (analysis), with the bytes, the bound and whether it is proven.
    """

    name = "fuse-optimal"

    target: str = targets.DEFAULT
    """The machine to model: a name from the target descriptions, such as ``cuda:sm_80``."""

    limit_s: float = LIMIT_S
    """Seconds to search."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_with_groups(op):
            plan = Plan.read(function)
            search = Search(plan, targets.get(self.target), self.limit_s)
            best = search.run()
            proof = "no plan moves less" if best.proven else "not proven"
            remarks.analysis(
                "fuse.optimal",
                f"{len(best.kernels)} kernels, {proof}",
                bytes=best.bytes,
                bound=best.bound,
            )
            _rewrite(plan, search, best)


def _rewrite(plan: Plan, search: Search, best: Best) -> None:
    """Makes the kernels of a plan."""
    for numbers, kept in zip(best.kernels, best.kept, strict=True):
        groups = [plan.groups[number] for number in numbers]
        members = set[Operation](groups)
        for group in groups:
            mark_kept(group, members, kept, search.rules.views)
        for number in numbers[1:]:
            plan.graph.merge(numbers[0], number)
    plan.rewrite()
