"""Which index values a GPU function computes: whether 32 bits hold them all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from plait.dialects.gpu_shuffle import ShuffleOp
from plait.lowering.cuda_types import width

Range = tuple[int, int]
"""The smallest and the largest value."""
_LIMIT = 2**31


class Ranges:
    """The ranges of a function's indices and integers, from its launch and the bounds of its loops.

    ``fits`` says that no index leaves 32 bits: an unclamped 64-bit position from data may.
    """

    def __init__(self, function: gpu.FuncOp, grid: int, threads: int):
        self.blocks = (0, max(grid - 1, 0))
        self.threads = (0, threads - 1)
        self.known: dict[SSAValue, Range] = {}
        sizes = [prod(_shape(argument)) for argument in function.body.block.args]
        self.fits = max([grid * threads, *sizes]) < _LIMIT
        for op in function.walk():
            self.visit(op)

    def visit(self, op: Operation) -> None:
        """Notes the ranges of what ``op`` computes; operations come in order."""
        if isinstance(op, scf.ForOp):
            self.loop(op)
            return
        for result in op.results:
            if isinstance(result.type, IndexType | IntegerType):
                self.note(result, self.range(op))

    def loop(self, op: scf.ForOp) -> None:
        """The index of a loop, and the positions it carries."""
        low, high, step = (self.of(value) for value in (op.lb, op.ub, op.step))
        self.note(op.body.block.args[0], (low[0], max(high[1] - 1, low[0])))
        self.check((low[0], high[1] + step[1]))  # it ends past its bound
        last = op.body.block.last_op
        assert last is not None
        carried = zip(op.body.block.args[1:], op.iter_args, op.results, last.operands, strict=True)
        for argument, init, result, yielded in carried:
            # A choice among positions is one of them, and each is checked by itself.
            if isinstance(yielded.owner, arith.SelectOp) and isinstance(result.type, IndexType):
                self.known[argument] = self.known[result] = self.of(init)
            elif isinstance(result.type, IndexType):
                self.fits = False

    def note(self, value: SSAValue, range: Range) -> None:
        self.known[value] = range
        if isinstance(value.type, IndexType):
            self.check(range)

    def check(self, range: Range) -> None:
        self.fits = self.fits and range[0] >= -_LIMIT and range[1] < _LIMIT

    def of(self, value: SSAValue) -> Range:
        """What is known of a value."""
        return self.known.get(value) or _all(value.type)

    def range(self, op: Operation) -> Range:
        """The range of the result of an operation."""
        operands = [self.of(value) for value in op.operands]
        match op:
            case arith.ConstantOp(value=IntegerAttr() as attribute):
                return (attribute.value.data, attribute.value.data)
            case gpu.BlockIdOp():
                return self.blocks
            case gpu.ThreadIdOp():
                return self.threads
            case memref.LoadOp() if isinstance(op.results[0].type, IndexType):
                return (0, 0)  # from shared memory, where it was checked
            case arith.IndexCastOp() | arith.ExtSIOp() | ShuffleOp():
                return operands[0]
            case arith.SelectOp():
                return (min(a for a, _ in operands[1:]), max(b for _, b in operands[1:]))
            case _:
                found = _arithmetic(op, operands) if len(operands) == 2 else None
                whole = _all(op.results[0].type)
                if found is None:
                    return whole
                inside = whole[0] <= found[0] and found[1] <= whole[1]
                return found if inside else whole


def _arithmetic(op: Operation, operands: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = operands
    match op:
        case arith.AddiOp():
            return (a + c, b + d)
        case arith.SubiOp():
            return (a - d, b - c)
        case arith.MuliOp():
            ends = (a * c, a * d, b * c, b * d)
            return (min(ends), max(ends))
        case arith.DivUIOp() if a >= 0 and c > 0:
            return (a // d, b // c)
        case arith.RemUIOp() if a >= 0 and c > 0:
            return (0, min(b, d - 1))
        case arith.RemSIOp() if c > 0:
            return (max(a, 1 - d) if a < 0 else 0, min(b, d - 1) if b > 0 else 0)
        case arith.DivSIOp() if c > 0:
            return (min(a, 0), max(b, 0))
        case arith.MaxSIOp():
            return (max(a, c), max(b, d))
        case arith.MinSIOp():
            return (min(a, c), min(b, d))
        case _:
            return None


def _all(type: Attribute) -> Range:
    """Every value of a type."""
    bits = width(cast(Attribute, type)) if isinstance(type, IntegerType) else 64
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1 if bits > 1 else 1)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return cast(MemRefType[Any], value.type).get_shape()
