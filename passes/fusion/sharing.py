"""Store or recompute: rules 3 to 5 of :mod:`plait.passes.fusion.stores`."""

from __future__ import annotations

from plait.dialects import lazy
from plait.passes.analysis.work import work_of
from plait.passes.fusion.program import Program, Role
from plait.passes.fusion.stores import (
    MAX_BUFFERS,
    MAX_REPEATED_BUFFERS,
    MAX_REPEATED_WORK,
    MAX_SHARED_WORK,
    MAX_SPREAD_BUFFERS,
    MAX_SPREAD_WORK,
    SMALL,
    Stores,
    Why,
)

_MANY = 9
"""Kernels that use a value are counted up to this."""
_WALK = 256
"""Operations visited at most to add up the work of recomputing a value."""


def store_shared(program: Program, stores: Stores) -> None:
    """Decides, from sources to results, which elementwise values are stored after all."""
    kernels = _kernels_of(program, stores)
    around = _largest_around(program, stores)
    repeats = _repeats(program, stores)
    leaves = list[frozenset[int]]()
    for node, role in enumerate(program.roles):
        leaves.append(_leaves(program, stores, leaves, node))
        if node not in stores.why and role is Role.MAP:
            why = _reason(program, stores, node, leaves[node], len(kernels[node]), around, repeats)
            if why is not None:
                stores.why[node] = why


def _in_memory(program: Program, stores: Stores, node: int) -> bool:
    return node in stores.why or program.roles[node] is Role.BUFFER


def _leaves(
    program: Program, stores: Stores, leaves: list[frozenset[int]], node: int
) -> frozenset[int]:
    """The buffers that computing the node reads. Stores an operand where there are too many."""
    sources = program.sources[node]
    found = _join_leaves(program, stores, leaves, sources)
    while len(found) > MAX_BUFFERS:
        candidates = [
            source
            for source in sources
            if program.roles[source] is Role.MAP
            and source not in stores.why
            and len(leaves[source]) > 1
        ]
        if not candidates:
            break
        stores.why[max(candidates, key=lambda source: len(leaves[source]))] = Why.LIMIT
        found = _join_leaves(program, stores, leaves, sources)
    return found


def _join_leaves(
    program: Program, stores: Stores, leaves: list[frozenset[int]], sources: tuple[int, ...]
) -> frozenset[int]:
    return frozenset[int]().union(
        *(
            (source,) if _in_memory(program, stores, source) else leaves[source]
            for source in sources
        )
    )


def _reason(
    program: Program,
    stores: Stores,
    node: int,
    leaves: frozenset[int],
    kernels: int,
    around: list[int],
    repeats: list[float],
) -> Why | None:
    repeated = repeats[node] > 1
    if not repeated and (kernels < 2 or len(program.users[node]) < 2):
        return None
    work = _work(program, stores, node)
    if work > MAX_SHARED_WORK:
        return Why.REPEATED if repeated else Why.SHARED
    if program.sizes[node] * SMALL <= around[node]:
        return None
    own = program.sizes[node]
    large = sum(2 * program.sizes[leaf] >= own for leaf in leaves)
    spread = repeats[node] * own <= 2 * around[node]
    most_work, most_buffers = (
        (MAX_SPREAD_WORK, MAX_SPREAD_BUFFERS)
        if spread
        else (MAX_REPEATED_WORK, MAX_REPEATED_BUFFERS)
    )
    if repeated and (work > most_work or large > most_buffers):
        return Why.REPEATED
    inputs = sum(program.bytes_of(leaf) for leaf in leaves) / program.bytes_of(node)
    if kernels >= 2 and kernels * inputs > inputs + 1 + kernels:
        return Why.SHARED
    return None


def _work(program: Program, stores: Stores, node: int) -> int:
    """Work per element of computing the node from buffers, each operation counted once."""
    seen, pending, work = {node}, [node], 0
    while pending and len(seen) < _WALK:
        current = pending.pop()
        op = program.ops[current]
        work += work_of(op) if op is not None else 0
        for source in program.sources[current]:
            if source not in seen and not _in_memory(program, stores, source):
                seen.add(source)
                pending.append(source)
    return work if not pending else MAX_SHARED_WORK + 1


def _kernels_of(program: Program, stores: Stores) -> list[frozenset[int]]:
    """For every node, the stored nodes whose kernels compute it or read it; up to ``_MANY``."""
    kernels = [frozenset[int]()] * len(program)
    for node in reversed(range(len(program))):
        found = set[int]()
        for user in program.users[node]:
            found.update((user,) if user in stores.why else kernels[user])
            if len(found) >= _MANY:
                break
        kernels[node] = frozenset(found)
    return kernels


def _largest_around(program: Program, stores: Stores) -> list[int]:
    """For every node, the elements of the largest buffer that a kernel using it touches."""
    read = list[int]()
    for node, own in enumerate(program.sizes):
        inside = max((read[source] for source in program.sources[node]), default=0)
        read.append(own if _in_memory(program, stores, node) else inside)
    around = [0] * len(program)
    for node in reversed(range(len(program))):
        for user in program.users[node]:
            if user in stores.why:
                touched = max((read[source] for source in program.sources[user]), default=0)
                around[node] = max(around[node], program.sizes[user], touched)
            else:
                around[node] = max(around[node], around[user])
    return around


def _repeats(program: Program, stores: Stores) -> list[float]:
    """How often a kernel asks for each element of a node, through the views on it."""
    repeats = [1.0] * len(program)
    for node in reversed(range(len(program))):
        if program.sizes[node] == 0:
            continue
        for user in program.users[node]:
            op = program.ops[user]
            growth = program.sizes[user] / program.sizes[node]
            if isinstance(op, lazy.ExpandOp | lazy.WindowOp):
                further = 1.0 if user in stores.why else repeats[user]
                repeats[node] = max(repeats[node], growth * further)
            elif isinstance(op, lazy.GatherOp) and op.source is program.values[node]:
                repeats[node] = max(repeats[node], growth)
            elif program.roles[user] is Role.VIEW and user not in stores.why:
                repeats[node] = max(repeats[node], repeats[user])
    return repeats
