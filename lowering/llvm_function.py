"""Prints one ``func.func`` of scf, arith, math and memref operations as an LLVM function.

Structured control flow becomes blocks and phis directly. Two loop attributes, which change nothing
in what a loop means, choose how it is printed:

- ``plait.lanes = W``: W consecutive iterations at a time, as vectors. The iterations must be
  independent, or be a reduction (below).
- ``plait.jam = R``: R consecutive iterations side by side in one body; needs independence.
- ``plait.overlap`` (with either): the last iterations may run twice, which saves the remainder.
- ``plait.reduce = ["sum", ...]`` with ``plait.width = W`` on the outermost loop of a reduction
  whose innermost loop has ``plait.lanes``: the carried values are kept per lane and combined at
  the end.

A store with ``plait.stream`` may go past the caches: the vectors it writes begin a multiple of 64
bytes after the start of the buffer. It does where the buffer is known to begin at such a multiple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.hints import isa

from plait.lowering.llvm_memory import emit_load, emit_store, flat_offset
from plait.lowering.llvm_ops import HANDLERS, emit_elementwise
from plait.lowering.llvm_text import Body
from plait.lowering.llvm_types import (
    literal,
    llvm_type,
    memory_type,
    vector,
)
from plait.lowering.llvm_values import Value, as_lanes, compare_linear, index_arithmetic

_INDEX_OPS: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
}
_PURE_IF = (memref.LoadOp, arith.ConstantOp, scf.YieldOp)


@dataclass
class FunctionPrinter:
    """The state of printing one function."""

    body: Body
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    copies: int = 1
    """How many copies the innermost jammed loop asks for; 1 outside."""
    jammed: scf.ForOp | None = None
    """The innermost jammed loop."""
    lanes: int = 1
    """How many lanes varying values have here; 1 outside vector loops."""
    mask: Value | None = None
    """Which lanes (or copies) are active; None for all."""
    allocas: list[str] = field(default_factory=list[str])
    aligned: set[SSAValue] = field(default_factory=set[SSAValue])
    """Buffers that begin at a multiple of 64 bytes."""

    # -- operands --------------------------------------------------------------------------

    def get(self, value: SSAValue) -> Value:
        """What ``value`` is printed as."""
        return self.values[value]

    def scalar(self, value: SSAValue, op: Operation, what: str) -> str:
        """A value that must be the same in all lanes and copies."""
        found = self.values[value]
        if not found.uniform or len(found.names) > 1:
            raise DiagnosticException(
                f"target llvm: {what} of '{op.name}' depends on a vectorised or jammed loop; "
                "remove plait.lanes or plait.jam from that loop"
            )
        return found.copy(0)

    def spread(self, value: Value, type: Attribute, lanes: int, copies: int) -> Value:
        """``value`` with exactly ``copies`` texts of ``lanes`` lanes."""
        names = tuple(as_lanes(self.body, value, c, lanes, type) for c in range(copies))
        return Value(names, lanes)

    # -- blocks ----------------------------------------------------------------------------

    def block(self, block: Block) -> list[Value]:
        """Prints the operations of ``block``; returns the operands of its terminator."""
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                return [self.values[operand] for operand in op.operands]
            self.operation(op)
        return []

    def operation(self, op: Operation) -> None:
        """Prints one operation."""
        if type(op) in HANDLERS:
            self.elementwise(op)
        elif isinstance(op, arith.ConstantOp):
            self.constant(op)
        elif isinstance(op, memref.LoadOp):
            self.load(op)
        elif isinstance(op, memref.StoreOp):
            self.store(op)
        elif isinstance(op, scf.ForOp):
            self.loop(op)
        elif isinstance(op, scf.IfOp):
            self.conditional(op)
        elif isinstance(op, memref.AllocaOp):
            self.alloca(op)
        elif isinstance(op, memref.ReinterpretCastOp):
            self.values[op.result] = self.values[op.source]
        elif isinstance(op, func.ReturnOp):
            self.body.do("ret void")
        else:
            raise DiagnosticException(
                f"target llvm: no lowering for '{op.name}' inside a kernel; expected func, scf, "
                "arith, math and memref operations"
            )

    def constant(self, op: arith.ConstantOp) -> None:
        """Constants are literals in place."""
        value = op.value
        if isinstance(value, IntegerAttr | FloatAttr):
            text = literal(value.value.data, op.result.type)
        else:
            raise DiagnosticException(f"target llvm: constant {value} is not a scalar")
        self.values[op.result] = Value((text,))

    def elementwise(self, op: Operation) -> None:
        """Prints an elementwise operation once, or once per copy, on scalars or on lanes."""
        given = [self.values[operand] for operand in op.operands]
        if isinstance(op.results[0].type, IndexType):
            name = _INDEX_OPS.get(type(op))
            if name is not None:
                found = index_arithmetic(self.body, name, given[0], given[1])
                if found is not None:
                    self.values[op.results[0]] = found
                    return
        if (
            isinstance(op, arith.IndexCastOp)
            and given[0].stride
            and op.result.type == IntegerType(64)
        ):
            self.values[op.result] = given[0]
            return
        if isinstance(op, arith.CmpiOp) and isinstance(op.lhs.type, IndexType):
            found = compare_linear(self.body, op.predicate.value.data, given, self.lanes)
            if found is not None:
                self.values[op.result] = found
                return
        lanes = 1 if all(value.uniform for value in given) else self.lanes
        copies = max(len(value.names) for value in given)
        names: list[str] = []
        for copy in range(copies):
            args = [
                as_lanes(self.body, value, copy, lanes, operand.type)
                for value, operand in zip(given, op.operands, strict=True)
            ]
            names.append(emit_elementwise(self.body, op, args, lanes))
        self.values[op.results[0]] = Value(tuple(names), lanes)

    # -- memory ----------------------------------------------------------------------------

    def _offset(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> Value:
        type = buffer.type
        assert isa(type, MemRefType)
        given = [self.values[index] for index in indices]
        return flat_offset(self.body, type, given, self.lanes, self.copies)

    def _mask(self, copy: int) -> tuple[str | None, int]:
        if self.mask is None:
            return None, 1
        return self.mask.copy(copy), self.mask.lanes

    def load(self, op: memref.LoadOp) -> None:
        """A load: one per copy that differs."""
        offset = self._offset(op.memref, op.indices)
        pointer = self.values[op.memref].names[0]
        copies = max(len(offset.names), len(self.mask.names) if self.mask else 1)
        found = [
            emit_load(self.body, op.res.type, pointer, offset, copy, self.lanes, *self._mask(copy))
            for copy in range(copies)
        ]
        self.values[op.res] = Value(tuple(name for name, _ in found), found[0][1])

    def store(self, op: memref.StoreOp) -> None:
        """A store: one per copy that differs."""
        offset = self._offset(op.memref, op.indices)
        value = self.values[op.value]
        pointer = self.values[op.memref].names[0]
        stream = "plait.stream" in op.attributes and source_of(op.memref) in self.aligned
        copies = max(len(offset.names), len(value.names), len(self.mask.names) if self.mask else 1)
        for copy in range(copies):
            emit_store(
                self.body,
                op.value.type,
                pointer,
                offset,
                value,
                copy,
                self.lanes,
                *self._mask(copy),
                stream,
            )

    def alloca(self, op: memref.AllocaOp) -> None:
        """Static stack memory, in the entry block."""
        type = op.memref.type
        assert isinstance(type, MemRefType)
        if self.copies > 1 or self.lanes > 1:
            raise DiagnosticException("target llvm: memref.alloca inside a vectorised loop")
        count = 1
        for extent in type.get_shape():
            count *= extent
        name = self.body.fresh()
        element = memory_type(type.element_type)
        self.allocas.append(f"  {name} = alloca [{count} x {element}], align 64")
        self.values[op.memref] = Value((name,))

    # -- conditionals ----------------------------------------------------------------------

    def conditional(self, op: scf.IfOp) -> None:
        """A branch where one condition rules all lanes; else both sides under masks."""
        cond = self.values[op.cond]
        if cond.literal is None and cond.names[0] in ("true", "false") and len(cond.names) == 1:
            region = op.true_region if cond.names[0] == "true" else op.false_region
            found = self.block(region.block) if region.blocks else []
            self.values.update(zip(op.results, found, strict=True))
            return
        single = cond.uniform and len(cond.names) == 1
        vectors = self.lanes > 1 or self.copies > 1
        if single and not (vectors and _is_pure(op)):
            self._branch(op, cond.names[0])
        else:
            self._predicate(op, cond)

    def _branch(self, op: scf.IfOp, cond: str) -> None:
        body = self.body
        sides = [("then", op.true_region), ("else", op.false_region)]
        labels = {stem: body.label(stem) for stem, _ in sides}
        after = body.label("endif")
        body.do(f"br i1 {cond}, label %{labels['then']}, label %{labels['else']}")
        arrivals: list[tuple[str, list[Value]]] = []
        for stem, region in sides:
            body.start(labels[stem])
            found = self.block(region.block) if region.blocks else []
            spread = [
                self.spread(value, result.type, self.lanes, self.copies)
                for value, result in zip(found, op.results, strict=True)
            ]
            arrivals.append((body.block, spread))
            body.do(f"br label %{after}")
        body.start(after)
        (then_block, then_values), (else_block, else_values) = arrivals
        for result, then, other in zip(op.results, then_values, else_values, strict=True):
            type = vector(llvm_type(result.type), self.lanes)
            names = tuple(
                body.emit(f"phi {type} [ {a}, %{then_block} ], [ {b}, %{else_block} ]")
                for a, b in zip(then.names, other.names, strict=True)
            )
            self.values[result] = Value(names, self.lanes)

    def _predicate(self, op: scf.IfOp, cond: Value) -> None:
        outer = self.mask
        i1 = IntegerType(1)
        self.mask = self.both(outer, cond)
        then = self.block(op.true_region.block)
        other: list[Value] = []
        if op.false_region.blocks:
            self.mask = self.both(outer, self._not(cond))
            other = self.block(op.false_region.block)
        self.mask = outer
        yielded = op.true_region.block.last_op
        for index, (result, a, b) in enumerate(zip(op.results, then, other, strict=True)):
            assert yielded is not None
            source = yielded.operands[index].owner
            if (
                isinstance(source, memref.LoadOp)
                and source.parent_op() is op
                and b.names == (literal(0, result.type),)
            ):
                self.values[result] = a  # a masked load gives 0 already
                continue
            values = (cond, a, b)
            lanes = 1 if all(value.uniform for value in values) else self.lanes
            copies = max(len(value.names) for value in values)
            type, flag = vector(llvm_type(result.type), lanes), vector("i1", lanes)
            names: list[str] = []
            for copy in range(copies):
                c = as_lanes(self.body, cond, copy, lanes, i1)
                x = as_lanes(self.body, a, copy, lanes, result.type)
                y = as_lanes(self.body, b, copy, lanes, result.type)
                names.append(self.body.emit(f"select {flag} {c}, {type} {x}, {type} {y}"))
            self.values[result] = Value(tuple(names), lanes)

    def both(self, outer: Value | None, cond: Value) -> Value:
        if outer is None:
            return cond
        return self._logic("and", outer, cond)

    def _not(self, cond: Value) -> Value:
        return self._logic("xor", cond, Value(("true",)))

    def _logic(self, op: str, a: Value, b: Value) -> Value:
        lanes = 1 if a.uniform and b.uniform else self.lanes
        i1 = IntegerType(1)
        names = tuple(
            self.body.emit(
                f"{op} {vector('i1', lanes)} {as_lanes(self.body, a, c, lanes, i1)}, "
                f"{as_lanes(self.body, b, c, lanes, i1)}"
            )
            for c in range(max(len(a.names), len(b.names)))
        )
        return Value(names, lanes)

    # -- loops -----------------------------------------------------------------------------

    def loop(self, op: scf.ForOp) -> None:
        """Dispatches on the loop's attributes."""
        from plait.lowering import llvm_loops

        llvm_loops.emit_loop(self, op)


def source_of(buffer: SSAValue) -> SSAValue:
    """The buffer that casts show."""
    while isinstance(buffer.owner, memref.ReinterpretCastOp):
        buffer = buffer.owner.source
    return buffer


def _is_pure(op: scf.IfOp) -> bool:
    """Whether both sides only load and compute, so that both may run under masks."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if type(inner) not in HANDLERS and not isinstance(inner, _PURE_IF):
                    return False
    return bool(op.results)


def kinds_of(op: scf.ForOp) -> list[str] | None:
    """The reduction kinds of ``plait.reduce``."""
    attribute = op.attributes.get("plait.reduce")
    if not isinstance(attribute, ArrayAttr):
        return None
    kinds = cast("ArrayAttr[Attribute]", attribute).data
    return [kind.data for kind in kinds if isinstance(kind, StringAttr)]


def int_of(op: Operation, name: str) -> int:
    """An integer attribute, 1 if absent."""
    attribute = op.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 1
