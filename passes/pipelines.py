"""The pipelines: named lists of passes that turn a tensor program into a kernel plan, as data."""

from __future__ import annotations

_SEED = (
    "fuse-form-groups",
    "fuse-check-bijective-loads",
    "fuse-merge-reduces",
    "fuse-group-crossing-dag",
    "fuse-check-bijective-loads",
)

_DEFAULT = (
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
)
_BY_TIME = ("fuse-contraction-chains", "fuse-cross-axis-reduces")
"""The passes that weigh time, unless they are told to count bytes alone."""

PIPELINES: dict[str, tuple[str, ...]] = {
    "none": ("fuse-form-groups",),
    "seed": _SEED,
    "default": _DEFAULT,
    "fewest-bytes": tuple(
        spec
        for name in _DEFAULT
        for spec in ((name, f"{name}{{objective=bytes}}") if name in _BY_TIME else (name,))
    ),
    "optimal": (
        "lazy-simplify",
        "fuse-form-groups",
        "fuse-optimal",
        "fuse-check-bijective-loads",
        "fuse-plan-memory",
    ),
}
"""For each name, the passes in order:

- ``none``: the baseline plan, one kernel per reduce or stored value;
- ``seed``: the conservative rule for parallel reduces, exactly;
- ``default``: fewer bytes and fewer kernels, where the modelled time agrees;
- ``fewest-bytes``: the same, then every merge that saves bytes, whatever the kernel costs
  otherwise;
- ``optimal``: the fewest bytes, by exact search on small programs: what ``default`` is measured by.
"""
