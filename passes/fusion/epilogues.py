"""How far the kernel of a reduce can go on before it stores: its epilogue."""

from __future__ import annotations

import heapq

from plait.dialects import lazy
from plait.passes.fusion.program import Program, Role
from plait.passes.fusion.stores import Stores, Why

_MAX_EPILOGUE = 64
"""Operations between two points where all paths meet."""


def store_reduces(program: Program, stores: Stores) -> None:
    """Stores every reduce at the end of its epilogue; one reduce per epilogue."""
    claimed = set[int]()
    for node, role in enumerate(program.roles):
        if role is Role.REDUCE:
            last = _last_point(program, stores, claimed, node)
            stores.why.setdefault(last, Why.REDUCE)


def _last_point(program: Program, stores: Stores, claimed: set[int], reduce: int) -> int:
    """Moves from one meeting point to the next while the result leaves only through it."""
    point = best = reduce
    while point not in stores.why:
        region = _next_region(program, stores, claimed, point)
        if region is None:
            break
        point = region[-1]
        claimed.update(region)
        if program.roles[point] is Role.MAP or point in stores.why:
            best = point
    return best


def _next_region(
    program: Program, stores: Stores, claimed: set[int], point: int
) -> list[int] | None:
    """The nodes after ``point`` up to the first one through which all its paths go, or None if
    they part for good, leave the space of ``point``, or reach another kernel before they meet."""
    pending = list(program.users[point])
    heapq.heapify(pending)
    queued = set(pending)
    region = list[int]()
    while pending and len(region) < _MAX_EPILOGUE:
        node = heapq.heappop(pending)
        if node in claimed or not _stays_in_space(program, node, program.sizes[point]):
            return None
        region.append(node)
        if not pending:
            return region
        if node in stores.why:
            return None
        if not program.users[node]:
            return None
        for user in program.users[node]:
            if user not in queued:
                queued.add(user)
                heapq.heappush(pending, user)
    return None


def _stays_in_space(program: Program, node: int, size: int) -> bool:
    """Whether the node has one element for each of the reduce's and keeps them apart."""
    if program.sizes[node] != size:
        return False
    op = program.ops[node]
    if program.roles[node] is Role.MAP:
        return not isinstance(op, lazy.GatherOp | lazy.RngBitsOp)
    return isinstance(op, lazy.ReshapeOp | lazy.PermuteOp | lazy.FlipOp | lazy.MaterializeOp)
