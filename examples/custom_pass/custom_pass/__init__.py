"""A pass of one's own: activations are stored instead of being fused into what follows."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from plait.dialects import lazy
from plait.passes import remarks


@dataclass(frozen=True)
class CustomStoreActivationsPass(ModulePass):
    """Puts a `lazy.materialize` behind every `lazy.max`, before groups are formed."""

    name = "custom-store-activations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for activation in [inner for inner in op.walk() if isinstance(inner, lazy.MaxOp)]:
            stored = lazy.MaterializeOp(activation.result)
            activation.result.replace_uses_with_if(
                stored.result, lambda use, stored=stored: use.operation is not stored
            )
            block = activation.parent
            assert block is not None
            block.insert_op_after(stored, activation)
            remarks.passed("custom.stored", "an activation is stored")


UNIVERSE = Universe(
    all_passes={CustomStoreActivationsPass.name: lambda: CustomStoreActivationsPass}
)
