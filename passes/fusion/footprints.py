"""Footprints of groups, from the access analysis."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, cast

from xdsl.ir import BlockArgument, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dtypes import itemsize
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.footprint import Footprint, Load
from plait.passes.fusion.plan import Plan
from plait.passes.fusion.views import Strided, apply


def footprints_of(plan: Plan) -> list[Footprint]:
    """The footprint of every group of a plan, in its order."""
    return [footprint_of(group) for group in plan.groups]


def footprint_of(group: GroupOp) -> Footprint:
    """The footprint of one group."""
    reduces = [op for op in group.block.ops if isinstance(op, lazy.ReduceOp | lazy.ArgReduceOp)]
    other = any(isinstance(op, lazy.ScanOp | lazy.ScatterOp) for op in group.block.ops)
    spaces = {(lazy.shape_of(op.operand), _axes(op)) for op in reduces}
    written = sum(bytes_of(value) for value in group.outputs)
    late_roots = list(group.yield_op.arguments)
    loads = list[Load]()
    if len(spaces) == 1 and not other:
        ((space, reduced),) = spaces
        loads += _loads(group, [op.operand for op in reduces], space, late=False)
        loads += _loads(group, late_roots, None, late=True)
        return Footprint.of(space, reduced, loads, written)
    shapes = {lazy.shape_of(value) for value in late_roots}
    space = shapes.pop() if len(shapes) == 1 and not spaces and not other else None
    loads += _loads(group, [op.operand for op in reduces], None, late=False)
    loads += _loads(group, late_roots, space, late=False)
    return Footprint.of(space, (), loads, written)


def _axes(op: Operation) -> tuple[int, ...]:
    if isinstance(op, lazy.ArgReduceOp):
        return (op.axis.value.data,)
    return tuple(sorted(cast(Any, op).axes.get_values()))


def _loads(
    group: GroupOp, roots: Iterable[SSAValue], space: tuple[int, ...] | None, late: bool
) -> list[Load]:
    """The loads under some values, in the space of those values."""
    loads = list[Load]()
    seen = set[SSAValue]()
    pending = list(roots)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        chain = list[Operation]()
        base = value
        while isinstance(base.owner, lazy.MovementOp) and len(base.owner.operands) == 1:
            chain.append(base.owner)
            base = base.owner.operands[0]
        if isinstance(base, BlockArgument):
            loads.append(_load(group, base, chain, lazy.shape_of(value), space, late))
            continue
        owner = base.owner
        if isinstance(owner, lazy.ReduceOp | lazy.ArgReduceOp):
            continue
        assert isinstance(owner, Operation)
        pending.extend(owner.operands)
    return loads


def _load(
    group: GroupOp,
    base: SSAValue,
    chain: list[Operation],
    at: tuple[int, ...],
    space: tuple[int, ...] | None,
    late: bool,
) -> Load:
    buffer = group.inputs[cast(BlockArgument, base).index]
    view: Strided | None = Strided.whole(lazy.shape_of(base))
    for op in reversed(chain):
        view = None if view is None else apply(op, view)
    size = prod(lazy.shape_of(base))
    full = view is not None and prod(view.shape) == size and 0 not in view.strides
    if view is not None and full and (space is None or at == space):
        access = "bijective"
    else:
        access = "broadcast" if view is not None and 0 in view.strides else "injective"
    where = (view.strides, view.offset, at) if view is not None else tuple(map(str, chain))
    element = itemsize(lazy.element_type_of(base))
    distinct = min(size, prod(at))
    return Load(buffer, late, access, where, distinct * element)
