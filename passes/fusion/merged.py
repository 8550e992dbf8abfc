"""Groups as the one kernel they would be: what it reads, keeps, computes again and stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dialects.lazy_base import Shape
from plait.passes.analysis.index_maps import Point, reshape
from plait.passes.analysis.rows import (
    Follower,
    Places,
    Rows,
    Steps,
    core_of,
    repeats,
    rows_that_read,
)
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.engine import MAX_OPERATIONS
from plait.passes.fusion.footprints import inside
from plait.passes.fusion.legality import Verdict, within_launch


@dataclass
class Views:
    """Buffers as kernels keep rows of them: each in a shape, with a value that stands for it."""

    buffer: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """The buffer behind each value."""
    _known: dict[tuple[SSAValue, Shape], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Shape], SSAValue]
    )

    def of(self, buffer: SSAValue, shape: Shape) -> SSAValue:
        """The value that stands for a buffer in a shape of as many elements."""
        known = self._known.get((buffer, shape))
        if known is None:
            type = TensorType(lazy.element_type_of(buffer), shape)
            known = self._known[buffer, shape] = Block(arg_types=[type]).args[0]
            self.buffer[known] = buffer
        return known


@dataclass
class Merged:
    """Groups as the one kernel they would be."""

    groups: list[GroupOp]
    members: set[Operation]
    results: list[SSAValue]
    """What the kernel stores, as values inside of it, before views that keep every element."""
    outputs: list[SSAValue]
    steps: Steps = field(default_factory=Steps)
    views: Views = field(default_factory=Views)

    @staticmethod
    def of(groups: list[GroupOp], steps: Steps | None = None, views: Views | None = None) -> Merged:
        members = set[Operation](groups)
        stored = [
            (group.yield_op.arguments[position], output)
            for group in groups
            for position, output in enumerate(group.outputs)
            if any(use.operation not in members for use in output.uses)
        ]
        results = list(dict.fromkeys(core_of(value) for value, _ in stored))
        outputs: list[SSAValue] = [output for _, output in stored]
        return Merged(groups, members, results, outputs, steps or Steps(), views or Views())

    def through(self, value: SSAValue) -> SSAValue | None:
        """What an argument stands for: the value of another member, or the first argument for the
        same buffer; None if it is that one."""
        if type(value) is not BlockArgument or value in self.views.buffer:
            return None
        inner = inside(self.members, value)
        if inner is not None:
            return inner
        first = self.argument_of[self.buffer_of(value)]
        return None if first is value else first

    def buffer_of(self, argument: BlockArgument) -> SSAValue:
        """The buffer that an argument of a member is."""
        group = argument.owner.parent_op()
        assert isinstance(group, GroupOp)
        return group.inputs[argument.index]

    @cached_property
    def argument_of(self) -> dict[SSAValue, BlockArgument]:
        """For each buffer, the first argument that stands for it."""
        found = dict[SSAValue, BlockArgument]()
        for group in self.groups:
            for argument, buffer in zip(group.block.args, group.inputs, strict=True):
                found.setdefault(buffer, argument)
        return found

    @cached_property
    def follower(self) -> Follower:
        return Follower(self.through, self.steps)

    @cached_property
    def places(self) -> dict[SSAValue, Places | None]:
        """Where each result needs the values inside."""
        return {result: self.follower.places(result) for result in self.results}

    def places_of(self, tokens: Iterable[SSAValue]) -> dict[SSAValue, Places | None]:
        """The same, with the views of buffers among ``tokens``."""
        views = [token for token in tokens if token in self.views.buffer]
        if not views:
            return self.places
        return {
            result: None if found is None else {**found, **self._viewed(result, found, views)}
            for result, found in self.places.items()
        }

    def _viewed(self, result: SSAValue, found: Places, views: Sequence[SSAValue]) -> Places:
        space = self.steps.space(result)
        viewed = dict[SSAValue, Sequence[Point]]()
        for view in views:
            argument = self.argument_of.get(self.views.buffer[view])
            have, want = lazy.shape_of(self.views.buffer[view]), lazy.shape_of(view)
            if argument is not None and argument in found:
                viewed[view] = [reshape(point, have, want, space) for point in found[argument]]
        return viewed

    def shapes_of(self, buffer: SSAValue) -> list[Shape]:
        """The shapes in which the groups look at a buffer, without axes of one element, those of
        most axes first."""
        shapes = {lazy.shape_of(buffer)}
        for group in self.groups:
            for argument, value in zip(group.block.args, group.inputs, strict=True):
                if value is buffer:
                    views = (use.operation for use in argument.uses)
                    shapes.update(
                        tuple(extent for extent in lazy.shape_of(view.result) if extent != 1)
                        for view in views
                        if isinstance(view, lazy.ReshapeOp)
                    )
        return sorted(shapes, key=len, reverse=True)

    def shared(self, first: set[Operation]) -> list[SSAValue]:
        """The buffers that both the first groups and the others read."""
        sides = [set[SSAValue](), set[SSAValue]()]
        for group in self.groups:
            sides[group in first].update(group.inputs)
        return [value for value in self.inputs() if value in sides[0] and value in sides[1]]

    def inputs(self) -> list[SSAValue]:
        """The buffers that the kernel reads."""
        values = (value for group in self.groups for value in group.inputs)
        return [value for value in dict.fromkeys(values) if value.owner not in self.members]

    def reduces(self) -> list[SSAValue]:
        """The results of reduces."""
        return [
            op.results[0]
            for group in self.groups
            for op in group.body_ops()
            if isinstance(op, lazy.ReduceOp | lazy.ArgReduceOp)
        ]

    @property
    def work(self) -> int:
        """Points of the largest space that it walks."""
        sizes = [1]
        for group in self.groups:
            sizes += [points_of(op.operands[0]) for op in group.body_ops() if op.operands]
        return max(sizes)

    def fits(self) -> Verdict:
        count = sum(len(group.body_ops()) for group in self.groups)
        if count > MAX_OPERATIONS:
            message = "the merged kernel would be too long"
            facts = {"operations": count, "limit": MAX_OPERATIONS}
            return Verdict("fuse.too-many-operations", message, dict(facts))
        verdict = within_launch(len(self.inputs()), len(self.outputs))
        if not verdict:
            return verdict
        ordered = lazy.ScanOp | lazy.ScatterOp
        if any(isinstance(op, ordered) for group in self.groups for op in group.body_ops()):
            return Verdict("fuse.runs-in-order", "one of the groups runs in order along an axis")
        return Verdict()

    def flows(self, producers: set[Operation] | None = None) -> list[SSAValue]:
        """What passes from the producers to the other groups, as values inside; or from any group
        to another one."""
        found = list[SSAValue]()
        for group in self.groups:
            if producers is not None and group in producers:
                continue
            for argument in group.block.args:
                owner = group.inputs[argument.index].owner
                inner = inside(self.members, argument)
                if inner is not None and (producers is None or owner in producers):
                    found.append(inner)
        return list(dict.fromkeys(found))

    def saved(self) -> int:
        """Bytes of what is no longer read and written between the groups."""
        total, read = 0, set[SSAValue]()
        for group in self.groups:
            for value in dict.fromkeys(group.inputs):
                if value.owner in self.members or value in read:
                    total += bytes_of(value)
                read.add(value)
        stored = set(self.outputs)
        for group in self.groups:
            total += sum(bytes_of(output) for output in group.outputs if output not in stored)
        return total

    def repeats(
        self, kept: Sequence[SSAValue], watched: Sequence[SSAValue], rows: Rows | None
    ) -> int:
        roots = dict[SSAValue, list[int]]()
        for value in self.results:
            roots[value] = [] if rows is None else sorted(rows.of_result[value])
        for value in kept:
            assert rows is not None
            roots[value] = sorted(rows.of_value[value])
        return repeats(roots, kept, watched, self.follower)

    def shared_bytes(self, rows: Rows) -> int:
        """Bytes that several rows read: of every buffer, what the rows share that read it alike."""
        own = dict[SSAValue, set[int]]()
        for result in self.results:
            places = self.places[result]
            assert places is not None
            for argument, found in rows_that_read(places, rows.of_result[result]).items():
                if self.through(argument) is not None:
                    continue
                buffer = self.buffer_of(argument)
                own[buffer] = own.get(buffer, found) & found
        every = set(range(len(rows.extents)))
        return sum(
            bytes_of(buffer) // prod(rows.extents[row] for row in found)
            for buffer, found in own.items()
            if found != every
        )


def points_of(value: SSAValue) -> int:
    """Elements of a value."""
    return prod(lazy.shape_of(value))
