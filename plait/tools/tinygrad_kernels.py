"""The kernels that tinygrad's scheduler makes, and their bytes as plait counts them: for every
buffer the distinct elements that a kernel reads, plus those it writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any

from plait import collector
from plait.errors import PlaitError
from plait.passes.analysis.access import canonical
from plait.passes.analysis.affine import Expr, Space, combine, constant, index, scale
from plait.passes.analysis.image import NOTHING, Image, image_of
from plait.passes.analysis.index_maps import Condition
from plait.passes.analysis.union import union_size


@dataclass(frozen=True)
class Kernel:
    """What one kernel moves, in bytes."""

    read: int
    written: int
    exact: bool
    """Whether the counts are the numbers; upper bounds otherwise."""


@dataclass(frozen=True)
class Schedule:
    """What tinygrad does for some tensors."""

    kernels: tuple[Kernel, ...]
    copies: int
    """Transfers between devices; they are no kernels."""

    @property
    def read(self) -> int:
        return sum(kernel.read for kernel in self.kernels)

    @property
    def written(self) -> int:
        return sum(kernel.written for kernel in self.kernels)

    @property
    def exact(self) -> bool:
        return all(kernel.exact for kernel in self.kernels)


def to_compute(tensors: Sequence[Any]) -> list[Any]:
    """The tensors for which tinygrad has anything to do."""
    return [t for t in tensors if not t.uop.is_virtual and not t.uop.has_buffer_identity()]


def scheduled(tensors: Sequence[Any]) -> tuple[Any, float]:
    """tinygrad's schedule, and the processor seconds it took: without its cache, and without
    garbage collection, as in ``Tensor.realize``.

    The tensors are as good as realized then: import them into plait before.
    """
    context: Any = import_module("tinygrad").Context
    kind: Any = import_module("tinygrad").Tensor
    with context(SCACHE=0), collector.paused():
        started = time.process_time()
        linear, _ = kind.linear_with_vars(*tensors)
        return linear, time.process_time() - started


def schedule_of(linear: Any) -> Schedule:
    """The kernels of a schedule, with their bytes."""
    kernels = list[Kernel]()
    copies = 0
    for call in linear.src:
        match call.src[0].op.name:
            case "SINK":
                kernels.append(_Counter(call).kernel())
            case "COPY":
                copies += 1
            case name:
                raise PlaitError(f"tinygrad schedules a {name}: expected kernels and copies")
    return Schedule(tuple(kernels), copies)


class _Counter:
    """Counts the elements that one kernel touches."""

    def __init__(self, call: Any):
        self.buffers = call.src[1:]
        self.uops = list[Any](call.src[0].toposort())
        ranges = [uop for uop in self.uops if uop.op.name == "RANGE"]
        self.extents = tuple(int(uop.src[0].arg) for uop in ranges)
        self.numbers = {uop: number for number, uop in enumerate(ranges)}
        self.space = Space.of_extents(self.extents)
        self.exprs: dict[Any, Expr | None] = {}

    def kernel(self) -> Kernel:
        stores = {uop.src[0] for uop in self.uops if uop.op.name == "STORE"}
        accesses = [uop for uop in self.uops if uop.op.name == "INDEX"]
        read, read_exact = self.bytes([uop for uop in accesses if uop not in stores])
        written, written_exact = self.bytes([uop for uop in accesses if uop in stores])
        return Kernel(read, written, read_exact and written_exact)

    def bytes(self, accesses: Sequence[Any]) -> tuple[int, bool]:
        """Bytes of the distinct elements, buffer by buffer, and whether that is the number."""
        by_buffer: dict[Any, list[Any]] = {}
        for access in accesses:
            slot = _base(access).arg.slot
            by_buffer.setdefault(self.buffers[slot], []).append(access)
        total, all_exact = 0, True
        for group in by_buffer.values():
            size = prod(_base(group[0]).shape)
            count, exact = self.elements(group, size)
            total += count * group[0].dtype.itemsize
            all_exact &= exact
        return total, all_exact

    def elements(self, accesses: Sequence[Any], size: int) -> tuple[int, bool]:
        images = list[Image]()
        bound, exact = 0, True
        for access in accesses:
            found = self.image(access, size)
            if found is None:
                bound, exact = bound + self.points(access), False
            else:
                images.append(found[0])
                exact &= found[1]
        count, known = union_size(images, (size,))
        return min(size, count + bound), (exact and known) or count == size

    def image(self, access: Any, size: int) -> tuple[Image, bool] | None:
        """The elements of one access and whether all its conditions were taken into account; None
        if data decides which they are."""
        position, conditions, complete = access.src[1], list[Condition](), True
        while position.op.name == "WHERE" and _is_invalid(position.src[2]):
            complete &= self.gather(position.src[0], conditions, True)
            position = position.src[1]
        expr = self.expr(position)
        if expr is None:
            return None
        kept = canonical(conditions, self.space)
        if kept is None:
            return NOTHING, True
        image = image_of((expr,), kept, self.extents, (size,))
        return image, complete and image.exact

    def points(self, access: Any) -> int:
        """The points of the ranges that an index depends on."""
        used = {uop for uop in access.src[1].toposort() if uop.op.name == "RANGE"}
        return prod(self.extents[self.numbers[uop]] for uop in used)

    def expr(self, uop: Any) -> Expr | None:
        """An index as an expression in the ranges; None if it is not one."""
        if uop not in self.exprs:
            self.exprs[uop] = self.new_expr(uop)
        return self.exprs[uop]

    def new_expr(self, uop: Any) -> Expr | None:
        name = uop.op.name
        if name == "CONST":
            return constant(int(uop.arg))
        if name == "RANGE":
            return index(self.numbers[uop])
        if name not in ("ADD", "SUB", "MUL", "NEG", "CAST", *_DIVISIONS):
            return None
        parts = [self.expr(source) for source in uop.src]
        known = [part for part in parts if part is not None]
        return self.joined(name, known) if len(known) == len(parts) else None

    def joined(self, name: str, parts: Sequence[Expr]) -> Expr | None:
        match name:
            case "CAST":
                return parts[0]
            case "NEG":
                return scale(parts[0], -1)
            case "ADD":
                return combine(*parts)
            case "SUB":
                return combine(parts[0], (parts[1], -1))
            case "MUL":
                left, right = sorted(parts, key=lambda part: not part.is_constant)
                return scale(right, left.constant) if left.is_constant else None
            case _:
                return self.divided(name, parts[0], parts[1])

    def divided(self, name: str, expr: Expr, divisor: Expr) -> Expr | None:
        """A quotient or remainder; rounding is downwards where it is towards 0 on both sides."""
        low, _ = self.space.bounds_of(expr)
        if not divisor.is_constant or divisor.constant < 1:
            return None
        if name.startswith("C") and low < 0:
            return None
        return _DIVISIONS[name](self.space, expr, divisor.constant)

    def gather(self, uop: Any, conditions: list[Condition], holds: bool) -> bool:
        """Adds what a mask says to the conditions; False if it says more than they can."""
        name = uop.op.name
        if name == "AND" and holds:
            complete = [self.gather(source, conditions, True) for source in uop.src]
            return all(complete)
        if name not in ("CMPLT", "CMPEQ", "CMPNE"):
            return False
        equal = name == "CMPEQ"
        right_is_literal = uop.src[1].op.name == "CONST" and uop.src[1].dtype.name == "bool"
        if name != "CMPLT" and right_is_literal:
            same = bool(uop.src[1].arg) == equal
            return self.gather(uop.src[0], conditions, holds == same)
        left, right = (self.expr(source) for source in uop.src)
        if left is None or right is None or (name != "CMPLT" and holds != equal):
            return False
        if name != "CMPLT":
            conditions.append(Condition(combine(left, (right, -1)), equality=True))
        elif holds:
            conditions.append(Condition(combine(right, (left, -1), constant(-1))))
        else:
            conditions.append(Condition(combine(left, (right, -1))))
        return True


_DIVISIONS: dict[str, Callable[[Space, Expr, int], Expr]] = {
    "FLOORDIV": Space.floordiv,
    "FLOORMOD": Space.mod,
    "CDIV": Space.floordiv,
    "CMOD": Space.mod,
}


def _is_invalid(uop: Any) -> bool:
    """Whether an index is the one at which nothing is read."""
    return uop.op.name == "CONST" and not isinstance(uop.arg, bool | int | float)


def _base(access: Any) -> Any:
    """The buffer that an access indexes."""
    base = access.src[0]
    while base.op.name == "AFTER":
        base = base.src[0]
    if base.op.name != "PARAM":
        raise PlaitError(f"tinygrad indexes a {base.op.name} in a kernel: expected its arguments")
    return base
