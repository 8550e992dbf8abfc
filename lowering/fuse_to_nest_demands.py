"""Which reductions a kernel needs, where, and in which order: found before any code is placed.

A reduction that is needed at a point of the parallel axes alone is *shared*: all shared reductions
over equally many elements that do not depend on each other run in one sweep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.ir import SSAValue

from plait.dialects import lazy
from plait.lowering.fuse_to_nest_points import merged_point, merged_point_at, reduced_axes
from plait.lowering.fuse_to_nest_pull import Puller, Request
from plait.passes.analysis.affine import ZERO, index

Reduction = lazy.ReduceOp | lazy.ArgReduceOp


@dataclass
class Demand:
    """A shared reduction and the shared reductions it waits for."""

    request: Request
    waits: list[Request] = field(default_factory=list[Request])
    depth: int = 0
    """The number of the sweep it can run in, from 1."""

    @property
    def op(self) -> Reduction:
        return cast(Reduction, self.request.value.owner)

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the reduced axes."""
        shape = lazy.shape_of(self.op.operand)
        return tuple(shape[axis] for axis in reduced_axes(self.op))

    @property
    def size(self) -> int:
        return prod(self.extents)


class Demands:
    """The shared reductions of one kernel."""

    def __init__(self, puller: Puller, parallel: Iterable[int]):
        self.puller = puller
        self.parallel = set(parallel)
        self.found: dict[Request, Demand] = {}
        self._seen: dict[Request, frozenset[Request]] = {}

    def of(self, *requests: Request) -> list[Request]:
        """The shared reductions that elements need, directly or through loops of their own."""
        needed: dict[Request, None] = {}
        seen: set[Request] = set()
        pending = list(reversed(requests))
        while pending:
            current = pending.pop()
            if current in seen or current.value in self.puller.buffers:
                continue
            seen.add(current)
            op = current.value.owner
            if isinstance(op, Reduction) and self.is_shared(current):
                needed[current] = None
            else:
                pending.extend(reversed(self.inside(current)))
        return list(needed)

    def is_shared(self, request: Request) -> bool:
        """Whether a reduction is needed once per point of the parallel axes, and has a loop."""
        op = cast(Reduction, request.value.owner)
        shape = lazy.shape_of(op.operand)
        if prod(shape[axis] for axis in reduced_axes(op)) < 2:
            return False
        return self.is_parallel(request.indices())

    def is_parallel(self, indices: Iterable[int]) -> bool:
        """Whether indices are parallel axes, or positions that gathers read at such points."""
        known, named = self.puller.gather_of, self.puller.scopes.named
        return all(
            number in self.parallel or number in known or number in named
            for number in self.puller.behind(indices)
        )

    def inside(self, request: Request) -> list[Request]:
        """What an element is made of, with loops of its own opened on new axes."""
        op, puller = request.value.owner, self.puller
        match op:
            case lazy.ReduceOp() | lazy.ArgReduceOp():
                axes = reduced_axes(op)
                extents = [lazy.shape_of(op.operand)[axis] for axis in axes]
                new = puller.space.new_index
                within = [ZERO if e == 1 else index(new((0, max(e - 1, 0)))) for e in extents]
                point = merged_point(request.point, axes, within)
                return [puller.request(op.operand, point, request.conditions)]
            case lazy.ScanOp():
                return [self._along(request, op.operand, op.axis.value.data)]
            case lazy.ScatterOp():
                axis = op.axis.value.data
                return [
                    puller.request(op.destination, request.point, request.conditions),
                    self._along(request, op.indices, axis),
                    self._along(request, op.updates, axis),
                ]
            case lazy.RngBitsOp():
                return [puller.request(op.key, (ZERO,))]
            case _:
                return puller.inputs(request)

    def _along(self, request: Request, value: SSAValue, axis: int) -> Request:
        extent = lazy.shape_of(value)[axis]
        number = self.puller.space.new_index((0, max(extent - 1, 0)))
        point = merged_point_at(request.point, axis, index(number))
        return self.puller.request(value, point, request.conditions)

    def add(self, requests: Sequence[Request]) -> None:
        """Finds the shared reductions behind shared reductions, and the order of all."""
        pending = deque(requests)
        while pending:
            request = pending.popleft()
            if request in self.found:
                continue
            demand = self.found[request] = Demand(request)
            [operand] = self.inside(request)
            demand.waits = self.of(operand, *self.puller.positions(request))
            pending.extend(demand.waits)
        self._order()

    def _order(self) -> None:
        """Depths, innermost first; a chain may be thousands long."""
        for start in self.found.values():
            stack = [start]
            while stack:
                demand = stack[-1]
                waiting = [self.found[w] for w in demand.waits if not self.found[w].depth]
                if demand.depth or not waiting:
                    depths = [self.found[w].depth for w in demand.waits]
                    demand.depth = demand.depth or 1 + max(depths, default=0)
                    stack.pop()
                else:
                    stack.extend(waiting)

    def depth_of(self, requests: Sequence[Request]) -> int:
        """The sweep after which an element that needs these reductions can be computed."""
        return max((self.found[request].depth for request in requests), default=0)
