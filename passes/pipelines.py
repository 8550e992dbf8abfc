"""The pipelines: named lists of passes that turn a tensor program into a kernel plan, as data."""

from __future__ import annotations

_SEED = (
    "fuse-form-groups",
    "fuse-check-bijective-loads",
    "fuse-merge-reduces",
    "fuse-group-crossing-dag",
    "fuse-check-bijective-loads",
)

PIPELINES: dict[str, tuple[str, ...]] = {
    "none": ("fuse-form-groups",),
    "seed": _SEED,
    "default": (
        "lazy-simplify",
        "fuse-form-groups",
        "fuse-merge-reduces",
        "fuse-group-crossing-dag",
        "fuse-sweeps",
        "fuse-elementwise-reduce",
        "fuse-contraction-chains",
        "fuse-cross-axis-reduces",
        "fuse-horizontal",
        "fuse-check-bijective-loads",
        "fuse-plan-memory",
    ),
}
"""For each name, the passes in order:

- ``none``: the baseline plan, one kernel per reduce or stored value;
- ``seed``: the conservative rule for parallel reduces, exactly;
- ``default``: fewer bytes and fewer kernels, within what runs well on one kernel's threads.
"""
