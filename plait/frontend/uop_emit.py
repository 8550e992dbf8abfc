"""Emits the operations of tinygrad-like graphs as ``lazy`` operations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.lazy import element_type_of, shape_of
from plait.dtypes import TYPE_OF_NAME, ElementType, is_bool, is_float
from plait.errors import PlaitError
from plait.frontend.node import LARGEST_SPLAT

Shape = tuple[int, ...]
Literal = float | int | bool
"""An untyped scalar: it takes the type of what it meets."""

_TYPES: dict[str, ElementType] = {
    "bool": TYPE_OF_NAME["bool"],
    **{f"i{width}": TYPE_OF_NAME[f"int{width}"] for width in (8, 16, 32, 64)},
    **{f"u{width}": TYPE_OF_NAME[f"uint{width}"] for width in (8, 16, 32, 64)},
    **{f"f{width}": TYPE_OF_NAME[f"float{width}"] for width in (16, 32, 64)},
    "bf16": TYPE_OF_NAME["bfloat16"],
    "weakint": TYPE_OF_NAME["int32"],
    "weakfloat": TYPE_OF_NAME["float32"],
}
_LITERALS: dict[str, float] = {
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
    "invalid": 0.0,
}
_UNARY: dict[str, type[lazy.UnaryOp]] = {
    "exp2": lazy.Exp2Op,
    "log2": lazy.Log2Op,
    "sin": lazy.SinOp,
    "sqrt": lazy.SqrtOp,
    "recip": lazy.ReciprocalOp,
    "neg": lazy.NegOp,
    "trunc": lazy.TruncOp,
}
_BINARY: dict[str, type[lazy.BinaryOp]] = {
    "add": lazy.AddOp,
    "sub": lazy.SubOp,
    "mul": lazy.MulOp,
    "fdiv": lazy.DivOp,
    "cdiv": lazy.DivOp,
    "cmod": lazy.RemOp,
    "max": lazy.MaxOp,
    "pow": lazy.PowOp,
    "and": lazy.AndOp,
    "or": lazy.OrOp,
    "xor": lazy.XorOp,
    "shl": lazy.ShlOp,
    "shr": lazy.ShrOp,
}


def _negative(value: Literal) -> Literal:
    return -value


def _reciprocal(value: Literal) -> Literal:
    return 1.0 / value if value else math.copysign(math.inf, value)


_FOLDED: dict[str, Callable[..., Literal]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": _negative,
    "recip": _reciprocal,
}
"""Arithmetic on untyped literals, done exactly as Python does."""
_COMPARE = {
    "lt": lazy.ComparePredicate.LT,
    "eq": lazy.ComparePredicate.EQ,
    "ne": lazy.ComparePredicate.NE,
}
_REDUCE = {
    "add": lazy.ReduceKind.SUM,
    "mul": lazy.ReduceKind.PROD,
    "max": lazy.ReduceKind.MAX,
}
_REDUCE_BOOL = {
    "add": lazy.ReduceKind.ANY,
    "mul": lazy.ReduceKind.ALL,
    "max": lazy.ReduceKind.ANY,
}
_IDENTITIES = ("contiguous_backward", "detach")


def element_type(name: str) -> ElementType:
    """The element type that a graph calls ``name``."""
    if name not in _TYPES:
        raise PlaitError(f"unknown dtype '{name}': expected one of {', '.join(_TYPES)}")
    return _TYPES[name]


@dataclass(frozen=True)
class Node:
    """One operation of a graph."""

    op: str
    dtype: str
    shape: Shape
    sources: tuple[int, ...] = ()
    """Positions in the graph; they come before this one."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else it needs: ``perm``, ``axes``, ``pads``, ``bounds``, ``value``, ``fn``."""

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Node:
        """A node from its mapping form (``op``, ``dt``, ``sh``, ``in``, ...)."""
        return Node(
            record["op"], record["dt"], tuple(record["sh"]), tuple(record.get("in", ())), record
        )


def tensor_type(dtype: str, shape: Sequence[int]) -> TensorType[Attribute]:
    return TensorType(element_type(dtype), tuple(shape))


def scalar_attr(value: Literal, type: Attribute) -> FloatAttr | IntegerAttr:
    """A literal as an attribute of an element type; integers wrap to its width."""
    if is_float(type):
        return FloatAttr(float(value), cast(AnyFloat, type))
    integer = int(value) if math.isfinite(value) else 0
    if is_bool(type):
        return IntegerAttr(int(value != 0), cast(IntegerType, type))
    return IntegerAttr(integer, cast(IntegerType, type), truncate_bits=True)


class Emitter:
    """Appends operations to a block; every method returns the new value."""

    def __init__(self, block: Block):
        self.block = block

    def add(self, operation: Operation) -> SSAValue:
        self.block.add_op(operation)
        return operation.results[0]

    # Values and their types

    def value_of(self, value: SSAValue | Literal, dtype: str) -> SSAValue:
        """A value of the element type ``dtype``; a literal becomes a scalar constant."""
        type = element_type(dtype)
        if isinstance(value, SSAValue):
            return self.cast(value, type)
        return self.constant(value, type, ())

    def constant(self, value: Literal, type: Attribute, shape: Shape) -> SSAValue:
        """One value everywhere; a large one is an expand, as a dense attribute holds every byte."""
        held = shape if prod(shape) <= LARGEST_SPLAT else (1,) * len(shape)
        data = [scalar_attr(value, type).value.data]
        dense = DenseIntOrFPElementsAttr.from_list(TensorType(type, held), data)  # pyright: ignore
        return self.broadcast(self.add(lazy.ConstantOp(dense)), shape)  # pyright: ignore

    def cast(self, value: SSAValue, type: Attribute) -> SSAValue:
        if element_type_of(value) == type:
            return value
        return self.add(lazy.CastOp(value, TensorType(type, shape_of(value))))

    def broadcast(self, value: SSAValue, shape: Shape) -> SSAValue:
        """Broadcasts as numpy does: leading axes are added, axes of extent 1 grow."""
        have = shape_of(value)
        if have == shape:
            return value
        if len(have) < len(shape):
            value = self.reshape(value, (1,) * (len(shape) - len(have)) + have)
        return self.add(lazy.ExpandOp(value, shape)) if shape_of(value) != shape else value

    def operands(
        self, sources: Sequence[SSAValue | Literal], type: Attribute, shape: Shape
    ) -> list[SSAValue]:
        """Sources converted to one element type and broadcast to one shape."""
        return [
            self.broadcast(self.cast(source, type), shape)
            if isinstance(source, SSAValue)
            else self.constant(source, type, shape)
            for source in sources
        ]

    # Operations

    def operation(self, node: Node, sources: Sequence[SSAValue | Literal]) -> SSAValue | Literal:
        """The value of any node but inputs, stores and afters."""
        op, shape = node.op, node.shape
        if op == "const":
            return self.literal(node, shape)
        folded = self.folded(node, sources)
        if folded is not None:
            return folded
        if op in _UNARY or op in _BINARY or op in ("where", "mulacc", "floormod", "floordiv"):
            operands = self.arithmetic_operands(node, sources)
            return self.arithmetic(op, operands)
        if op in _COMPARE:
            return self.compare(_COMPARE[op], sources, shape)
        if op in ("cast", "bitcast"):
            return self.convert(node, sources[0])
        if op == "stack":
            return self.stack(sources, node.dtype, shape)
        if op == "reduce":
            return self.reduce(node, self.value_of(sources[0], node.dtype))
        if op in ("contiguous", "copy"):
            return self.add(lazy.MaterializeOp(self.value_of(sources[0], node.dtype)))
        if not sources:
            raise PlaitError(f"operation '{op}' is not supported: it has no meaning on tensors")
        return self.view(node, self.value_of(sources[0], node.dtype))

    def literal(self, node: Node, shape: Shape) -> SSAValue | Literal:
        value = node.fields["value"]
        value = _LITERALS[value] if isinstance(value, str) else value
        if node.dtype.startswith("weak") and not shape:
            return value
        return self.constant(value, element_type(node.dtype), shape)

    def folded(self, node: Node, sources: Sequence[SSAValue | Literal]) -> Literal | None:
        """Arithmetic among untyped literals stays an untyped literal."""
        literals = [source for source in sources if not isinstance(source, SSAValue)]
        if node.op in _IDENTITIES and len(literals) == 1:
            return literals[0]
        if node.op not in _FOLDED or len(literals) != len(sources):
            return None
        return _FOLDED[node.op](*literals) if node.dtype.startswith("weak") else None

    def arithmetic_operands(
        self, node: Node, sources: Sequence[SSAValue | Literal]
    ) -> list[SSAValue]:
        type, shape = element_type(node.dtype), node.shape
        if node.op != "where":
            return self.operands(sources, type, shape)
        [condition] = self.operands(sources[:1], TYPE_OF_NAME["bool"], shape)
        return [condition, *self.operands(sources[1:], type, shape)]

    def arithmetic(self, op: str, operands: list[SSAValue]) -> SSAValue:
        if op in _UNARY:
            return self.add(_UNARY[op](*operands))
        if op in _BINARY:
            return self.add(_BINARY[op](*operands))
        if op == "where":
            return self.add(lazy.SelectOp(*operands))
        if op == "mulacc":
            return self.add(lazy.AddOp(self.add(lazy.MulOp(*operands[:2])), operands[2]))
        return self.floored(op, *operands)

    def floored(self, op: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Division rounded towards minus infinity, or its remainder."""
        type, shape = element_type_of(lhs), shape_of(lhs)
        remainder = self.add(lazy.RemOp(lhs, rhs))
        zero = self.constant(0, type, shape)
        below = lazy.ComparePredicate.LT
        signs_differ = self.add(
            lazy.XorOp(
                self.compare(below, (remainder, zero), shape),
                self.compare(below, (rhs, zero), shape),
            )
        )
        inexact = self.compare(lazy.ComparePredicate.NE, (remainder, zero), shape)
        adjust = self.add(lazy.AndOp(signs_differ, inexact))
        if op == "floormod":
            return self.add(lazy.SelectOp(adjust, self.add(lazy.AddOp(remainder, rhs)), remainder))
        quotient = self.add(lazy.DivOp(lhs, rhs))
        if is_float(type):
            return self.add(lazy.FloorOp(quotient))
        one = self.constant(1, type, shape)
        return self.add(lazy.SelectOp(adjust, self.add(lazy.SubOp(quotient, one)), quotient))

    def compare(
        self,
        predicate: lazy.ComparePredicate,
        sources: Sequence[SSAValue | Literal],
        shape: Shape,
    ) -> SSAValue:
        types = [element_type_of(s) for s in sources if isinstance(s, SSAValue)]
        literals = [s for s in sources if not isinstance(s, SSAValue)]
        type = max(types, key=_rank, default=TYPE_OF_NAME["float64"])
        if not is_float(type) and any(isinstance(literal, float) for literal in literals):
            type = TYPE_OF_NAME["float32"]
        lhs, rhs = self.operands(sources, type, shape)
        boolean = TensorType(TYPE_OF_NAME["bool"], shape)
        return self.add(lazy.CompareOp(predicate, lhs, rhs, boolean))

    def convert(self, node: Node, source: SSAValue | Literal) -> SSAValue:
        type = element_type(node.dtype)
        if not isinstance(source, SSAValue):
            return self.constant(source, type, node.shape)
        if node.op == "cast":
            return self.cast(source, type)
        return self.add(lazy.BitcastOp(source, TensorType(type, shape_of(source))))

    def stack(self, sources: Sequence[SSAValue | Literal], dtype: str, shape: Shape) -> SSAValue:
        parts = [self.reshape(self.value_of(source, dtype), (1, *shape[1:])) for source in sources]
        return self.add(lazy.ConcatOp(parts, 0))

    def reduce(self, node: Node, operand: SSAValue) -> SSAValue:
        kinds = _REDUCE_BOOL if is_bool(element_type_of(operand)) else _REDUCE
        return self.add(lazy.ReduceOp(kinds[node.fields["fn"]], operand, node.fields["axes"]))

    # Views

    def reshape(self, value: SSAValue, shape: Shape) -> SSAValue:
        return self.add(lazy.ReshapeOp(value, shape)) if shape_of(value) != shape else value

    def view(self, node: Node, value: SSAValue) -> SSAValue:
        """A movement operation of the graph."""
        rank = len(shape_of(value))
        match node.op:
            case "reshape":
                return self.reshape(value, node.shape)
            case "expand":
                return self.broadcast(value, node.shape)
            case "permute":
                return self.add(lazy.PermuteOp(value, node.fields["perm"]))
            case "flip":
                return self.add(lazy.FlipOp(value, node.fields["axes"]))
            case "shrink":
                starts, stops = zip(*node.fields["bounds"], strict=True) if rank else ((), ())
                return self.add(lazy.SliceOp(value, starts, stops, (1,) * rank))
            case "pad":
                low, high = zip(*node.fields["pads"], strict=True) if rank else ((), ())
                zero = scalar_attr(0, element_type_of(value))
                return self.add(lazy.PadOp(value, low, high, (0,) * rank, zero))
            case op if op in _IDENTITIES:
                return value
            case op:
                raise PlaitError(f"operation '{op}' is not supported")

    def put_back(self, node: Node, whole: SSAValue, part: SSAValue) -> SSAValue:
        """``whole`` with ``part`` in place of what the view ``node`` shows of it."""
        match node.op:
            case "reshape":
                return self.reshape(part, shape_of(whole))
            case "permute":
                inverse = sorted(
                    range(len(node.fields["perm"])), key=node.fields["perm"].__getitem__
                )
                return self.add(lazy.PermuteOp(part, inverse))
            case "flip":
                return self.add(lazy.FlipOp(part, node.fields["axes"]))
            case "shrink":
                return self.put_box(whole, part, node.fields["bounds"])
            case _:
                return part

    def put_box(self, whole: SSAValue, part: SSAValue, bounds: Sequence[Sequence[int]]) -> SSAValue:
        """Grows ``part`` to ``whole`` an axis at a time, with what lies beside it in ``whole``."""
        extents = shape_of(whole)
        for axis in reversed(range(len(bounds))):
            pieces: list[SSAValue] = []
            start, stop = bounds[axis]
            for low, high, middle in (
                (0, start, False),
                (start, stop, True),
                (stop, extents[axis], False),
            ):
                if middle:
                    pieces.append(part)
                elif low < high:
                    box = (
                        [tuple(b) for b in bounds[:axis]]
                        + [(low, high)]
                        + [(0, extent) for extent in extents[axis + 1 :]]
                    )
                    starts, stops = zip(*box, strict=True)
                    pieces.append(self.add(lazy.SliceOp(whole, starts, stops, (1,) * len(extents))))
            part = self.add(lazy.ConcatOp(pieces, axis)) if len(pieces) > 1 else part
        return part


def _rank(type: Attribute) -> tuple[bool, int]:
    """Orders element types by what a comparison of two converts to."""
    return is_float(type), list(TYPE_OF_NAME.values()).index(type)  # pyright: ignore
