"""Tensor programs of tinygrad as plait's: the lazy graph of its tensors, before its scheduler runs.

Live operations become the node records that :mod:`plait.frontend.uop_graph` reads, so recorded and
live graphs have one meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from plait.dtypes import Array, numpy_dtype
from plait.errors import PlaitError
from plait.frontend.uop_emit import element_type
from plait.frontend.uop_graph import import_graph
from plait.runtime import driver

TESTED = "0.14"
"""The series of tinygrad whose graphs are read; its operations change from one to the next."""

_DTYPES = {
    "bool": "bool",
    "signed char": "i8",
    "short": "i16",
    "int": "i32",
    "long": "i64",
    "unsigned char": "u8",
    "unsigned short": "u16",
    "unsigned int": "u32",
    "unsigned long": "u64",
    "half": "f16",
    "__bf16": "bf16",
    "float": "f32",
    "double": "f64",
    "weakint": "weakint",
    "weakfloat": "weakfloat",
    "void": "void",
}
_VIEWS = {"RESHAPE", "EXPAND", "PERMUTE", "PAD", "SHRINK", "FLIP"}
_RENAMED = {"RECIPROCAL": "recip", "CMPLT": "lt", "CMPEQ": "eq", "CMPNE": "ne"}
_PLAIN = (
    {"EXP2", "LOG2", "SIN", "SQRT", "NEG", "TRUNC", "ADD", "SUB", "MUL", "FDIV", "CDIV", "CMOD"}
    | {"FLOORDIV", "FLOORMOD", "MAX", "POW", "AND", "OR", "XOR", "SHL", "SHR", "WHERE", "MULACC"}
    | {"CAST", "BITCAST", "STACK", "STORE", "AFTER", "DETACH", "CONTIGUOUS", "CONTIGUOUS_BACKWARD"}
    | set(_RENAMED)
)
"""Operations that their name, type, shape and sources describe."""


@dataclass(frozen=True)
class TinygradProgram:
    """A tinygrad graph as a tensor program."""

    module: ModuleOp
    """One function ``@main``; its results are the tensors asked for, then what buffers that are
    assigned to hold in the end."""
    inputs: list[Array | None]
    """For each argument a copy of its buffer; None where tinygrad has not allocated one."""
    outputs: int
    """How many results are the tensors asked for."""

    def plan(self, pipeline: str = "default", target: str | None = None) -> ModuleOp:
        """The kernel plan, level 2."""
        return driver.planned(self.module, pipeline, target)

    @cached_property
    def _arrays(self) -> list[Array]:
        from plait.runtime.interpret import find_function

        types: list[Any] = [argument.type for argument in find_function(self.module, "main").args]
        return [
            np.zeros(type.get_shape(), numpy_dtype(type.element_type)) if array is None else array
            for type, array in zip(types, self.inputs, strict=True)
        ]

    def run(self, backend: str = "cpu", pipeline: str = "default") -> list[Array]:
        """The tensors asked for; buffers of tinygrad stay as they are, those not yet allocated are
        taken as zeros."""
        compiled = driver.compiled(self.plan(pipeline), backend)
        return compiled.run(*(array.copy() for array in self._arrays))[: self.outputs]


def from_tinygrad(*tensors: Any) -> TinygradProgram:
    """The program that computes ``tensors``, from their graphs as they stand: nothing is realized.

    Raises :class:`PlaitError` for an operation without a meaning on tensors of fixed shape, with
    its name.
    """
    check_version()
    kind: Any = import_module("tinygrad").Tensor
    for tensor in tensors:
        if not isinstance(tensor, kind):
            raise PlaitError(f"from_tinygrad: expected tinygrad tensors, found {tensor!r}")
    if not tensors:
        raise PlaitError("from_tinygrad: expected at least one tensor, found none")
    reader = _Reader(without_random(tuple(tensor.uop for tensor in tensors)))
    graph = import_graph(reader.records, reader.outputs)
    graph.module.verify()
    return TinygradProgram(graph.module, [reader.data[i] for i in graph.inputs], graph.outputs)


def check_version() -> None:
    """Raises :class:`PlaitError` unless a version of tinygrad that is known to work is there."""
    try:
        found = version("tinygrad")
    except PackageNotFoundError:
        raise PlaitError("tinygrad is not installed: pip install 'plait[tinygrad]'") from None
    if not found.startswith(f"{TESTED}."):
        raise PlaitError(f"tinygrad: expected version {TESTED}, found {found}")


def without_random(outputs: Sequence[Any]) -> Sequence[Any]:
    """The graph with its random bits taken apart into integer arithmetic, as tinygrad does."""
    graphs: Any = import_module("tinygrad.uop.ops")
    bits: Any = import_module("tinygrad.codegen.decomp.op").threefry2x32
    threefry, sink = graphs.Ops.THREEFRY, graphs.UOp.sink(*outputs)
    if not any(uop.op is threefry for uop in sink.toposort()):
        return outputs
    pattern = graphs.UPat(threefry, src=(graphs.UPat.var("x"), graphs.UPat.var("key")))
    return graphs.graph_rewrite(sink, graphs.PatternMatcher([(pattern, bits)])).src


class _Reader:
    """The node records of a graph, and the data of its buffers."""

    def __init__(self, outputs: Sequence[Any]):
        self.records: list[dict[str, Any]] = []
        self.data: dict[int, Array | None] = {}
        self.positions: dict[Any, int] = {}
        for uop in _sources_first(outputs):
            record = self.record(uop)
            self.positions[uop] = len(self.records)
            self.records.append(record)
        self.outputs = [self.positions[uop] for uop in outputs]

    def record(self, uop: Any) -> dict[str, Any]:
        name: str = uop.op.name
        record: dict[str, Any] = {
            "op": _RENAMED.get(name, name.lower()),
            "dt": _dtype(uop),
            "sh": _shape(uop),
            "in": [self.positions[source] for source in _operands(uop)],
        }
        if name in _PLAIN:
            return record
        if name in _VIEWS:
            return record | _movement(uop)
        match name:
            case "CONST":
                return record | {"value": _literal(uop.arg)}
            case "REDUCE" if len(uop.src) == 1:
                kind, count = uop.arg
                return record | {"fn": kind.name.lower(), "axes": list(range(count))}
            case "BUFFER":
                self.data[len(self.records)] = _contents(uop, record)
                return record | {"op": "input"}
            case "COPY" if not record["in"]:
                self.data[len(self.records)] = _contents(_held(uop), record)
                return record | {"op": "input"}
            case "COPY":
                return record
            case _:
                raise PlaitError(
                    f"tinygrad operation {name} is not supported: expected operations on whole "
                    "tensors of one device"
                )


def _sources_first(outputs: Sequence[Any]) -> list[Any]:
    """Every operation that outputs are made of; graphs may be of any depth."""
    order: list[Any] = []
    done: set[Any] = set()
    stack = [(uop, False) for uop in reversed(outputs)]
    while stack:
        uop, ready = stack.pop()
        if uop in done:
            continue
        if ready:
            done.add(uop)
            order.append(uop)
            continue
        stack.append((uop, True))
        stack.extend((source, False) for source in reversed(_operands(uop)))
    return order


def _operands(uop: Any) -> tuple[Any, ...]:
    """The sources that are tensors; the others of a view or a buffer say its shape. An operation
    that is not supported has none, so that it is the one an error names."""
    name = uop.op.name
    if name in _VIEWS:
        return uop.src[:1]
    if name in _PLAIN or name == "REDUCE" or (name == "COPY" and _held(uop) is None):
        return uop.src
    return ()


def _held(copy: Any) -> Any:
    """The buffer that a transfer to another device takes its elements from, in their order."""
    source = copy.src[0]
    while source.op.name == "RESHAPE":
        source = source.src[0]
    return source if source.op.name == "BUFFER" else None


def _dtype(uop: Any) -> str:
    name: str = uop.dtype.name
    if name not in _DTYPES:
        raise PlaitError(
            f"tinygrad operation {uop.op.name}: dtype {name} is not supported: expected one of "
            f"{', '.join(_DTYPES)}"
        )
    return _DTYPES[name]


def _shape(uop: Any) -> list[int]:
    if uop.op.name in ("STORE", "AFTER"):
        uop = uop.src[0]
    try:
        shape = uop.shape
    except RuntimeError:
        return []
    if not all(isinstance(extent, int) for extent in shape):
        raise PlaitError(
            f"tinygrad operation {uop.op.name}: expected a shape of numbers, found a variable"
        )
    return list(shape)


def _movement(uop: Any) -> dict[str, Any]:
    """The fields of a view, as records have them."""
    have = _shape(uop.src[0])
    match uop.op.name:
        case "PERMUTE":
            return {"perm": list(uop.arg)}
        case "FLIP":
            return {"axes": [axis for axis, flipped in enumerate(uop.arg) if flipped]}
        case "SHRINK":
            pairs = _numbers(uop)
            return {"bounds": [[start, start + count] for start, count in pairs]}
        case "PAD":
            pairs = zip(_numbers(uop), have, strict=True)
            return {"pads": [[low, total - low - extent] for (low, total), extent in pairs]}
        case _:
            return {}


def _numbers(uop: Any) -> list[tuple[int, int]]:
    """The two numbers that a view has for each axis."""
    pairs = list(uop.marg)
    if not all(isinstance(number, int) for pair in pairs for number in pair):
        raise PlaitError(
            f"tinygrad operation {uop.op.name}: expected bounds that are numbers, found a variable"
        )
    return pairs


def _literal(value: Any) -> float | int | bool | str:
    if isinstance(value, bool | int):
        return value
    return float(value) if isinstance(value, float) else "invalid"


def _contents(buffer: Any, record: dict[str, Any]) -> Array | None:
    """A copy of what a buffer holds, or None before it is allocated."""
    if not isinstance(buffer.device, str):
        raise PlaitError("tinygrad operation BUFFER: expected one device, found several")
    type, shape = numpy_dtype(element_type(record["dt"])), record["sh"]
    if not prod(shape):
        return cast(Array, np.zeros(shape, type))
    held = buffer.buffer
    if not held.is_allocated():
        return None
    return np.frombuffer(held.as_memoryview(), type).reshape(shape).copy()
