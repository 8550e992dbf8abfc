"""Chooses how a kernel's axes become loops: vector axis, jammed axis, tiles, and units of work.

The flattened parallel space is cut into *units*. Inside a unit run the remaining parallel loops,
then the jammed axis, then the vector axis, then the body. Two kinds of vectors:

- along a parallel axis: the whole body runs on vectors, a reduction keeps one accumulator per lane
  (column reductions, convolutions, matrix products, everything without a reduction);
- along reduction axes: each reduction keeps a vector of partial results (row reductions).

The cheaper kind by :func:`_cost` is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from plait.lowering.llvm_types import byte_size
from plait.lowering.nest_to_loops_affine import Axis
from plait.lowering.nest_to_loops_jam import SharingWork, choose_jams
from plait.lowering.nest_to_loops_keep import CHEAP
from plait.lowering.nest_to_loops_tree import (
    Load,
    Loop,
    Node,
    Scalar,
    Store,
    Tree,
    updates_in_place,
    walk,
)

UNIT_WORK = 4_000
"""Elementary operations worth one unit."""
_ACCUMULATORS = 16
"""Vector registers of sums that a reduction down columns keeps."""
STREAM_BYTES = 1 << 22
"""Results from which on stores go past the caches."""
_GATHER = 2.0
_MATH = 12.0
_HORIZONTAL = 12.0


@dataclass
class Dim:
    """One dimension of the unit space: ``axis`` in steps of ``tile``."""

    axis: Axis
    tile: int
    count: int


@dataclass
class LoopPlan:
    """The choices for one kernel."""

    lane_axis: Axis | None = None
    lanes: int = 1
    jams: list[tuple[Axis, int]] = field(default_factory=list[tuple[Axis, int]])
    """Axes whose iterations run side by side in copies of the body, and how many."""
    dims: list[Dim] = field(default_factory=list[Dim])
    """Outer dimensions, slowest first; together the units."""
    inner: list[Dim] = field(default_factory=list[Dim])
    """Dimensions that run inside a unit, slowest first."""
    split: int = 0
    """If not 0: the first inner dimension runs in blocks of this many steps, a block per unit."""
    loops: dict[int, tuple[Axis, int]] = field(default_factory=dict[int, tuple[Axis, int]])
    """Vector axis and lanes of reductions, by ``id`` of the loop."""
    units: int = 1
    unit_work: int = 1
    in_order: bool = False


def element_bytes(buffer: SSAValue) -> int:
    """Bytes of an element of a buffer."""
    assert isa(buffer.type, MemRefType)
    return byte_size(buffer.type.element_type)


def buffer_bytes(buffer: SSAValue) -> int:
    """Bytes of a buffer."""
    assert isa(buffer.type, MemRefType)
    return prod(buffer.type.get_shape()) * element_bytes(buffer)


def _access_cost(node: Load | Store, axis: Axis, lanes: int) -> float:
    """Cost of one element of an access, vectorised along ``axis``."""
    masked = any(condition.value.depends(axis) for condition in node.conditions)
    if node.offset.hidden(axis) or node.offset.data_dependent():
        return _GATHER
    stride = node.offset.coefficient(axis)
    if stride == 0:
        return 1.0 / lanes if isinstance(node, Load) else _GATHER
    if abs(stride) != 1 or (stride == -1 and isinstance(node, Store)):
        return _GATHER
    if masked:
        return 3.0 / lanes if element_bytes(node.buffer) >= 4 else _GATHER
    return 1.5 / lanes


def _plain_cost(node: Node) -> float:
    if isinstance(node, Scalar):
        return _MATH if node.op.name.startswith("math.") and node.op.name not in CHEAP else 1.0
    if isinstance(node, Load | Store):
        return 1.0 + 0.5 * len(node.conditions)
    return 1.0


def _vector_cost(nodes: list[Node], axis: Axis, lanes: int) -> float:
    """Cost per element of running ``nodes`` on vectors along ``axis``."""
    total = 0.0
    for node in nodes:
        if isinstance(node, Loop):
            total += prod(a.extent for a in node.axes) * _vector_cost(node.body, axis, lanes)
        elif isinstance(node, Load | Store):
            total += _access_cost(node, axis, lanes)
        else:
            total += _plain_cost(node) / lanes
    return total


def _scalar_cost(nodes: list[Node]) -> float:
    """Cost of running ``nodes`` once, without vectors."""
    total = 0.0
    for node in nodes:
        if isinstance(node, Loop):
            total += prod(a.extent for a in node.axes) * (_scalar_cost(node.body) + 1.0)
        else:
            total += _plain_cost(node)
    return total


def reduction_lanes(extent: int, cap: int) -> int:
    """Lanes for a reduction over ``extent``: a divisor if there is a good one."""
    if extent < 4:
        return 1
    for lanes in (cap, cap // 2, cap // 4):
        if lanes >= 4 and extent % lanes == 0:
            return lanes
    if extent >= 4 * cap:
        return cap
    lanes = 4
    while lanes * 2 <= min(cap, extent):
        lanes *= 2
    return lanes


def parallel_lanes(extent: int, cap: int) -> int:
    """Lanes along a parallel axis: at most its extent."""
    lanes = 1
    while lanes * 2 <= min(cap, extent):
        lanes *= 2
    if lanes > 4 and extent % lanes and extent % (lanes // 2) == 0 and extent < 4 * lanes:
        return lanes // 2
    return lanes


def _loop_choice(loop: Loop, cap: int) -> tuple[Axis, int, float] | None:
    """Best vector axis of a reduction without inner loops: (axis, lanes, total cost)."""
    if loop.mode != "reduce" or any(isinstance(node, Loop) for node in loop.body):
        return None
    best: tuple[Axis, int, float] | None = None
    volume = prod(axis.extent for axis in loop.axes)
    for axis in loop.axes:
        lanes = reduction_lanes(axis.extent, cap)
        if lanes == 1:
            continue
        cost = volume * _vector_cost(loop.body, axis, lanes) + _HORIZONTAL * len(loop.kinds)
        if best is None or cost < best[2]:
            best = (axis, lanes, cost)
    return best


def _sweep_choice(loop: Loop, cap: int) -> tuple[Axis, int, float] | None:
    """Best vector axis of a sweep that stores what inner reductions give: (axis, lanes, cost)."""
    best: tuple[Axis, int, float] | None = None
    if loop.kinds or loop.mode != "reduce":
        return best
    volume = prod(axis.extent for axis in loop.axes)
    for axis in loop.axes:
        lanes = parallel_lanes(axis.extent, cap)
        if lanes > 1:
            cost = volume * _vector_cost(loop.body, axis, lanes)
            if best is None or cost < best[2]:
                best = (axis, lanes, cost)
    return best


def _reduction_cost(
    nodes: list[Node], vector_bytes: int, found: dict[int, tuple[Axis, int]]
) -> float:
    """Cost per unit with vectors only inside reductions; fills ``found``."""
    total = 0.0
    for node in nodes:
        if not isinstance(node, Loop):
            total += _plain_cost(node)
            continue
        volume = prod(axis.extent for axis in node.axes)
        plain = volume * (_scalar_cost(node.body) + 1.0)
        cap = _lane_cap([node], [], vector_bytes)
        choice = _loop_choice(node, cap)
        if choice is not None and choice[2] < plain:
            found[id(node)] = (choice[0], choice[1])
            total += choice[2]
        elif any(isinstance(inner, Loop) for inner in node.body):
            inside: dict[int, tuple[Axis, int]] = {}
            cost = volume * (_reduction_cost(node.body, vector_bytes, inside) + 1.0)
            sweep = _sweep_choice(node, cap)
            if sweep is not None and sweep[2] < cost:
                inside, cost = {id(node): (sweep[0], sweep[1])}, sweep[2]
            found.update(inside)
            total += cost
        else:
            total += plain
    return total


def _moving(nodes: list[Node], axes: list[Axis]) -> Iterator[Load | Store]:
    """The accesses that move with the innermost axis around them."""
    for node in nodes:
        if isinstance(node, Loop):
            yield from _moving(node.body, node.axes or axes)
        elif isinstance(node, Load | Store) and (not axes or node.offset.depends(axes[-1])):
            yield node


def _lane_cap(nodes: list[Node], axes: list[Axis], vector_bytes: int) -> int:
    """Vector elements to work on at once: two registers of f32, one with much arithmetic."""
    widest = max((element_bytes(n.buffer) for n in _moving(nodes, axes)), default=4)
    registers = 1 if _has_math(nodes) and widest >= 8 else 2
    return max(4, registers * vector_bytes // max(4, min(widest, 8)))


def _has_math(nodes: list[Node]) -> bool:
    return any(
        isinstance(n, Scalar) and n.op.name.startswith("math.") and n.op.name not in CHEAP
        for n in walk(nodes)
    )


def _sharing_work(tree: Tree, plan: LoopPlan) -> SharingWork | None:
    """The loads of the kernel's reductions, for the choice of jammed axes."""
    loops: list[Loop] = []
    around = dict[int, tuple[Axis | None, int]]()
    for node in walk(tree.body):
        if isinstance(node, Loop) and node.mode == "reduce":
            chosen = plan.loops.get(id(node)) or around.get(id(node))
            around[id(node)] = chosen or (plan.lane_axis, plan.lanes)
            for inner in node.body if chosen else ():
                around[id(inner)] = chosen or (None, 1)
            if node.kinds:
                loops.append(node)
    loads: list[tuple[Load, Axis]] = []
    lanes = plan.lanes
    for loop in loops:
        axis, width = around[id(loop)]
        lanes = max(lanes, width)
        if axis is not None and prod(a.extent for a in loop.axes) >= 8:
            own = [n for n in loop.body if isinstance(n, Load) and n.buffer not in tree.locals]
            # What is the same at every point had better not decide how many points to do at once.
            if any(node.offset.depends(other) for node in own for other in tree.axes):
                loads += [(node, axis) for node in own]
    if not loads or len(list(walk(tree.body))) > 120:
        return None
    axes = [axis for axis in tree.axes if axis is not plan.lane_axis and axis.extent > 1]
    results = max(len(loop.kinds) for loop in loops)
    return SharingWork(loads, axes, results, lanes, plan.lane_axis is not None)


def _writes_rows(tree: Tree) -> bool:
    """Whether sweeps write large results: rows side by side would then want the same places of the
    nearest cache, and lines half written leave for memory."""
    loops = [node for node in tree.body if isinstance(node, Loop)]
    stores = [node.buffer for node in walk(loops) if isinstance(node, Store)]
    results = [buffer for buffer in stores if buffer not in tree.locals]
    return any(buffer_bytes(buffer) >= STREAM_BYTES for buffer in results)


def choose(tree: Tree, vector_bytes: int) -> LoopPlan:
    """The loop plan of a kernel."""
    cap = _lane_cap(tree.body, tree.axes, vector_bytes)
    plan = LoopPlan(in_order=updates_in_place(tree))
    if tree.lanes is not None:
        plan.lane_axis, plan.lanes = tree.lanes
        plan.jams = [] if tree.copies is None or tree.copies[1] == 1 else [tree.copies]
        _lay_out(tree, plan, _vector_cost(tree.body, plan.lane_axis, plan.lanes))
        return plan
    loops: dict[int, tuple[Axis, int]] = {}
    best_cost = _reduction_cost(tree.body, vector_bytes, loops)
    for axis in tree.axes:
        lanes = parallel_lanes(axis.extent, cap)
        if lanes < 2 or tree.locals:
            continue
        cost = _vector_cost(tree.body, axis, lanes)
        if cost < best_cost:
            best_cost = cost
            plan.lane_axis, plan.lanes = axis, lanes
    if plan.lane_axis is None:
        plan.loops = loops
    rows_apart = plan.lane_axis is None and _writes_rows(tree)
    work = None if plan.in_order or rows_apart else _sharing_work(tree, plan)
    if work is not None:
        plan.jams = choose_jams(work, vector_bytes)
        plan.loops = {key: (axis, min(n, work.lanes)) for key, (axis, n) in plan.loops.items()}
    if plan.lane_axis is not None and not plan.jams and not _has_math(tree.body):
        plan.lanes = _column_lanes(tree, plan.lane_axis, plan.lanes, vector_bytes)
    _lay_out(tree, plan, best_cost)
    return plan


def _column_lanes(tree: Tree, axis: Axis, lanes: int, vector_bytes: int) -> int:
    """More lanes for a reduction down columns, so that each row is read in long pieces."""
    loops = [node for node in tree.body if isinstance(node, Loop)]
    if not loops or any(loop.mode != "reduce" or not loop.kinds for loop in loops):
        return lanes
    nodes = [node for loop in loops for node in walk(loop.body)]
    loads = [node for node in nodes if isinstance(node, Load)]
    if len(nodes) > 16 or any(
        isinstance(node, Loop) or (isinstance(node, Load) and node.conditions) for node in nodes
    ):
        return lanes
    if any(_access_cost(node, axis, lanes) >= _GATHER for node in loads):
        return lanes
    results = max(len(loop.kinds) for loop in loops)
    limit = max(1, _ACCUMULATORS // results) * vector_bytes // 4
    others = prod(other.extent for other in tree.axes if other is not axis)
    while lanes * 2 <= min(limit, axis.extent) and others * (axis.extent // (lanes * 2)) >= 4:
        lanes *= 2
    return lanes


def _lay_out(tree: Tree, plan: LoopPlan, cost: float) -> None:
    """Orders the parallel axes and cuts units off them."""
    dims: list[Dim] = []
    jammed = [axis for axis, _ in plan.jams]
    for axis in tree.axes:
        if axis is not plan.lane_axis and axis not in jammed:
            dims.append(Dim(axis, 1, axis.extent))
    if plan.lane_axis is not None:
        dims.append(Dim(plan.lane_axis, plan.lanes, -(-plan.lane_axis.extent // plan.lanes)))
    for axis, size in reversed(plan.jams):
        dims.append(Dim(axis, size, -(-axis.extent // size)))
    work = max(1.0, cost * plan.lanes * prod(size for _, size in plan.jams))
    inner: list[Dim] = []
    empty = any(dim.count == 0 for dim in dims)
    while dims and work < UNIT_WORK and not empty:
        dim = dims.pop()
        inner.insert(0, dim)
        steps = max(1, int(UNIT_WORK / work))
        if dim.count > 2 * steps:
            plan.split = steps
            work *= steps
            break
        work *= dim.count
    plan.dims, plan.inner = dims, inner
    blocks = -(-inner[0].count // plan.split) if plan.split else 1
    plan.units = prod(dim.count for dim in dims) * blocks
    plan.unit_work = int(work)
