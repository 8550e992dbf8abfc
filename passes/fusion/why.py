"""Why two kernels of a plan are two: the reason on record, the path between them, and the price."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from plait.errors import PlaitError
from plait.passes.fusion.merged import Merged
from plait.passes.fusion.plan import Plan, functions_with_groups
from plait.passes.remarks import Remark, RemarkKind

ADVICE = {
    "fuse.closes-cycle": "what lies on the path would have to join them, or not need the first",
    "fuse.depends": "a pass that lets a kernel use its own results: fuse-sweeps, "
    "fuse-elementwise-reduce or fuse-contraction-chains",
    "fuse.space-differs": "the same iteration space and reduced axes, or one that can be computed "
    "row by row inside of the other",
    "fuse.axes-differ": "the same reduced axes",
    "fuse.points-differ": "values that are needed where they are made: no transpose between them",
    "fuse.no-rows": "an axis along which both can run in parallel",
    "fuse.row-too-long": "shorter rows, or a target that keeps more on chip",
    "fuse.reduce-repeated": "a reduce that each of its readers needs once",
    "fuse.operand-too-large": "smaller operands that all rows share",
    "fuse.product-slower": "more bytes between them, or a smaller product",
    "fuse.too-few-rows": "more rows to run in parallel",
    "fuse.needs-another-sweep": "fuse-sweeps, where a row stays on chip",
    "fuse.saves-nothing": "a buffer that both read, or that one writes and the other reads",
    "fuse.nothing-shared": "a load as large as the iteration space that both share",
    "fuse.bijective-load-added": "a pipeline that weighs bytes: default",
    "fuse.not-a-reduce": "a pass that merges pointwise kernels: fuse-elementwise-reduce",
    "fuse.early-and-late": "buffers that are read on one side of the reduce only",
    "fuse.too-many-buffers": "fewer buffers: a launch takes only so many",
    "fuse.too-many-operations": "shorter kernels",
    "fuse.runs-in-order": "no scan or scatter in either",
}
"""What would have to change, by the reason for a refusal."""


def why(module: ModuleOp, found: Sequence[Remark], names: tuple[str, str]) -> str:
    """What is known about two kernels of a plan; raises :class:`PlaitError` for unknown names."""
    if names[0] == names[1]:
        raise PlaitError(f"expected two different kernels, found '{names[0]}' twice")
    for function in functions_with_groups(module):
        plan = Plan.read(function)
        labels = plan.graph.names
        if all(name in labels for name in names):
            return _between(plan, found, names)
    merged = [r for r in found if r.kind is RemarkKind.PASSED and _about(r, names)]
    if merged:
        return f"'{names[0]}' and '{names[1]}' are one kernel:\n  {merged[-1]}"
    known = [n for f in functions_with_groups(module) for n in Plan.read(f).graph.names]
    missing = next(name for name in names if name not in known)
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    raise PlaitError(f"no kernel '{missing}' in the plan: found {shown}")


def _about(remark: Remark, names: Sequence[str]) -> bool:
    """Whether a remark is about two kernels, maybe as they were before later merges."""
    groups = remark.facts.get("groups")
    return isinstance(groups, tuple) and set(map(_first, names)) <= set(map(_first, groups))


def _first(name: str) -> str:
    """The kernel that a merged one is named after."""
    return name.split("+")[0]


def _between(plan: Plan, found: Sequence[Remark], names: tuple[str, str]) -> str:
    numbers = [plan.graph.names.index(name) for name in names]
    first, last = sorted(numbers)
    groups = [plan.groups[first], plan.groups[last]]
    lines = [f"'{names[0]}' and '{names[1]}' are two kernels."]
    path = plan.graph.depends(first, last)
    between = plan.graph.closing_path(first, last)
    if between is not None:
        drawn = " -> ".join(plan.graph.names[node] for node in between)
        lines.append(f"  path:   {drawn}  (merging the ends would close a cycle)")
    elif path is not None:
        lines.append(f"  path:   {' -> '.join(plan.graph.names[node] for node in path)}")
    else:
        lines.append("  path:   none: neither needs the other")
    reasons = [r for r in found if r.kind is RemarkKind.MISSED and _about(r, names)]
    if reasons:
        lines.append(f"  reason: [{reasons[-1].id}] {reasons[-1].message}")
        lines += [
            f"          {key}: {value}"
            for key, value in reasons[-1].facts.items()
            if key not in ("groups", "path")
        ]
        advice = ADVICE.get(reasons[-1].id)
    else:
        reason = "fuse.closes-cycle" if between is not None else "fuse.saves-nothing"
        lines.append(
            f"  reason: [{reason}] no pass considered them: they share no buffer"
            if between is None
            else f"  reason: [{reason}]"
        )
        advice = ADVICE[reason]
    saved = Merged.of(groups).saved() if _connected(groups) else 0
    lines.append(f"  saving: {saved:,} bytes of memory traffic and one launch")
    if advice:
        lines.append(f"  needed: {advice}")
    return "\n".join(lines)


def _connected(groups: Sequence[Operation]) -> bool:
    a, b = groups
    return bool({*a.operands, *a.results} & {*b.operands, *b.results})
