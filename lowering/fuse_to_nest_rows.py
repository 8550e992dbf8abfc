"""Kernels that keep values on chip: one row at a time, each kept value in local memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from plait.dialects import lazy, nest
from plait.lowering.fuse_to_nest_outputs import Output, store
from plait.lowering.fuse_to_nest_pull import Kept, Puller
from plait.lowering.fuse_to_nest_scalars import compute_type
from plait.lowering.fuse_to_nest_scopes import Axis
from plait.passes.analysis.affine import ZERO, index
from plait.passes.analysis.index_maps import Point
from plait.passes.analysis.rows import Rows


class RowBuilder:
    """Computes the kept values of a row, then what is stored of it."""

    def __init__(self, puller: Puller, rows: Rows, point: Point):
        self.puller = puller
        self.rows = rows
        self.point = point

    def keep(self, value: SSAValue) -> None:
        """Computes a row of a value into local memory."""
        shape, axes = lazy.shape_of(value), self.rows.kept(value)
        extents = [shape[axis] for axis in axes]
        type = MemRefType(compute_type(lazy.element_type_of(value)), extents)
        local = nest.LocalOp(cast(Any, type))
        buffer = self.puller.scopes.emit(local)
        point = self.opened(shape, self.rows.of_value[value])
        computed = self.puller.element(self.puller.request(value, point))
        self.puller.scopes.store(computed, buffer, tuple(point[axis] for axis in axes), ())
        self.puller.scopes.close_reduce([], [])
        home = {axis: self.point[row] for axis, row in self.rows.of_value[value].items()}
        self.puller.kept[value] = Kept(buffer, axes, home)

    def store(self, outputs: Sequence[Output]) -> None:
        """Stores what a row holds of the results: those of equal extents in one loop."""
        alike = dict[tuple[int, ...], list[Output]]()
        for output in outputs:
            alike.setdefault(self.extents(output), []).append(output)
        for extents, together in alike.items():
            axes = self.puller.nested_axes(extents)
            self.puller.scopes.open(axes)
            points = [self.within(o.shape, self.rows.of_result[o.core], axes) for o in together]
            requests = (
                (output, self.puller.request(output.core, point), ())
                for output, point in zip(together, points, strict=True)
            )
            store(self.puller, requests)
            self.puller.scopes.close_reduce([], [])

    def extents(self, output: Output) -> tuple[int, ...]:
        """What a row holds of a result."""
        row_of, shape = self.rows.of_result[output.core], output.shape
        return tuple(e for axis, e in enumerate(shape) if axis not in row_of and e != 1)

    def opened(self, shape: Sequence[int], row_of: Mapping[int, int]) -> Point:
        """Opens loops over the axes of a shape that are not rows; a point of the shape."""
        inner = [axis for axis in range(len(shape)) if axis not in row_of and shape[axis] != 1]
        axes = self.puller.nested_axes([shape[axis] for axis in inner])
        self.puller.scopes.open(axes)
        return self.within(shape, row_of, axes)

    def within(
        self, shape: Sequence[int], row_of: Mapping[int, int], axes: Sequence[Axis]
    ) -> Point:
        """The point of a shape in this row that the loops over ``axes`` are at."""
        inner = [axis for axis in range(len(shape)) if axis not in row_of and shape[axis] != 1]
        number = {axis: index(opened.index) for axis, opened in zip(inner, axes, strict=True)}
        return tuple(
            self.point[row_of[axis]] if axis in row_of else number.get(axis, ZERO)
            for axis in range(len(shape))
        )


def size_of_row(rows: Rows) -> int:
    """Elements that are kept at once."""
    return sum(
        prod(lazy.shape_of(value)[axis] for axis in rows.kept(value)) for value in rows.of_value
    )
