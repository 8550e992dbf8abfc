"""Makes the ``nest.kernel`` of one group.

The kernel's parallel axes are the shape of one of its outputs or of what its largest reduction
keeps. Outputs of that many elements are stored once per point; outputs with as many elements as a
reduction reads are stored in a sweep over its axes; what fits neither is stored in loops of its
own. Everything in between is asked for element by element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from plait.dialects import fuse, lazy, nest
from plait.lowering.fuse_to_nest_demands import Demand, Demands
from plait.lowering.fuse_to_nest_ordered import store_scans, store_scatter
from plait.lowering.fuse_to_nest_outputs import Output, store
from plait.lowering.fuse_to_nest_points import merged_point, reduced_axes
from plait.lowering.fuse_to_nest_pull import Puller, Request
from plait.lowering.fuse_to_nest_rows import RowBuilder
from plait.lowering.fuse_to_nest_scalars import buffer_type
from plait.lowering.fuse_to_nest_scopes import Axis, Scopes
from plait.passes.analysis.affine import ZERO, Expr, add, index, scale
from plait.passes.analysis.affine import combine as sum_of
from plait.passes.analysis.index_maps import Condition, Point, reshape
from plait.passes.analysis.rows import Rows, kept_values, rows_of_group


def kernel_of(
    group: fuse.GroupOp, name: str, constants: Sequence[SSAValue]
) -> tuple[nest.KernelOp, list[SSAValue]]:
    """The kernel of a group and what it reads: inputs of the group, and dense constants in it.

    The kernel's buffers are what it reads, then what it writes, which are the group's results.
    """
    updates = {out: group.block.args[number] for out, number in group.updates.items()}
    inputs = [*(x for x in group.block.args if x not in updates.values()), *constants]
    yielded = list(group.yield_op.arguments)
    outputs = [value for value in yielded if 0 not in lazy.shape_of(value)]
    homes = [updates.get(number, value) for number, value in enumerate(yielded)]
    block = Block(arg_types=[buffer_type(value) for value in (*inputs, *homes)])
    for argument, value in zip(block.args, inputs, strict=False):
        argument.name_hint = value.name_hint
    reads = dict(zip(inputs, block.args, strict=False))
    writes = dict(zip(range(len(yielded)), block.args[len(inputs) :], strict=True))
    reads.update((argument, writes[number]) for number, argument in updates.items())
    targets = [
        Output.of(value, writes[number], updates.get(number))
        for number, value in enumerate(yielded)
        if value in outputs
    ]
    builder = _Builder(group, block, reads, targets)
    builder.build()
    kernel = nest.KernelOp(
        name,
        [axis.attr for axis in builder.parallel],
        Region(block),
        source=_source(group),
    )
    return kernel, inputs


def _source(group: fuse.GroupOp) -> str:
    """The operations of a group in a line, for readers of generated code."""
    names = [op.name.removeprefix("lazy.") for op in group.body_ops()]
    plain = ("constant", "reshape", "expand", "permute", "fuse.keep")
    shown = [name for name in names if name not in plain]
    return " ".join(shown[:12]) + (" ..." if len(shown) > 12 else "")


class _Builder:
    def __init__(
        self,
        group: fuse.GroupOp,
        block: Block,
        reads: Mapping[SSAValue, SSAValue],
        outputs: Sequence[Output],
    ):
        self.group = group
        self.outputs = outputs
        self.block = block
        self.scopes = Scopes(block)
        self.space = self.scopes.space
        self.puller = Puller(self.scopes, reads)
        self.parallel: list[Axis] = []
        self.shape: tuple[int, ...] = ()
        self.point: Point = ()
        self.demands = Demands(self.puller, ())
        self.named_sweeps: list[Axis] = []

    # The parallel axes

    def build(self) -> None:
        rows = rows_of_group(self.group, [output.core for output in self.outputs])
        if rows is not None:
            self.build_rows(rows)
            return
        ordered = self.ordered_outputs()
        self.shape = self.parallel_shape(ordered)
        scattered = [o for o in self.outputs if self.is_ordered(o, lazy.ScatterOp)]
        self.open_parallel()
        root, swept, loose = self.assign([o for o in self.outputs if o not in ordered])
        if loose and self.parallel:
            self.restart()
            root, swept, loose = [], [], list(self.outputs)
            ordered, scattered = [], []
        self.run_sweeps(swept)
        for output in ordered:
            if output in scattered:
                store_scatter(self.puller, self.point, output)
        scanned = [output for output in ordered if output not in scattered]
        if scanned:
            store_scans(self.puller, self.point, self.scans(), scanned)
        store(self.puller, [(o, self.root_request(o), self.root_conditions(o)) for o in root])
        for output in loose:
            self.store_in_loops(output)

    def build_rows(self, rows: Rows) -> None:
        """A kernel that keeps values on chip, a row for each point of its parallel axes."""
        self.shape = rows.extents
        self.open_parallel()
        builder = RowBuilder(self.puller, rows, self.point)
        for value in kept_values(self.group):
            builder.keep(value)
        builder.store(self.outputs)

    def restart(self) -> None:
        """Gives up the parallel axes: every output gets loops of its own."""
        count = len(self.block.args) - len(self.parallel)
        for argument in self.block.args[count:]:
            self.block.erase_arg(argument)
        self.scopes = Scopes(self.block)
        self.space = self.scopes.space
        self.puller = Puller(self.scopes, self.puller.buffers)
        self.parallel, self.shape, self.point = [], (), ()
        self.demands = Demands(self.puller, ())

    def reductions(self) -> list[lazy.ReduceOp | lazy.ArgReduceOp]:
        return [
            op
            for op in self.group.body_ops()
            if isinstance(op, lazy.ReduceOp | lazy.ArgReduceOp)
            and prod(lazy.shape_of(op.operand)) > prod(lazy.shape_of(op.result))
        ]

    def scans(self) -> list[lazy.ScanOp]:
        return [op for op in self.group.body_ops() if isinstance(op, lazy.ScanOp)]

    def is_ordered(self, output: Output, kind: type[lazy.LazyOp]) -> bool:
        return isinstance(output.core.owner, kind) and output.core not in self.puller.buffers

    def ordered_outputs(self) -> list[Output]:
        """Outputs of scans and scatters that the kernel computes in order along an axis.

        They share the kernel if all of them are along the same axis of the same shape.
        """
        scans = self.scans()
        scatters = [o for o in self.outputs if self.is_ordered(o, lazy.ScatterOp)]
        if scatters:
            first = scatters[0].core.owner
            same = [o for o in scatters if self.frame(o) == self.frame(scatters[0])]
            assert isinstance(first, lazy.ScatterOp)
            return same
        if not scans:
            return []
        shape, axis = lazy.shape_of(scans[0].result), scans[0].axis.value.data
        if any((lazy.shape_of(s.result), s.axis.value.data) != (shape, axis) for s in scans):
            return []
        return [output for output in self.outputs if output.shape == shape]

    def frame(self, output: Output) -> tuple[int, ...]:
        """What a scatter keeps: its shape without the axis."""
        op = output.core.owner
        assert isinstance(op, lazy.ScatterOp)
        axis = op.axis.value.data
        return (*output.shape[:axis], *output.shape[axis + 1 :])

    def parallel_shape(self, ordered: Sequence[Output]) -> tuple[int, ...]:
        if ordered:
            op = ordered[0].core.owner
            scan = next(iter(self.scans()), None)
            if isinstance(op, lazy.ScatterOp):
                return self.frame(ordered[0])
            assert scan is not None
            axis = scan.axis.value.data
            return (*ordered[0].shape[:axis], *ordered[0].shape[axis + 1 :])
        reductions = self.reductions()
        if not reductions:
            largest = max(self.outputs, key=lambda output: output.size)
            return largest.shape
        largest = max(reductions, key=lambda op: prod(lazy.shape_of(op.operand)))
        kept = lazy.shape_of(largest.result)
        fitting = [output.shape for output in self.outputs if output.size == prod(kept)]
        if not fitting and all(output.size < prod(kept) for output in self.outputs):
            return max(self.outputs, key=lambda output: output.size).shape
        return kept if kept in fitting or not fitting else fitting[0]

    def open_parallel(self) -> None:
        """Adds the parallel axes as arguments of the kernel; axes of one point are left out."""
        point: list[Expr] = []
        for extent in self.shape:
            if extent == 1:
                point.append(ZERO)
                continue
            number = self.space.new_index((0, max(extent - 1, 0)))
            axis = Axis(number, f"i{len(self.parallel)}", extent)
            argument = self.block.insert_arg(IndexType(), len(self.block.args))
            argument.name_hint = axis.name
            self.scopes.depth[argument] = 0
            self.scopes.bind(number, argument)
            self.parallel.append(axis)
            point.append(index(number))
        self.point = tuple(point)
        self.demands = Demands(self.puller, [axis.index for axis in self.parallel])

    @property
    def points(self) -> int:
        return prod(self.shape)

    # Assigning outputs to places

    def assign(self, outputs: Sequence[Output]) -> tuple[list[Output], list[Output], list[Output]]:
        """Outputs stored once per point, in a sweep, and in loops of their own."""
        root: list[Output] = []
        rest: list[Output] = []
        for output in outputs:
            fits = output.size == self.points or (output.size < self.points and self.parallel)
            (root if fits else rest).append(output)
        wanted = self.demands.of(*map(self.root_request, root))
        needed = self.needed_by(rest)
        for op in self.reductions():
            if prod(lazy.shape_of(op.result)) == self.points:
                point = self.moved_point(lazy.shape_of(op.result))
                if op.result in needed:
                    wanted.append(self.puller.request(op.result, point))
        self.demands.add(wanted)
        sizes = {demand.size for demand in self.demands.found.values()}
        swept = [o for o in rest if self.points and o.size % self.points == 0]
        swept = [o for o in swept if o.size // self.points in sizes]
        return root, swept, [output for output in rest if output not in swept]

    def needed_by(self, outputs: Sequence[Output]) -> set[SSAValue]:
        """The values of the group that outputs depend on."""
        seen: set[SSAValue] = set()
        pending = [output.core for output in outputs]
        while pending:
            current = pending.pop()
            if current in seen or current in self.puller.buffers:
                continue
            seen.add(current)
            pending.extend(current.owner.operands if not isinstance(current.owner, Block) else ())
        return seen

    def moved_point(self, shape: Sequence[int]) -> Point:
        """The point of another shape of as many elements, at the same row-major position."""

        return reshape(self.point, self.shape, shape, self.space)

    def root_conditions(self, output: Output) -> tuple[Condition, ...]:
        if output.size == self.points:
            return ()
        position = self.space.linearize(self.point, self.shape)
        return (Condition(add(scale(position, -1), output.size - 1)),)

    def root_point(self, output: Output) -> Point:
        if output.size == self.points:
            return self.moved_point(output.shape)
        position = self.space.linearize(self.point, self.shape)
        return self.space.delinearize(position, output.shape)

    def root_request(self, output: Output) -> Request:
        return self.puller.request(
            output.core, self.root_point(output), self.root_conditions(output)
        )

    # Stores

    def store_in_loops(self, output: Output) -> None:
        axes = self.puller.nested_axes(output.shape)
        self.scopes.open(axes)
        point = tuple(ZERO if axis.extent == 1 else index(axis.index) for axis in axes)
        store(self.puller, [(output, self.puller.request(output.core, point), ())])
        self.scopes.close_reduce([], [])

    # Sweeps

    def run_sweeps(self, swept: Sequence[Output]) -> None:
        """Runs the shared reductions, sweep by sweep, with the outputs that fit into each; those
        that are written over an input come last, when nothing reads it any more."""
        axes_of: dict[int, list[Axis]] = {}
        self.add_sweep_axes(axes_of)
        ready_after = {output.buffer: self.ready_after(output, axes_of) for output in swept}
        self.add_sweep_axes(axes_of)
        batches: dict[tuple[int, int], list[Demand]] = {}
        for demand in self.demands.found.values():
            batches.setdefault((demand.depth, demand.size), []).append(demand)
        waiting = {output.buffer: output for output in swept}
        for (depth, size), demands in sorted(batches.items(), key=lambda item: item[0]):
            ready = [
                output
                for output in waiting.values()
                if output.size == self.points * size
                and ready_after[output.buffer] < depth
                and output.over is None
            ]
            for output in ready:
                del waiting[output.buffer]
            self.sweep(axes_of[size], demands, ready)
        left: dict[int, list[Output]] = {}
        for output in waiting.values():
            left.setdefault(output.size // self.points, []).append(output)
        for size, outputs in left.items():
            self.sweep(axes_of[size], [], outputs)

    def ready_after(self, output: Output, axes_of: Mapping[int, Sequence[Axis]]) -> int:
        axes = axes_of[output.size // self.points]
        request = self.puller.request(output.core, self.swept_point(output, axes))
        needed = self.demands.of(request)
        self.demands.add(needed)
        return self.demands.depth_of(needed)

    def add_sweep_axes(self, axes_of: dict[int, list[Axis]]) -> None:
        """Gives axes to every size of reductions that has none yet."""
        for demand in self.demands.found.values():
            if demand.size not in axes_of:
                axes_of[demand.size] = self.sweep_axes(demand.size)

    def sweep_axes(self, size: int) -> list[Axis]:
        """Axes shared by all sweeps over this many elements: those of the largest reduction."""
        fitting = [d for d in self.demands.found.values() if d.size == size]
        extents = [extent for extent in fitting[0].extents if extent != 1]
        start = len(self.named_sweeps)
        axes = [
            Axis(self.space.new_index((0, extent - 1)), f"r{start + number}", extent)
            for number, extent in enumerate(extents)
        ]
        self.named_sweeps.extend(axes)
        return axes

    def within(self, extents: Sequence[int], axes: Sequence[Axis]) -> list[Expr]:
        """The point of a reduction's axes that a point of the sweep's axes stands for."""
        have = [axis.extent for axis in axes]
        point = tuple(index(axis.index) for axis in axes)

        return list(reshape(point, have, extents, self.space))

    def swept_point(self, output: Output, axes: Sequence[Axis]) -> Point:
        """The point of an output with as many elements as a reduction reads."""
        for demand in self.demands.found.values():
            operand = lazy.shape_of(demand.op.operand)
            if operand == output.shape and demand.size * self.points == output.size:
                kept = demand.request.point
                if self.is_onto(kept, demand):
                    return merged_point(
                        kept, reduced_axes(demand.op), self.within(demand.extents, axes)
                    )
        position = self.space.linearize(self.point, self.shape)
        inner = self.space.linearize(
            tuple(index(axis.index) for axis in axes), [axis.extent for axis in axes]
        )
        size = prod(axis.extent for axis in axes)
        return self.space.delinearize(sum_of((position, size), inner), output.shape)

    def is_onto(self, kept: Point, demand: Demand) -> bool:
        """Whether a reduction is needed at each of its results exactly once."""
        same = self.moved_point(lazy.shape_of(demand.op.result))
        if kept == same:
            return True
        used = [expr for expr in kept if not expr.is_constant]
        plain = all(len(e.terms) == 1 and e.terms[0][1] == 1 and not e.constant for e in used)
        atoms = [expr.terms[0][0] for expr in used] if plain else []
        axes = [axis.index for axis in self.parallel]
        return plain and len(set(atoms)) == len(atoms) == len(axes) and set(atoms) == set(axes)

    def sweep(
        self, axes: Sequence[Axis], demands: Sequence[Demand], outputs: Sequence[Output]
    ) -> None:
        """One pass over the axes: combines for the demands, stores the outputs."""
        for demand in demands:
            self.puller.bind_positions(demand.request)
        self.scopes.open(axes)
        kinds: list[nest.CombineKind] = []
        values: list[SSAValue] = []
        for demand in demands:
            within = self.within(demand.extents, axes)
            point = merged_point(demand.request.point, reduced_axes(demand.op), within)
            request = self.puller.request(demand.op.operand, point, demand.request.conditions)
            value = self.puller.element(request)
            kind, given = self.puller.contribution(demand.op, value, within)
            kinds.append(kind)
            values.extend(given)
        places = [(output, self.swept_point(output, axes)) for output in outputs]
        store(self.puller, [(o, self.puller.request(o.core, point), ()) for o, point in places])
        results = list(self.scopes.close_reduce(kinds, values))
        for demand, kind in zip(demands, kinds, strict=True):
            own, results = results[: kind.width], results[kind.width :]
            self.puller.memo[demand.request] = self.puller.outcome(demand.op, own)
