"""Builds level 4 operations for the nodes of a kernel: accesses, conditions, inner loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from plait.lowering.llvm_memory import LINE
from plait.lowering.llvm_types import is_float
from plait.lowering.nest_to_loops_affine import Affine, Atom, Axis, Part
from plait.lowering.nest_to_loops_combine import combine, start_value
from plait.lowering.nest_to_loops_plan import (
    STREAM_BYTES,
    LoopPlan,
    buffer_bytes,
    element_bytes,
)
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
    simplify,
    walk,
)

_INDEX = IndexType()
_WINDOW = 11
"""Longest axis that counts as the window of a convolution or a pooling."""


def index_attr(value: int) -> IntegerAttr[IndexType]:
    """An attribute of type index."""
    return IntegerAttr(value, _INDEX)


class Emitter:
    """Emits the body of one function."""

    def __init__(self, tree: Tree, plan: LoopPlan) -> None:
        self.tree = tree
        self.plan = plan
        types = [argument.type for argument in tree.arguments]
        self.entry = Block(arg_types=[*types, _INDEX, _INDEX])
        self.block = self.entry
        self.constants: dict[tuple[str, Attribute], arith.ConstantOp] = {}
        self.values: dict[SSAValue, SSAValue] = {}
        self.flat: dict[SSAValue, SSAValue] = {}
        self.axes: dict[Axis, SSAValue] = {}
        self.scopes: list[dict[Affine, SSAValue]] = [{}]
        self.vector = None if plan.lane_axis is None else (plan.lane_axis, plan.lanes)
        """The axis of the vectors here, and their lanes."""
        read = {node.buffer for node in walk(tree.body) if isinstance(node, Load)}
        self.streamed = {
            buffer
            for buffer in tree.arguments
            if buffer not in read and buffer_bytes(buffer) >= STREAM_BYTES
        }
        """Results too large to be worth room in the caches."""

    # -- pieces ----------------------------------------------------------------------------

    def add(self, op: Operation) -> SSAValue:
        """Appends ``op``; returns its first result."""
        self.block.add_op(op)
        return op.results[0]

    def constant(self, value: float | int, type: Attribute) -> SSAValue:
        """A constant in the entry block, each once."""
        key = (repr(value), type)
        if key not in self.constants:
            if is_float(type):
                attribute = FloatAttr(float(value), type)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]
            else:
                attribute = IntegerAttr(int(value), type)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]
            self.constants[key] = arith.ConstantOp(attribute)  # pyright: ignore[reportUnknownArgumentType]
        return self.constants[key].result

    def start(self, kind: str, type: Attribute) -> float | int:
        """What a reduction starts from."""
        return start_value(kind, type)

    def index(self, value: int) -> SSAValue:
        """An index constant."""
        return self.constant(value, _INDEX)

    def affine(self, value: Affine) -> SSAValue:
        """The value of an affine expression here."""
        for scope in reversed(self.scopes):
            if value in scope:
                return scope[value]
        total: SSAValue | None = None
        for atom, coefficient in value.ordered():
            part = self.atom(atom)
            if coefficient != 1:
                part = self.add(arith.MuliOp(part, self.index(coefficient)))
            total = part if total is None else self.add(arith.AddiOp(total, part))
        if total is None:
            total = self.index(value.const)
        elif value.const:
            total = self.add(arith.AddiOp(total, self.index(value.const)))
        self.scopes[-1][value] = total
        return total

    def offset_in(self, buffer: SSAValue, offset: Affine) -> SSAValue:
        """Where an element of a flat buffer is."""
        return self.affine(offset)

    def atom(self, atom: Atom) -> SSAValue:
        """The value of an axis, a data-dependent index, a quotient or a remainder."""
        if isinstance(atom, Axis):
            return self.axes[atom]
        if isinstance(atom, SSAValue):
            return self.values[atom]
        return self.part(atom)

    def part(self, part: Part) -> SSAValue:
        """A quotient or remainder, rounding down, through unsigned division."""
        low, _ = part.inner.bounds()
        divisor = self.index(part.divisor)
        if low is None:
            return self._signed_part(part, divisor)
        lift = 0 if low >= 0 else -(low // part.divisor)
        value = self.affine(part.inner + Affine(lift * part.divisor))
        if part.kind == "mod":
            return self.add(arith.RemUIOp(value, divisor))
        found = self.add(arith.DivUIOp(value, divisor))
        return self.add(arith.SubiOp(found, self.index(lift))) if lift else found

    def _signed_part(self, part: Part, divisor: SSAValue) -> SSAValue:
        value = self.affine(part.inner)
        rest = self.add(arith.RemSIOp(value, divisor))
        negative = self.add(arith.CmpiOp(rest, self.index(0), "slt"))
        lifted = self.add(arith.AddiOp(rest, divisor))
        mod = self.add(arith.SelectOp(negative, lifted, rest))
        if part.kind == "mod":
            return mod
        return self.add(arith.DivSIOp(self.add(arith.SubiOp(value, mod)), divisor))

    def conditions(self, conditions: Sequence[Condition]) -> SSAValue:
        """All of the conditions, as i1."""
        total: SSAValue | None = None
        for condition in conditions:
            value = self.affine(Affine.build(0, dict(condition.value.terms)))
            limit = self.index(-condition.value.const)
            found = self.add(arith.CmpiOp(value, limit, "eq" if condition.equal else "sge"))
            total = found if total is None else self.add(arith.AndIOp(total, found))
        return total if total is not None else self.constant(1, i1)

    def nested(
        self,
        low: SSAValue,
        high: SSAValue,
        carried: Sequence[SSAValue],
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        attributes: dict[str, Attribute] | None = None,
    ) -> Sequence[SSAValue]:
        """An ``scf.for`` with step 1 whose body is emitted by ``body(index, carried)``."""
        block = Block(arg_types=[_INDEX, *(value.type for value in carried)])
        outer, self.block = self.block, block
        self.scopes.append({})
        results = body(block.args[0], block.args[1:])
        self.block.add_op(scf.YieldOp(*results))
        self.scopes.pop()
        self.block = outer
        loop = scf.ForOp(low, high, self.index(1), list(carried), Region(block))
        loop.attributes.update(attributes or {})
        self.block.add_op(loop)
        return loop.results

    # -- nodes -----------------------------------------------------------------------------

    def nodes(self, nodes: list[Node]) -> None:
        """Emits ``nodes`` in order."""
        for node in nodes:
            if isinstance(node, Scalar):
                self.block.add_op(node.op.clone(self.values))
            elif isinstance(node, Load):
                self.load(node)
            elif isinstance(node, Store):
                self.store(node)
            elif isinstance(node, Test):
                found = simplify(node.conditions)
                false = found is None
                self.values[node.result] = (
                    self.constant(0, i1) if false else self.conditions(found or [])
                )
            elif isinstance(node, Index):
                self.values[node.result] = self.affine(node.value)
            else:
                self.loop(node)

    def load(self, node: Load) -> None:
        """A load, under ``scf.if`` where conditions remain."""
        conditions = simplify(node.conditions)
        type = node.result.type
        zero = self.constant(0, type)
        if conditions is None:
            self.values[node.result] = zero
            return
        buffer = self.flat[node.buffer]
        offset = self.offset_in(node.buffer, node.offset)
        if not conditions:
            self.values[node.result] = self.add(memref.LoadOp.get(buffer, [offset]))
            return
        cond = self.conditions(conditions)
        load = memref.LoadOp.get(buffer, [offset])
        then = Block([load, scf.YieldOp(load)])
        other = Block([scf.YieldOp(zero)])
        self.values[node.result] = self.add(scf.IfOp(cond, [type], Region(then), Region(other)))

    def store(self, node: Store) -> None:
        """A store, under ``scf.if`` where conditions remain."""
        conditions = simplify(node.conditions)
        if conditions is None:
            return
        value = self.values[node.value]
        place = self.offset_in(node.buffer, node.offset)
        op = memref.StoreOp.get(value, self.flat[node.buffer], [place])
        if node.buffer in self.streamed and not conditions and self._whole_lines(node):
            op.attributes["plait.stream"] = UnitAttr()
        if not conditions:
            self.block.add_op(op)
            return
        cond = self.conditions(conditions)
        self.block.add_op(scf.IfOp(cond, [], Region(Block([op, scf.YieldOp()]))))

    def _whole_lines(self, node: Store) -> bool:
        """Whether vectors begin at multiples of a line from the start of the buffer."""
        if self.vector is None:
            return False
        axis, lanes = self.vector
        size = element_bytes(node.buffer)
        others = [c for atom, c in node.offset.terms if atom is not axis]
        return (
            axis.extent % lanes == 0
            and node.offset.coefficient(axis) == 1
            and not node.offset.hidden(axis)
            and all(step * size % LINE == 0 for step in [node.offset.const, lanes, *others])
        )

    # -- loops -----------------------------------------------------------------------------

    def loop(self, node: Loop) -> None:
        """A reduction, scan or sequential loop."""
        lane = self.plan.loops.get(id(node))
        order = self._order(node, lane[0] if lane else None)
        types = [result.type for result in node.results]
        if node.mode == "reduce":
            starts = [
                self.constant(self.start(kind, type), type)
                for kind, type in zip(_kinds_per_result(node.kinds), types, strict=True)
            ]
        else:
            starts = [self.values[init] for init in node.inits]
        outer, self.vector = self.vector, lane or self.vector
        results = self._level(node, order, 0, starts, lane)
        self.vector = outer
        self.values.update(zip(node.results, results, strict=True))

    def _level(
        self,
        node: Loop,
        order: list[Axis],
        depth: int,
        carried: Sequence[SSAValue],
        lane: tuple[Axis, int] | None,
    ) -> Sequence[SSAValue]:
        if depth == len(order):
            return self._innermost(node, carried)

        def body(index: SSAValue, inner: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.axes[order[depth]] = index
            return self._level(node, order, depth + 1, inner, lane)

        attributes: dict[str, Attribute] = {}
        if lane is not None:
            if depth == len(order) - 1:
                attributes["plait.lanes"] = index_attr(lane[1])
                if not node.kinds and not self.plan.in_order:
                    attributes["plait.overlap"] = UnitAttr()
            if depth == 0 and node.kinds:
                attributes["plait.width"] = index_attr(lane[1])
                names = [StringAttr(kind) for kind in _kinds_per_result(node.kinds)]
                attributes["plait.reduce"] = ArrayAttr(names)
        high = self.index(order[depth].extent)
        return self.nested(self.index(0), high, carried, body, attributes)

    def _innermost(self, node: Loop, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        self.values.update(zip(node.carried, carried, strict=False))
        self.nodes(node.body)
        values = [self.values[value] for value in node.yielded]
        if node.mode != "reduce":
            return values
        results: list[SSAValue] = []
        position = 0
        for kind in node.kinds:
            count = 2 if kind.startswith("arg") else 1
            window = slice(position, position + count)
            results += combine(self.add, kind, carried[window], values[window])
            position += count
        return results

    def _order(self, node: Loop, lane: Axis | None) -> list[Axis]:
        """Short axes that decide masks go outside, the vector axis innermost."""
        if node.mode != "reduce" or any(kind.startswith("arg") for kind in node.kinds):
            order = list(node.axes)
        else:
            masks = [
                condition.value
                for inner in walk(node.body)
                if isinstance(inner, Load | Store)
                for condition in inner.conditions
            ]
            order = sorted(
                node.axes,
                key=lambda axis: (
                    axis.extent > _WINDOW or not any(value.depends(axis) for value in masks)
                ),
            )
        if lane is not None:
            order.remove(lane)
            order.append(lane)
        return order


def _kinds_per_result(kinds: list[str]) -> list[str]:
    """An arg reduction has two results."""
    found: list[str] = []
    for kind in kinds:
        found.append(kind)
        if kind.startswith("arg"):
            found.append("argindex")
    return found
