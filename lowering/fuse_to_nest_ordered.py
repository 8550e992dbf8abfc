"""Outputs of scans and scatters, computed in order along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import SSAValue

from plait.dialects import lazy
from plait.lowering.fuse_to_nest_elementwise import combine
from plait.lowering.fuse_to_nest_outputs import Output, store
from plait.lowering.fuse_to_nest_points import merged_point_at
from plait.lowering.fuse_to_nest_pull import Puller
from plait.lowering.fuse_to_nest_scalars import compute_type, identity_of
from plait.passes.analysis.affine import add, index, scale
from plait.passes.analysis.index_maps import Condition, Point


def store_scans(
    puller: Puller, point: Point, scans: Sequence[lazy.ScanOp], outputs: Sequence[Output]
) -> None:
    """Runs scans in order along their axis and stores what follows from them at each step.

    ``point`` is that of the kernel's parallel axes, which are all axes but the scanned one.
    """
    scalars, scopes = puller.scalars, puller.scopes
    axis = scans[0].axis.value.data
    extent = lazy.shape_of(scans[0].result)[axis]
    [loop] = puller.nested_axes([extent])
    at = (*point[:axis], index(loop.index), *point[axis:])
    types = [lazy.element_type_of(scan.result) for scan in scans]
    inits = [
        scalars.const(identity_of(scan.kind.data, type), compute_type(type))
        for scan, type in zip(scans, types, strict=True)
    ]
    carried = scopes.open([loop], [init.type for init in inits])
    values: list[SSAValue] = []
    for scan, type, running in zip(scans, types, carried, strict=True):
        element = puller.element(puller.request(scan.operand, at))
        value = combine(scalars, scan.kind.data, type, running, element)
        puller.memo[puller.request(scan.result, at)] = value
        values.append(value)
    for output in outputs:
        store(puller, [(output, puller.request(output.core, at), ())])
    scopes.close_sequential(inits, values)


def store_scatter(puller: Puller, point: Point, output: Output) -> None:
    """Copies the destination along the axis, then applies the updates in order."""
    scalars, scopes = puller.scalars, puller.scopes
    op = output.core.owner
    assert isinstance(op, lazy.ScatterOp)
    axis, type = op.axis.value.data, lazy.element_type_of(op.result)
    extent = output.shape[axis]
    if extent:
        [copied] = puller.nested_axes([extent])
        scopes.open([copied])
        at = (*point[:axis], index(copied.index), *point[axis:])
        value = puller.element(puller.request(op.destination, at))
        stored = scalars.stored(value, type)
        scopes.store(stored, output.buffer, output.stored_at(at, puller.space), ())
        scopes.close_reduce([], [])
    [loop] = puller.nested_axes([lazy.shape_of(op.indices)[axis]])
    scopes.open([loop])
    at = (*point[:axis], index(loop.index), *point[axis:])
    raw = puller.element(puller.request(op.indices, at))
    update = puller.element(puller.request(op.updates, at))
    number = scalars.cast(raw, lazy.element_type_of(op.indices), i64)
    position = scopes.emit(arith.IndexCastOp(number, IndexType()))
    slot = puller.space.new_index((-(2**62), 2**62))
    scopes.bind(slot, position)
    inside = (Condition(index(slot)), Condition(add(scale(index(slot), -1), extent - 1)))
    target = output.stored_at(merged_point_at(at, axis, index(slot)), puller.space)
    old = scopes.load_here(output.buffer, target, inside)
    old = scalars.loaded(old, type)
    value = combine(scalars, op.kind.data, type, old, update)
    stored = scalars.stored(value, type)
    scopes.store(stored, output.buffer, target, inside)
    scopes.close_sequential([], [])
