"""A function of level 1 as numbered nodes: what planning needs of it, in plain lists.

Node numbers follow the order of the function: arguments first, then operations, so every source of
a node has a smaller number. Each operation of ``lazy`` has one result, so a node is a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import lazy
from plait.dialects.lazy_constants import splat_scalar
from plait.dtypes import itemsize
from plait.passes.analysis.blocks import only_block


class Role(Enum):
    """What a node is to the planner."""

    BUFFER = auto()
    """In memory already: an argument, a constant with several values."""
    SOURCE = auto()
    """Computed from nothing wherever it is needed: a splat constant, iota."""
    VIEW = auto()
    """A movement operation, or ``materialize``."""
    MAP = auto()
    """Elementwise, gather, random bits."""
    REDUCE = auto()
    """Closes axes: reduce, argmax, argmin."""
    SWEEP = auto()
    """Ordered along an axis: scan, scatter. Its result is stored as it is."""


def role_of(op: Operation) -> Role:
    """The role of an operation; raises a diagnostic for one that is not of ``lazy``."""
    match op:
        case lazy.ConstantOp():
            return Role.BUFFER if splat_scalar(op.value) is None else Role.SOURCE
        case lazy.IotaOp():
            return Role.SOURCE
        case lazy.MovementOp() | lazy.MaterializeOp():
            return Role.VIEW
        case lazy.ReduceOp() | lazy.ArgReduceOp():
            return Role.REDUCE
        case lazy.ScanOp() | lazy.ScatterOp():
            return Role.SWEEP
        case lazy.LazyOp():
            return Role.MAP
        case _:
            raise DiagnosticException(
                f"fuse-form-groups plans operations of 'lazy', found '{op.name}': lower it first, "
                "or plan before it appears"
            )


def _size(value: SSAValue) -> int:
    type = value.type
    if not isinstance(type, TensorType):
        raise DiagnosticException(f"fuse-form-groups plans tensors, found a value of type {type}")
    return prod(type.get_shape())


@dataclass
class Program:
    """The live part of a function, numbered."""

    function: FuncOp
    values: list[SSAValue]
    ops: list[Operation | None]
    """The operation of each node; None for an argument."""
    roles: list[Role]
    sources: list[tuple[int, ...]]
    users: list[list[int]]
    sizes: list[int]
    """Elements of each node."""
    results: tuple[int, ...]
    """The nodes the function returns."""
    aliased: frozenset[int] = frozenset()
    """Positions of results that live in the buffer of an argument."""
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    @staticmethod
    def read(function: FuncOp) -> Program:
        """Numbers a function of one block."""
        block = only_block(function)
        terminator = block.last_op
        if not isinstance(terminator, ReturnOp):
            raise DiagnosticException("fuse-form-groups expects a function that ends in a return")
        live = _live_operations(terminator)
        program = Program(function, [], [], [], [], [], [], ())
        for argument in block.args:
            program._append(argument, None, Role.BUFFER, ())
        for op in block.ops:
            if op in live:
                role = role_of(op)
                program._append(op.results[0], op, role, _sources(program, op))
        program.results = tuple(program.number[value] for value in terminator.arguments)
        program.aliased = _aliased_results(function)
        return program

    def _append(
        self, value: SSAValue, op: Operation | None, role: Role, sources: tuple[int, ...]
    ) -> None:
        node = len(self.values)
        self.number[value] = node
        self.values.append(value)
        self.ops.append(op)
        self.sizes.append(_size(value))
        self.roles.append(Role.SOURCE if self.sizes[-1] == 0 else role)
        self.sources.append(sources)
        self.users.append([])
        for source in dict.fromkeys(sources):
            self.users[source].append(node)

    def __len__(self) -> int:
        return len(self.values)

    def bytes_of(self, node: int) -> int:
        """Bytes the node takes in memory."""
        return self.sizes[node] * itemsize(lazy.element_type_of(self.values[node]))


def _live_operations(terminator: Operation) -> set[Operation]:
    """What the results need; a tensor without elements needs nothing."""
    live = set[Operation]()
    pending: list[Operation] = [terminator]
    while pending:
        for operand in pending.pop().operands:
            owner = operand.owner
            if isinstance(owner, Operation) and owner not in live:
                live.add(owner)
                if _size(operand):
                    pending.append(owner)
    return live


def _sources(program: Program, op: Operation) -> tuple[int, ...]:
    """The nodes an operation reads; none if it computes no element."""
    if not _size(op.results[0]):
        return ()
    return tuple(program.number[operand] for operand in op.operands)


def _aliased_results(function: FuncOp) -> frozenset[int]:
    attributes = function.res_attrs.data if function.res_attrs is not None else ()
    return frozenset(
        position
        for position, entry in enumerate(attributes)
        if "lazy.aliases" in getattr(entry, "data", dict[str, Attribute]())
    )
