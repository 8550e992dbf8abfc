"""Builds the GPU function of a kernel whose threads do several neighbouring points each: where
those are together in memory, one access fetches or writes all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import vector
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    IntegerType,
    MemRefType,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from plait.lowering.nest_to_gpu_emit import GpuEmitter
from plait.lowering.nest_to_loops_affine import Affine, Axis, substitute
from plait.lowering.nest_to_loops_tree import Load, Loop, Node, Store, Tree, substitute_axis

UNROLL = "plait.unroll"
"""Marks a loop of few steps that must become straight code, its vectors registers."""


class VectorEmitter(GpuEmitter):
    """Emits one kernel without loops, with ``width`` points a thread."""

    def __init__(self, tree: Tree, threads: int, width: int, lane: Axis) -> None:
        super().__init__(tree, threads)
        self.width = width
        self.lane = lane
        once = _stored_once(tree)
        whole = [n for n in tree.body if isinstance(n, Load | Store) and _is_whole(n, lane)]
        self.loads = [node for node in whole if isinstance(node, Load)]
        self.stores = [n for n in whole if isinstance(n, Store) and n.buffer in once]
        self.fetched: dict[int, SSAValue] = {}
        """The vector of a load, by its id."""
        self.gathered: dict[int, SSAValue] = {}
        """The vector of a store as far as it is made."""

    def point(self, point: SSAValue) -> None:
        self.place(self.tree.axes, point)
        for load in self.loads:
            op = vector.LoadOp(self.flat[load.buffer], [self.first(load)], self.type(load))
            self.fetched[id(load)] = self.add(op)
        results = self.nested(
            self.index(0),
            self.index(self.width),
            [self.zeros(self.type(store)) for store in self.stores],
            self.each,
            {UNROLL: UnitAttr()},
        )
        for store, result in zip(self.stores, results, strict=True):
            place = [self.first(store)]
            self.block.add_op(vector.StoreOp(result, self.flat[store.buffer], place))

    def each(self, lane: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """What is done at one of the points."""
        self.axes[self.lane] = lane
        self.gathered = {id(s): value for s, value in zip(self.stores, carried, strict=True)}
        self.nodes(self.tree.body)
        return [self.gathered[id(store)] for store in self.stores]

    def load(self, node: Load) -> None:
        """An element of what was fetched."""
        if id(node) not in self.fetched:
            super().load(node)
            return
        lane = self.axes[self.lane]
        op = vector.ExtractOp(self.fetched[id(node)], [lane], node.result.type)
        self.values[node.result] = self.add(op)

    def store(self, node: Store) -> None:
        """An element of what will be written."""
        if id(node) not in self.gathered:
            super().store(node)
            return
        vector_, lane = self.gathered[id(node)], self.axes[self.lane]
        op = vector.InsertOp(self.values[node.value], vector_, [lane])
        self.gathered[id(node)] = self.add(op)

    def first(self, node: Load | Store) -> SSAValue:
        """Where the vector of an access starts."""
        return self.affine(substitute(node.offset, self.lane, Affine()))

    def type(self, node: Load | Store) -> VectorType[Attribute]:
        """The type of the vector of an access."""
        return VectorType(_element(node.buffer), [self.width])

    def zeros(self, type: VectorType[Attribute]) -> SSAValue:
        """A vector to be filled."""
        return self.add(ConstantOp(DenseIntOrFPElementsAttr.from_list(type, [0])))  # pyright: ignore


def vectorized(tree: Tree, threads: int, width: int) -> VectorEmitter | None:
    """The emitter of a kernel whose innermost axis has vectors of a width; None where no access
    would be one, or the order of accesses matters."""
    inner = tree.axes[-1] if tree.axes else Axis("", 1)
    if inner.extent % width or any(isinstance(node, Loop) for node in tree.body):
        return None
    if _reads_what_it_wrote(tree.body):
        return None
    outer, lane = Axis(inner.name, inner.extent // width), Axis("lane", width)
    body = [replace(node) for node in tree.body]
    substitute_axis(body, inner, Affine.of(outer).scaled(width) + Affine.of(lane))
    split = replace(tree, axes=[*tree.axes[:-1], outer], body=body)
    emitter = VectorEmitter(split, threads, width, lane)
    return emitter if emitter.loads or emitter.stores else None


def _is_whole(node: Load | Store, lane: Axis) -> bool:
    """Whether an access has all of an aligned vector, unconditionally."""
    element, offset = _element(node.buffer), node.offset
    if node.conditions or element == IntegerType(1) or not isinstance(element, FixedBitwidthType):
        return False
    if offset.coefficient(lane) != 1 or offset.hidden(lane) or offset.const % lane.extent:
        return False
    return all(c % lane.extent == 0 for atom, c in offset.terms if atom is not lane)


def _element(buffer: SSAValue) -> Attribute:
    type = buffer.type
    assert isa(type, MemRefType)
    return type.element_type


def _stored_once(tree: Tree) -> set[SSAValue]:
    """The buffers of one store only: those of several keep their order."""
    counts = Counter(node.buffer for node in tree.body if isinstance(node, Store))
    return {buffer for buffer, count in counts.items() if count == 1}


def _reads_what_it_wrote(nodes: Sequence[Node]) -> bool:
    written: set[SSAValue] = set()
    for node in nodes:
        if isinstance(node, Store):
            written.add(node.buffer)
        elif isinstance(node, Load) and node.buffer in written:
            return True
    return False
