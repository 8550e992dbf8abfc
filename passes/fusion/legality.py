"""Whether two groups may become one: named predicates, each with the reason when it says no.

A predicate says what is possible or sensible for one kernel; whether it pays is in
:mod:`plait.passes.fusion.cost`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from plait.dialects.fuse import GroupOp
from plait.dialects.lazy_shapes import show
from plait.passes.fusion.footprint import Footprint
from plait.passes.fusion.graph import GroupGraph
from plait.passes.fusion.stores import MAX_BUFFERS, MAX_OUTPUTS
from plait.passes.remarks import Fact


@dataclass(frozen=True)
class Verdict:
    """Yes, or no with a stable reason and the facts behind it."""

    reason: str = ""
    """The id of the remark; empty for yes."""
    message: str = ""
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])

    def __bool__(self) -> bool:
        return not self.reason


YES = Verdict()
Predicate = Callable[[Footprint, Footprint], Verdict]


def name_of(value: SSAValue) -> str:
    """A buffer as remarks call it."""
    owner = value.owner
    if isinstance(owner, GroupOp) and owner.label is not None:
        return owner.label.data
    if value.name_hint:
        return f"%{value.name_hint}"
    return f"constant {value.type}" if isinstance(owner, Operation) else f"argument {_index(value)}"


def _index(value: SSAValue) -> int:
    return getattr(value, "index", 0)


def both_reduce(a: Footprint, b: Footprint) -> Verdict:
    """Both groups reduce."""
    if a.reduced and b.reduced:
        return YES
    return Verdict("fuse.not-a-reduce", "one of the groups does not reduce")


def same_space(a: Footprint, b: Footprint) -> Verdict:
    """Both run over one and the same iteration space."""
    if a.space is not None and a.space == b.space:
        return YES
    spaces = tuple("several" if x.space is None else show(x.space) for x in (a, b))
    return Verdict("fuse.space-differs", "the iteration spaces differ", {"spaces": spaces})


def same_reduced_axes(a: Footprint, b: Footprint) -> Verdict:
    """Both close the same axes."""
    if a.reduced == b.reduced:
        return YES
    axes = tuple(str(list(x.reduced)) for x in (a, b))
    return Verdict("fuse.axes-differ", "the reduced axes differ", {"axes": axes})


def shares_bijective_load(a: Footprint, b: Footprint) -> Verdict:
    """At least one load as large as the space serves both."""
    if a.large & b.large:
        return YES
    return Verdict("fuse.nothing-shared", "no load as large as the iteration space is shared")


def adds_no_bijective_load(a: Footprint, b: Footprint) -> Verdict:
    """The large loads of one are among those of the other, so neither pays for the other's."""
    if a.large <= b.large or b.large <= a.large:
        return YES
    smaller, larger = sorted((a, b), key=lambda x: len(x.large))
    added = sorted({name_of(buffer) for buffer, _ in smaller.large - larger.large})
    message = "the merge would add a load as large as the iteration space"
    return Verdict("fuse.bijective-load-added", message, {"added": ", ".join(added)})


def same_phase(a: Footprint, b: Footprint) -> Verdict:
    """No buffer is read before the reduce by one and after it by the other."""
    mixed = (a.buffers(late=False) & b.buffers(late=True)) | (
        a.buffers(late=True) & b.buffers(late=False)
    )
    if not mixed:
        return YES
    names = ", ".join(sorted(map(name_of, mixed)))
    message = "a buffer is read before the reduce in one group and after it in the other"
    return Verdict("fuse.early-and-late", message, {"buffers": names})


def fits_launch(a: Footprint, b: Footprint) -> Verdict:
    """The merged kernel reads and writes no more buffers than a launch can take."""
    return within_launch(len(a.buffers() | b.buffers()), len(a.outputs) + len(b.outputs))


def within_launch(read: int, written: int) -> Verdict:
    """A launch can take so many buffers."""
    if read <= MAX_BUFFERS and written <= MAX_OUTPUTS:
        return YES
    message = "the merged kernel would have too many buffers"
    facts = {"read": read, "written": written, "limits": (str(MAX_BUFFERS), str(MAX_OUTPUTS))}
    return Verdict("fuse.too-many-buffers", message, dict(facts))


def independent(graph: GroupGraph, a: int, b: int) -> Verdict:
    """Neither group needs the other, directly or through others."""
    first, last = (a, b) if graph.before(a, b) else (b, a)
    path = graph.depends(first, last)
    if path is None:
        return YES
    names = tuple(graph.names[node] for node in path)
    if len(path) == 2:
        return Verdict("fuse.depends", "one group reads what the other writes", {"path": names})
    return Verdict("fuse.closes-cycle", "merging would close a cycle", {"path": names})


def acyclic(graph: GroupGraph, a: int, b: int) -> Verdict:
    """No path leaves the two groups and comes back; one may read what the other writes."""
    path = graph.closing_path(a, b)
    if path is None:
        return YES
    names = tuple(graph.names[node] for node in path)
    return Verdict("fuse.closes-cycle", "merging would close a cycle", {"path": names})


REDUCE_RULE: tuple[Predicate, ...] = (
    both_reduce,
    same_space,
    same_reduced_axes,
    shares_bijective_load,
    adds_no_bijective_load,
    same_phase,
    fits_launch,
)
"""The conservative rule for parallel reduces, without the graph."""


def check(rule: tuple[Predicate, ...], a: Footprint, b: Footprint) -> Verdict:
    """The first no of a rule, or yes."""
    for predicate in rule:
        verdict = predicate(a, b)
        if not verdict:
            return verdict
    return YES
