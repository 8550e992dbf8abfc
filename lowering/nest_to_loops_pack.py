"""Prepares the factors of a contraction, so that its inner loop only reads what lies together.

A factor that is masked, computed, or strided badly is written to a temporary first, by a kernel of
its own: once, where the contraction reads it for every point of the other side. Two layouts:

- *plain*: the axes in the order of the source. A parallel and a reduced axis that only occur as
  ``a*p + b*r``, as in the window of a convolution, become one: the temporary is then the padded
  image, not the much larger matrix of its windows.
- *panels*: the vector axis is cut into tiles, and the lanes of a tile lie together innermost, so
  that each step of the reduction reads the next line of memory.

The contraction itself then runs with the lanes along one side and copies along the other; its
epilogue stays with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from plait.lowering.nest_to_loops_affine import Affine, Axis, Part, floordiv, mod
from plait.lowering.nest_to_loops_choice import Choice, choose_axes, direct
from plait.lowering.nest_to_loops_products import Contraction, Factor, Side, contraction
from plait.lowering.nest_to_loops_tree import (
    Condition,
    Index,
    Load,
    Loop,
    Node,
    Scalar,
    Store,
    Test,
    Tree,
    copied,
    expressions,
    merge_list,
    substitute_axis,
)

_STEPS = 1024
"""Steps of a reduction after which a tile's factor no longer stays in the cache."""
_PARTIAL = 1 << 20
"""Most partial results."""


Entry = tuple[Axis, Affine]
"""An axis of a temporary, and its value in the axes of the contraction."""


@dataclass
class Packed:
    """The kernels that replace one, in launch order, and their temporaries."""

    trees: list[Tree]
    temporaries: list[MemRefType[Attribute]]
    values: list[SSAValue] = field(default_factory=list[SSAValue])


def pack(tree: Tree, vector_bytes: int) -> Packed | None:
    """The replacement of a kernel that is a contraction; None for any other."""
    found = contraction(tree)
    choice = None if found is None else choose_axes(tree, found, vector_bytes)
    if found is None or choice is None:
        return None
    return _Packing(tree, found, choice).packed()


def cut_contraction(tree: Tree, loop: Loop) -> tuple[Axis, int] | None:
    """Cuts a reduction so long that a tile's factor leaves the cache between two tiles, where the
    results are few beside the factors."""
    if tree.lanes is None:
        return None
    steps = prod(axis.extent for axis in loop.axes)
    points = prod(axis.extent for axis in tree.axes)
    pieces = steps // _STEPS
    axis = max(loop.axes, key=lambda axis: axis.extent)
    counts = [n for n in range(pieces, 2 * pieces + 1) if n > 1 and axis.extent % n == 0]
    if not counts or points * counts[0] > _PARTIAL:
        return None
    return axis, counts[0]


# -- sums of axes ----------------------------------------------------------------------------


@dataclass
class Sum:
    """An axis ``u = a*p + b*r - low``."""

    axis: Axis
    p: Axis
    r: Axis
    a: int
    b: int
    low: int

    @property
    def value(self) -> Affine:
        """What it is in the axes it is made of."""
        terms = Affine.build(-self.low, {self.p: self.a, self.r: self.b})
        return terms


def _recombined(value: Affine, s: Sum) -> Affine | None:
    """``value`` in terms of ``s.axis``; None where its two axes occur otherwise."""
    p, r = value.coefficient(s.p), value.coefficient(s.r)
    if p * s.b != r * s.a or p % s.a:
        return None
    result = Affine(value.const)
    for atom, coefficient in value.terms:
        if atom is s.p or atom is s.r:
            continue
        part = Affine.of(atom)
        if isinstance(atom, Part):
            inner = _recombined(atom.inner, s)
            if inner is None:
                return None
            part = (floordiv if atom.kind == "div" else mod)(inner, atom.divisor)
        result = result + part.scaled(coefficient)
    times = p // s.a
    return result + Affine.of(s.axis).scaled(times) + Affine(times * s.low)


def _ratio(values: Sequence[Affine], p: Axis, r: Axis) -> Sum | None:
    """The sum in which ``p`` and ``r`` first occur."""
    for value in values:
        a, b = value.coefficient(p), value.coefficient(r)
        if a and b:
            common = gcd(a, b) * (1 if a > 0 else -1)
            a, b = a // common, b // common
            ends = [0, b * (r.extent - 1)]
            extent = a * (p.extent - 1) + abs(b) * (r.extent - 1) + 1
            return Sum(Axis(f"{p.name}{r.name}", extent), p, r, a, b, min(ends))
    return None


def _rewrite(nodes: list[Node], s: Sum) -> bool:
    """Puts ``s`` in place of its axes everywhere; False, with nothing changed, where it cannot."""

    def of(value: Affine) -> Affine:
        found = _recombined(value, s)
        assert found is not None
        return found

    if any(_recombined(e, s) is None for node in nodes for e in expressions(node)):
        return False
    for node in nodes:
        if isinstance(node, Load | Store):
            node.offset = of(node.offset)
        if isinstance(node, Load | Store | Test):
            node.conditions = [Condition(of(c.value), c.equal) for c in node.conditions]
        if isinstance(node, Index):
            node.value = of(node.value)
    return True


# -- the kernels -----------------------------------------------------------------------------


@dataclass
class _Packing:
    """One contraction being prepared."""

    tree: Tree
    found: Contraction
    choice: Choice
    trees: list[Tree] = field(default_factory=list[Tree])
    temporaries: list[MemRefType[Attribute]] = field(default_factory=list[MemRefType[Attribute]])
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    loads: dict[SSAValue, Load] = field(default_factory=dict[SSAValue, Load])
    """What reads a packed factor, by its value."""
    tile: Axis | None = None
    lane: Axis | None = None

    def packed(self) -> Packed:
        """All kernels, the contraction last."""
        for number, side in enumerate(self.found.sides):
            for factor in side.factors:
                if factor.value not in self.loads and not direct(
                    self.found, self.choice, number, factor
                ):
                    self._pack(number, side, factor)
        main = self._main()
        trees = [replace(part, arguments=main.arguments) for part in self.trees]
        return Packed([*trees, main], self.temporaries, self.values)

    # -- one factor --------------------------------------------------------------------------

    def _pack(self, number: int, side: Side, factor: Factor) -> None:
        nodes = copied(factor.nodes)
        sums = self._sums(nodes, side, number == self.choice.lane_side)
        if number != self.choice.lane_side:
            self._emit(factor, nodes, self._rows(side, factor, sums))
        elif sums:
            self._emit(factor, nodes, self._image(side, factor, sums))
        else:
            self._emit(factor, nodes, self._panels(side, factor, nodes))

    def _sums(self, nodes: list[Node], side: Side, lane_side: bool) -> list[Sum]:
        """The sums of a parallel and a reduced axis that the nodes now are in terms of."""
        found: list[Sum] = []
        free = list(self.found.loop.axes)
        for p in side.axes:
            for r in free:
                values = [e for node in nodes for e in expressions(node)]
                s = _ratio(values, p, r)
                if s is None or s.axis.extent >= p.extent * r.extent:
                    continue
                if lane_side and p is self.choice.lane_axis and s.a != 1:
                    continue  # neighbouring lanes must stay neighbours
                if _rewrite(nodes, s):
                    found.append(s)
                    free.remove(r)
                    break
        return found

    def _plain(self, axes: list[Axis], factor: Factor, sums: list[Sum]) -> list[Entry]:
        """The axes of a factor, sums in place of the later of their axes."""
        later = {max((s.p, s.r), key=axes.index): s for s in sums}
        gone = {axis for s in sums for axis in (s.p, s.r)}
        entries: list[Entry] = []
        for axis in axes:
            if axis in later:
                entries.append((later[axis].axis, later[axis].value))
            elif axis in factor.axes and axis not in gone:
                entries.append((axis, Affine.of(axis)))
        return entries

    def _rows(self, side: Side, factor: Factor, sums: list[Sum]) -> list[Entry]:
        """Parallel axes, then the reduction in its order: each copy reads a row."""
        return self._plain([*self.found.batch, *side.axes, *self.found.loop.axes], factor, sums)

    def _image(self, side: Side, factor: Factor, sums: list[Sum]) -> list[Entry]:
        """The axes as the largest load has them, what the lanes run along innermost."""
        load = max(factor.loads, key=lambda node: len(node.offset.terms))
        axes = [*self.found.batch, *side.axes, *self.found.loop.axes]
        axes.sort(key=lambda axis: -abs(load.offset.coefficient(axis)))
        entries = self._plain(axes, factor, sums)
        lane = self.choice.lane_axis
        entries.sort(key=lambda entry: lane in {atom for atom, _ in entry[1].terms})
        return entries

    def _panels(self, side: Side, factor: Factor, nodes: list[Node]) -> list[Entry]:
        """Tiles of lanes; cuts the vector axis in ``nodes``."""
        choice = self.choice
        if self.tile is None:
            name, lanes = choice.lane_axis.name, choice.lanes
            self.tile = Axis(f"{name}_tile", -(-choice.lane_axis.extent // lanes))
            self.lane = Axis(f"{name}_lane", lanes)
        self._cut(nodes)
        assert self.tile is not None and self.lane is not None
        outer = [a for a in [*self.found.batch, *side.axes] if a is not choice.lane_axis]
        axes = [*outer, self.tile, *self.found.loop.axes, self.lane]
        used = factor.axes | {self.tile, self.lane}
        return [(axis, Affine.of(axis)) for axis in axes if axis in used]

    def _cut(self, nodes: list[Node]) -> None:
        """Puts tile and lane in place of the vector axis; what lies past its end is not touched."""
        choice, tile, lane = self.choice, self.tile, self.lane
        assert tile is not None and lane is not None
        place = Affine.of(tile).scaled(lane.extent) + Affine.of(lane)
        extent = choice.lane_axis.extent
        if extent % lane.extent:
            inside = Condition(Affine(extent - 1) + place.scaled(-1), False)
            for node in nodes:
                if isinstance(node, Loop):
                    continue
                if isinstance(node, Load | Store) and node.offset.depends(choice.lane_axis):
                    node.conditions = [*node.conditions, inside]
        substitute_axis(nodes, choice.lane_axis, place)

    def _emit(self, factor: Factor, nodes: list[Node], entries: list[Entry]) -> None:
        """The kernel that writes a factor, and the load that reads it."""
        axes = [axis for axis, _ in entries]
        type = MemRefType(factor.value.type, [prod(axis.extent for axis in axes)])
        (buffer,) = Block(arg_types=[type]).args
        there, here = Affine(), Affine()
        for axis, value in entries:
            there = there.scaled(axis.extent) + Affine.of(axis)
            here = here.scaled(axis.extent) + value
        name = f"{self.tree.name}_pack{len(self.trees)}"
        body: list[Node] = [*nodes, Store(factor.value, buffer, there, [])]
        kernel = Tree(name, [], axes, body)
        self._transposing(kernel, factor)
        self.trees.append(kernel)
        self.temporaries.append(type)
        self.values.append(buffer)
        (element,) = Block(arg_types=[factor.value.type]).args
        self.loads[factor.value] = Load(element, buffer, here, [])

    def _transposing(self, kernel: Tree, factor: Factor) -> None:
        """Where neighbours read are not neighbours written: several lines of each, in turn."""
        last, lanes = kernel.axes[-1], self.choice.lanes
        for load in (node for node in kernel.body if isinstance(node, Load)):
            near = [a for a in kernel.axes if load.offset.coefficient(a) == 1]
            if len(factor.loads) == 1 and near and near[0] is not last and last.extent >= lanes:
                kernel.lanes = (last, lanes)
                kernel.copies = (near[0], min(4, near[0].extent))

    # -- the contraction ---------------------------------------------------------------------

    def _main(self) -> Tree:
        tree, choice = self.tree, self.choice
        body = [self._loop() if node is self.found.loop else node for node in tree.body]
        body = copied(body)
        axes = list(tree.axes)
        lane = choice.lane_axis
        if self.tile is not None and self.lane is not None:
            lane = self.lane
            place = axes.index(choice.lane_axis)
            axes[place : place + 1] = [self.tile, self.lane]
            self._cut(body)
        for node in body:
            if isinstance(node, Loop):
                merge_list(node.axes, node.body)
        arguments = [*tree.arguments, *self.values]
        found = Tree(tree.name, arguments, axes, body)
        found.lanes = (lane, choice.lanes)
        found.copies = (choice.jam_axis, choice.copies)
        return found

    def _loop(self) -> Loop:
        """The reduction, over packed factors."""
        loop = self.found.loop
        factors = [factor for side in self.found.sides for factor in side.factors]
        kept = {id(node) for f in factors if f.value not in self.loads for node in f.nodes}
        body: list[Node] = [node for node in loop.body if id(node) in kept]
        body += list(self.loads.values())
        values: dict[SSAValue, SSAValue] = {
            value: load.result for value, load in self.loads.items()
        }
        yielded: list[SSAValue] = []
        for value in loop.yielded:
            op = value.owner
            assert isinstance(op, Operation)
            product = op.clone(values.copy())
            body.append(Scalar(product))
            yielded.append(product.results[0])
        return replace(loop, axes=list(loop.axes), body=body, yielded=yielded)
