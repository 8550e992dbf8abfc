"""Demand-driven scalar code: an element of a tensor value at a point, on any group of operations.

Every element is asked for by its value and its point; the code for it is placed once, as far out
as it can be. Chains of operations may be of any length: the evaluation keeps its own stack.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, i8, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects import fuse, lazy
from plait.dialects.nest import CombineKind
from plait.dtypes import is_bool, is_unsigned
from plait.lowering.fuse_to_nest_elementwise import combine, elementwise
from plait.lowering.fuse_to_nest_points import (
    add_expr,
    merged_point,
    merged_point_at,
    reduced_axes,
)
from plait.lowering.fuse_to_nest_scalars import (
    Scalars,
    compute_type,
    identity_of,
    is_integer,
    width,
)
from plait.lowering.fuse_to_nest_scopes import Axis, Scopes
from plait.passes.analysis.affine import ZERO, Expr, index
from plait.passes.analysis.index_maps import Condition, Point, in_range, sources


@dataclass(frozen=True)
class Request:
    """An element of a value: at a point, needed only where the conditions hold."""

    value: SSAValue
    point: Point
    conditions: tuple[Condition, ...] = ()

    def indices(self) -> set[int]:
        exprs = (*self.point, *(condition.expr for condition in self.conditions))
        return {number for expr in exprs for number in expr.indices()}


@dataclass(frozen=True)
class Kept:
    """A row of a value in local memory."""

    buffer: SSAValue
    axes: tuple[int, ...]
    """The axes along which it is kept."""
    home: Mapping[int, Expr]
    """Where the row is on the other axes."""

    def holds(self, point: Point) -> bool:
        """Whether an element is in this row."""
        return all(point[axis] == at for axis, at in self.home.items())


Steps = Generator[Request, SSAValue, SSAValue]
"""Code in the making: yields what it needs, returns the element."""


class Puller:
    """Emits the elements of one kernel's values."""

    def __init__(self, scopes: Scopes, buffers: Mapping[SSAValue, SSAValue]):
        self.scopes = scopes
        self.space = scopes.space
        self.buffers = buffers
        """The kernel's buffer for each value that lives in memory."""
        self.scalars = Scalars(scopes.emit)
        self.memo: dict[Request, SSAValue] = {}
        self.kept: dict[SSAValue, Kept] = {}
        self.gathered: dict[Request, int] = {}
        self.gather_of: dict[int, Request] = {}
        """The gather that reads each index of :attr:`gathered` from data."""
        self._nested = 0

    # Requests

    def request(
        self, value: SSAValue, point: Point, conditions: Sequence[Condition] = ()
    ) -> Request:
        """The request in normal form: conditions only guard elements that may not exist."""
        point = tuple(map(self.scopes.short, point))
        if in_range(point, lazy.shape_of(value), self.space):
            return Request(value, point)
        return Request(value, point, tuple(dict.fromkeys(conditions)))

    def gather_index(self, request: Request) -> int:
        """The index of the space that stands for the position a gather reads from data."""
        if request not in self.gathered:
            op = cast(lazy.GatherOp, request.value.owner)
            extent = lazy.shape_of(op.source)[op.axis.value.data]
            number = self.space.new_index((0, max(extent - 1, 0)))
            self.gathered[request] = number
            self.gather_of[number] = request
        return self.gathered[request]

    def behind(self, indices: Iterable[int]) -> set[int]:
        """The indices, and those behind them: where gathers read, what long expressions use."""
        found: set[int] = set()
        pending = list(indices)
        while pending:
            number = pending.pop()
            if number in found:
                continue
            found.add(number)
            if number in self.gather_of:
                pending.extend(self.gather_of[number].indices())
            elif number in self.scopes.named:
                pending.extend(self.scopes.named[number].indices())
        return found

    def positions(self, request: Request) -> list[Request]:
        """The positions that gathers read to know where a request is."""
        numbers = self.behind(request.indices())
        return [self.inputs(self.gather_of[n])[0] for n in numbers if n in self.gather_of]

    def bind_positions(self, request: Request) -> None:
        """Emits the positions that a request is at, so that its element can be."""
        # A gather at a gathered position has the higher number: in order, each finds its own.
        for number in sorted(self.behind(request.indices())):
            gather = self.gather_of.get(number)
            known = self.scopes.value_of.get(number)
            if gather is not None and (known is None or not self.scopes.is_open(known)):
                self.bind_gather(gather, self.element(self.inputs(gather)[0]))

    def inputs(self, request: Request) -> list[Request]:
        """What an element of anything but a reduction, scan or scatter is made of."""
        op, point, conditions = request.value.owner, request.point, request.conditions
        match op:
            case lazy.MovementOp():
                return [
                    self.request(s.value, s.point, (*conditions, *s.conditions))
                    for s in sources(op, point, self.space)
                ]
            case lazy.ElementwiseOp() | lazy.MaterializeOp() | fuse.KeepOp():
                return [self.request(operand, point, conditions) for operand in op.operands]
            case lazy.GatherOp():
                axis = op.axis.value.data
                at = index(self.gather_index(request))
                return [
                    self.request(op.indices, point, conditions),
                    self.request(op.source, (*point[:axis], at, *point[axis + 1 :]), conditions),
                ]
            case _:
                return []

    # Evaluation

    def element(self, request: Request) -> SSAValue:
        """The element of a request, in its compute type."""
        stack: list[tuple[Request, Steps]] = []
        wanted: Request | None = request
        answer: SSAValue | None = None
        while True:
            if wanted is not None:
                answer = self.recall(wanted)
                if answer is None:
                    stack.append((wanted, self.steps(wanted)))
            if not stack:
                assert answer is not None
                return answer
            current, steps = stack[-1]
            try:
                wanted = steps.send(cast(SSAValue, answer))
            except StopIteration as finished:
                answer = cast(SSAValue, finished.value)
                self.memo[current] = answer
                stack.pop()
                wanted = None

    def recall(self, request: Request) -> SSAValue | None:
        """What was emitted for a request, if its body is still open."""
        value = self.memo.get(request)
        return value if value is not None and self.scopes.is_open(value) else None

    def steps(self, request: Request) -> Steps:
        """The code of one element."""
        value, op = request.value, request.value.owner
        kept = self.kept.get(value)
        if kept is not None and kept.holds(request.point):
            inside = tuple(request.point[axis] for axis in kept.axes)
            return self.scopes.load(kept.buffer, inside, request.conditions)
            yield  # pragma: no cover - makes this a generator
        if value in self.buffers:
            loaded = self.scopes.load(self.buffers[value], request.point, request.conditions)
            return self.scalars.loaded(loaded, lazy.element_type_of(value))
        match op:
            case lazy.ConstantOp():
                return self.splat(op)
            case lazy.IotaOp():
                return self.iota(op, request.point)
            case lazy.RngBitsOp():
                return (yield from self.random_bits(op, request.point))
            case lazy.MovementOp():
                return (yield from self.moved(op, request))
            case lazy.GatherOp():
                return (yield from self.gather(request))
            case lazy.ReduceOp() | lazy.ArgReduceOp():
                return (yield from self.reduce(op, request))
            case lazy.ScanOp():
                return (yield from self.scan(op, request))
            case lazy.ScatterOp():
                return (yield from self.scatter(op, request))
            case _:
                operands: list[SSAValue] = []
                for needed in self.inputs(request):
                    operands.append((yield needed))
                assert isinstance(op, Operation)
                if isinstance(op, lazy.MaterializeOp | fuse.KeepOp):
                    return operands[0]
                return elementwise(self.scalars, op, operands)

    # Sources

    def splat(self, op: lazy.ConstantOp) -> SSAValue:
        type = lazy.element_type_of(op.result)
        # A constant without elements may be asked for by code that never runs.
        value = next(iter(cast(Any, op.value).iter_values()), 0)
        return self.scalars.const(value, compute_type(type))

    def iota(self, op: lazy.IotaOp, point: Point) -> SSAValue:
        expr = point[op.axis.value.data]
        type = lazy.element_type_of(op.result)
        number = self.integer(expr, i64)
        return self.scalars.cast(number, i64, type)

    def integer(self, expr: Expr, type: IntegerType) -> SSAValue:
        """An index expression as an integer."""
        if expr.is_constant:
            return self.scalars.const(expr.constant, type)
        return self.scopes.emit(arith.IndexCastOp(self.scopes.position(expr), type))

    def random_bits(self, op: lazy.RngBitsOp, point: Point) -> Steps:
        from plait.lowering.fuse_to_nest_random import threefry

        words: list[SSAValue] = []
        for word in (0, 1):
            words.append((yield self.request(op.key, (Expr(word),))))
        position = self.space.linearize(point, lazy.shape_of(op.result))
        counter = self.integer(position, i64)
        low = self.scopes.emit(arith.TruncIOp(counter, i32))
        shifted = self.scopes.emit(arith.ShRUIOp(counter, self.scalars.const(32, i64)))
        high = self.scopes.emit(arith.TruncIOp(shifted, i32))
        return threefry(self.scalars, words[0], words[1], low, high)

    # Movement

    def moved(self, op: lazy.MovementOp, request: Request) -> Steps:
        """The first source whose conditions hold, or padding."""
        found = sources(op, request.point, self.space)
        values: list[SSAValue] = []
        for needed in self.inputs(request):
            values.append((yield needed))
        if isinstance(op, lazy.PadOp):
            type = compute_type(lazy.element_type_of(op.result))
            result = self.scalars.const(cast(Any, op.value).value.data, type)
        elif values:
            result, values, found = values[-1], values[:-1], found[:-1]
        else:
            result = self.scalars.const(0, compute_type(lazy.element_type_of(op.results[0])))
        for value, source in zip(reversed(values), reversed(found), strict=True):
            if source.conditions:
                result = self.scalars.select(self.scopes.test(source.conditions), value, result)
            else:
                result = value
        return result

    def gather(self, request: Request) -> Steps:
        positions, taken = self.inputs(request)
        self.bind_gather(request, (yield positions))
        return (yield taken)

    def bind_gather(self, request: Request, raw: SSAValue) -> None:
        """Makes a number from data the position that a gather reads at."""
        op = cast(lazy.GatherOp, request.value.owner)
        extent = lazy.shape_of(op.source)[op.axis.value.data]
        position = self.clamped(raw, lazy.element_type_of(op.indices), extent)
        self.scopes.bind(self.gather_index(request), position)

    def clamped(self, raw: SSAValue, type: Attribute, extent: int) -> SSAValue:
        """An integer as a position within an axis."""
        number = self.widened(raw, type, extent)
        zero, last = (self.scalars.const(v, number.type) for v in (0, extent - 1))
        if not is_unsigned(type) or width(type) == 64:
            low = self.scopes.emit(arith.MaxSIOp(number, zero))
            wraps = is_unsigned(type) and width(type) == 64
            # A 64-bit unsigned number that looks negative is above every position.
            number = (
                self.scalars.select(self.scalars.cmpi("slt", number, zero), last, low)
                if (wraps)
                else low
            )
        number = self.scopes.emit(arith.MinSIOp(number, last))
        return self.scopes.emit(arith.IndexCastOp(number, IndexType()))

    def widened(self, raw: SSAValue, type: Attribute, extent: int) -> SSAValue:
        """A position from data as i32 where that holds every position of an axis, else as i64."""
        wide = i32 if extent < 2**31 and width(type) <= 32 and not is_unsigned(type) else i64
        return self.scalars.cast(raw, type, wide)

    # Reductions on demand

    def nested_axes(self, extents: Sequence[int]) -> list[Axis]:
        """New axes for a loop that some element needs of its own."""
        axes: list[Axis] = []
        for extent in extents:
            number = self.space.new_index((0, max(extent - 1, 0)))
            axes.append(Axis(number, f"n{self._nested}", extent))
            self._nested += 1
        return axes

    def reduce(self, op: lazy.ReduceOp | lazy.ArgReduceOp, request: Request) -> Steps:
        """A reduction as a loop of its own, where nothing larger shares it."""
        operand = op.operand
        axes_of = reduced_axes(op)
        extents = [lazy.shape_of(operand)[axis] for axis in axes_of]
        type = lazy.element_type_of(operand)
        if isinstance(op, lazy.ReduceOp) and prod(extents) == 0:
            kind = op.kind.data
            return self.scalars.const(identity_of(kind, type), compute_type(type))
        axes = self.nested_axes([extent for extent in extents if extent != 1])
        indices = iter(axes)
        within = [ZERO if extent == 1 else index(next(indices).index) for extent in extents]
        point = merged_point(request.point, axes_of, within)
        if not axes:
            value = yield self.request(operand, point, request.conditions)
            return (
                value
                if isinstance(op, lazy.ReduceOp)
                else self.scalars.const(0, compute_type(lazy.element_type_of(op.result)))
            )
        self.scopes.open(axes)
        value = yield self.request(operand, point, request.conditions)
        kinds, values = self.contribution(op, value, within)
        results = self.scopes.close_reduce([kinds], values)
        return self.outcome(op, results)

    def contribution(
        self, op: lazy.ReduceOp | lazy.ArgReduceOp, value: SSAValue, within: Sequence[Expr]
    ) -> tuple[CombineKind, list[SSAValue]]:
        """How a reduction combines: its kind, and what each element hands over."""
        type = lazy.element_type_of(op.operand)
        if isinstance(op, lazy.ReduceOp):
            kind = CombineKind(op.kind.data)
            if is_bool(type):
                logical = {CombineKind.MAX: CombineKind.ANY, CombineKind.MIN: CombineKind.ALL}
                return logical.get(kind, kind), [value]
            ordered = kind in (CombineKind.MAX, CombineKind.MIN)
            return kind, [self.biased(value, type) if ordered else value]
        kind = CombineKind.ARGMAX if isinstance(op, lazy.ArgmaxOp) else CombineKind.ARGMIN
        if is_bool(type):
            value = self.scopes.emit(arith.ExtUIOp(value, i8))
        return kind, [self.biased(value, type), self.scopes.position(within[0])]

    def outcome(
        self, op: lazy.ReduceOp | lazy.ArgReduceOp, results: Sequence[SSAValue]
    ) -> SSAValue:
        """The element that a reduction's results stand for."""
        type = lazy.element_type_of(op.operand)
        if isinstance(op, lazy.ReduceOp):
            ordered = op.kind.data in (lazy.ReduceKind.MAX, lazy.ReduceKind.MIN)
            return self.biased(results[0], type) if ordered else results[0]
        wanted = compute_type(lazy.element_type_of(op.result))
        return self.scopes.emit(arith.IndexCastOp(results[1], wanted))

    def biased(self, value: SSAValue, type: Attribute) -> SSAValue:
        """Unsigned integers with the top bit flipped, so that signed order is their order; the
        same once more is the number again."""
        if not (is_integer(type) and is_unsigned(type)):
            return value
        top = self.scalars.const(1 << (width(type) - 1), value.type)
        return self.scopes.emit(arith.XOrIOp(value, top))

    # Scans and scatters on demand

    def scan(self, op: lazy.ScanOp, request: Request) -> Steps:
        """One element of a running combination, as a reduction over what comes before it."""
        axis, type = op.axis.value.data, lazy.element_type_of(op.result)
        extent = lazy.shape_of(op.result)[axis]
        [loop] = self.nested_axes([extent])
        point = merged_point_at(request.point, axis, index(loop.index))
        self.scopes.open([loop])
        value = yield self.request(op.operand, point, request.conditions)
        before = Condition(add_expr(request.point[axis], index(loop.index), -1))
        kind = op.kind.data
        identity = self.scalars.const(identity_of(kind, type), value.type)
        value = self.scalars.select(self.scopes.test([before]), value, identity)
        ordered = kind in (lazy.ScanKind.MAX, lazy.ScanKind.MIN)
        value = self.biased(value, type) if ordered else value
        [result] = self.scopes.close_reduce([CombineKind(kind)], [value])
        return self.biased(result, type) if ordered else result

    def scatter(self, op: lazy.ScatterOp, request: Request) -> Steps:
        """One element of a scatter: the updates that hit it, in order."""
        axis, type = op.axis.value.data, lazy.element_type_of(op.result)
        init = yield self.request(op.destination, request.point, request.conditions)
        here = self.integer(request.point[axis], i64)
        [loop] = self.nested_axes([lazy.shape_of(op.indices)[axis]])
        point = merged_point_at(request.point, axis, index(loop.index))
        [carried] = self.scopes.open([loop], [init.type])
        raw = yield self.request(op.indices, point, request.conditions)
        update = yield self.request(op.updates, point, request.conditions)
        target = self.scalars.cast(raw, lazy.element_type_of(op.indices), i64)
        hit = self.scalars.cmpi("eq", target, here)
        value = combine(self.scalars, op.kind.data, type, carried, update)
        value = self.scalars.select(hit, self.scalars.rounded(value, type), carried)
        [result] = self.scopes.close_sequential([init], [value])
        return result
