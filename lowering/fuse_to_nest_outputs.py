"""How a kernel writes its outputs: the shape it computes each in, and the map of its stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.ir import Operation, SSAValue

from plait.dialects import fuse, lazy
from plait.lowering.fuse_to_nest_pull import Puller, Request
from plait.passes.analysis.affine import ZERO, Space, add, scale
from plait.passes.analysis.index_maps import Condition, Point, reshape


@dataclass(frozen=True)
class Output:
    """A yielded value, computed as ``core`` and moved on by views that are undone in the store."""

    value: SSAValue
    buffer: SSAValue
    core: SSAValue
    views: tuple[Operation, ...] = ()
    """From the core outwards; each is one-to-one and onto."""

    @staticmethod
    def of(value: SSAValue, buffer: SSAValue) -> Output:
        core = value
        views: list[Operation] = []
        while isinstance(core.owner, lazy.PermuteOp | lazy.ReshapeOp | lazy.FlipOp | fuse.KeepOp):
            if not isinstance(core.owner, fuse.KeepOp):
                views.append(core.owner)
            core = core.owner.operand
        return Output(value, buffer, core, tuple(reversed(views)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape it is computed in."""
        return lazy.shape_of(self.core)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def stored_at(self, point: Point, space: Space) -> Point:
        """Where in the buffer the core's element at ``point`` goes."""
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
        return point or (ZERO,) * len(lazy.shape_of(self.value))

    def store(self, puller: Puller, request: Request, conditions: Sequence[Condition] = ()) -> None:
        """Computes an element of the core and stores it in the innermost body, where the
        conditions hold."""
        value = puller.element(request)
        stored = puller.scalars.stored(value, lazy.element_type_of(self.core))
        target = self.stored_at(request.point, puller.space)
        puller.scopes.store(stored, self.buffer, target, conditions)
