"""plait as a plugin of xDSL: its dialects, passes and targets in every tool built on xDSL."""

from xdsl.universe import Universe

from plait.dialects import get_all_dialects
from plait.lowering import get_all_passes as get_all_lowerings
from plait.lowering import get_all_targets
from plait.passes import get_all_passes

# xDSL has a target `llvm` of its own, and a clash of names stops every tool.
PLAIT_UNIVERSE = Universe(
    all_dialects=dict(get_all_dialects()),
    all_passes={**get_all_passes(), **get_all_lowerings()},
    all_targets={name: target for name, target in get_all_targets().items() if name != "llvm"},
)
