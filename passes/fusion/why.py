"""Why two kernels of a plan are two: the reason on record, the path between them, and the price."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from plait.errors import PlaitError
from plait.passes.fusion.merged import Merged
from plait.passes.fusion.plan import Plan
from plait.passes.fusion.record import Record
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


def explained(
    module: ModuleOp, found: Sequence[Remark], names: Sequence[str], kind: str | None = None
) -> list[str]:
    """Lines about a plan: all decisions, those about one kernel, or why two are not one.

    Decisions may be of one ``kind`` only. Raises :class:`PlaitError` for unknown kernels, with the
    names there are, and for more than two.
    """
    if len(names) > 2:
        raise PlaitError(f"expected at most two kernels, found {len(names)}")
    record = Record(module, found)
    kernels = [record.kernel(name) for name in names]
    if len(names) == 2:
        return why(record, (names[0], names[1])).splitlines()
    shown = record.about(*kernels) if kernels else record.decisions
    moved = [f"'{name}' is part of '{now}'" for name, now in zip(names, kernels, strict=True)]
    head = [line for line, name, now in zip(moved, names, kernels, strict=True) if name != now]
    return head + [str(remark) for remark in shown if kind in (None, remark.kind)]


def why(record: Record, names: tuple[str, str]) -> str:
    """What is known about two kernels of a plan; raises :class:`PlaitError` for unknown names."""
    if names[0] == names[1]:
        raise PlaitError(f"expected two different kernels, found '{names[0]}' twice")
    first, second = map(record.kernel, names)
    if first == second:
        merged = [r for r in record.about(first) if r.kind is RemarkKind.PASSED]
        lines = "".join(f"\n  {remark}" for remark in merged)
        return f"'{names[0]}' and '{names[1]}' are one kernel, '{first}':{lines}"
    for plan in record.plans:
        if first in plan.graph.names and second in plan.graph.names:
            return _between(plan, record, (first, second))
    return f"'{first}' and '{second}' are kernels of two functions"


def _between(plan: Plan, record: Record, names: tuple[str, str]) -> str:
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
    reasons = [r for r in record.about(*names) if r.kind is RemarkKind.MISSED]
    if between is not None:
        advice = ADVICE["fuse.closes-cycle"]
        lines.append("  reason: [fuse.closes-cycle]")
    elif reasons:
        reason = reasons[-1]
        advice = ADVICE.get(reason.id)
        lines.append(f"  reason: [{reason.id}] {reason.message.rpartition(' kernels: ')[2]}")
        lines += [
            f"          {key}: {value}"
            for key, value in reason.facts.items()
            if key not in ("groups", "path")
        ]
        if reason.pass_name:
            lines.append(f"          pass: {reason.pass_name}")
    else:
        advice = ADVICE["fuse.saves-nothing"]
        lines.append("  reason: [fuse.saves-nothing] no pass considered them")
    saved = Merged.of(groups).saved() if _connected(groups) else 0
    lines.append(f"  saving: {saved:,} bytes of memory traffic and one launch")
    if advice:
        lines.append(f"  needed: {advice}")
    return "\n".join(lines)


def _connected(groups: Sequence[Operation]) -> bool:
    a, b = groups
    return bool({*a.operands, *a.results} & {*b.operands, *b.results})
