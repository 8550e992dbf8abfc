"""How a kernel writes its outputs: the shape it computes each in, and the map of its stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.ir import Operation, SSAValue

from plait.dialects import fuse, lazy
from plait.lowering.fuse_to_nest_pull import Puller, Request
from plait.passes.analysis.affine import ZERO, Space, add, scale
from plait.passes.analysis.index_maps import Condition, Point, reshape
from plait.passes.analysis.updates import pieces_of


@dataclass(frozen=True)
class Output:
    """A yielded value, computed as ``core`` and moved on by views that are undone in the store."""

    value: SSAValue
    buffer: SSAValue
    core: SSAValue
    views: tuple[Operation, ...] = ()
    """From the core outwards; each is one-to-one and onto."""
    over: SSAValue | None = None
    """The input whose buffer it is written over."""

    @staticmethod
    def of(value: SSAValue, buffer: SSAValue, over: SSAValue | None = None) -> Output:
        core = value
        views: list[Operation] = []
        while isinstance(core.owner, lazy.PermuteOp | lazy.ReshapeOp | lazy.FlipOp | fuse.KeepOp):
            if not isinstance(core.owner, fuse.KeepOp):
                views.append(core.owner)
            core = core.owner.operand
        return Output(value, buffer, core, tuple(reversed(views)), over)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape it is computed in."""
        return lazy.shape_of(self.core)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def stored_at(self, point: Point, space: Space) -> Point:
        """Where in the buffer the core's element at ``point`` goes."""
        point, shape = self.result_point(point, space), lazy.shape_of(self.value)
        if self.over is not None:
            point = reshape(point, shape, lazy.shape_of(self.over), space)
            shape = lazy.shape_of(self.over)
        return point or (ZERO,) * len(shape)

    def result_point(self, point: Point, space: Space) -> Point:
        """The result's element that the core's element at ``point`` is."""
        for view in self.views:
            shape = lazy.shape_of(view.operands[0])
            match view:
                case lazy.PermuteOp():
                    order: tuple[int, ...] = cast(Any, view.permutation).get_values()
                    point = tuple(point[axis] for axis in order)
                case lazy.FlipOp():
                    flipped = set(cast(Any, view.axes).get_values())
                    point = tuple(
                        add(scale(expr, -1), shape[axis] - 1) if axis in flipped else expr
                        for axis, expr in enumerate(point)
                    )
                case _:
                    point = reshape(point, shape, lazy.shape_of(view.results[0]), space)
        return point

    def parts(
        self, puller: Puller, request: Request, conditions: Sequence[Condition]
    ) -> list[tuple[Request, Sequence[Condition]]]:
        """What is stored at a point, and where: all of it, or the pieces that change in place."""
        pieces = None if self.over is None else pieces_of(self.value, self.over)
        if pieces is None or not any(piece.kept for piece in pieces):
            return [(request, conditions)]
        point = self.result_point(request.point, puller.space)
        at = dict(enumerate(point))
        found: list[tuple[Request, Sequence[Condition]]] = []
        for piece in pieces:
            if not piece.kept:
                held = [
                    Condition(puller.space.rewrite(c.expr, at), c.equality)
                    for c in piece.conditions
                ]
                place = tuple(puller.space.rewrite(expr, at) for expr in piece.point)
                found.append((puller.request(piece.value, place, held), [*conditions, *held]))
        return found


def store(puller: Puller, elements: Iterable[tuple[Output, Request, Sequence[Condition]]]) -> None:
    """Computes elements of outputs, then stores them in the innermost body, where the conditions
    hold: one may be written over what another one reads."""
    computed: list[tuple[SSAValue, Output, Point, Sequence[Condition]]] = []
    for output, request, conditions in elements:
        target = output.stored_at(request.point, puller.space)
        for part, held in output.parts(puller, request, conditions):
            value = puller.element(part)
            stored = puller.scalars.stored(value, lazy.element_type_of(output.core))
            computed.append((stored, output, target, held))
    for value, output, target, held in computed:
        puller.scopes.store(value, output.buffer, target, held)
