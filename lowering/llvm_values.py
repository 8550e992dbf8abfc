"""Values while printing LLVM IR: one ``scf`` value may stand for several copies and several lanes.

A loop marked ``plait.lanes`` runs its body on a vector of consecutive iterations, one marked
``plait.jam`` on several copies side by side. Inside, a value is

- *uniform*: the same in every lane: one scalar (``stride == 0``, ``lanes == 1``),
- *linear*: ``base + stride * lane``: still one scalar, so that addresses stay scalar, or
- *varying*: an LLVM vector,

each either shared by the copies or one per copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from plait.lowering.llvm_text import Body
from plait.lowering.llvm_types import llvm_type, vector


@dataclass(frozen=True)
class Value:
    """What an SSA value is printed as."""

    names: tuple[str, ...]
    """One text per copy, or one for all copies."""
    lanes: int = 1
    stride: int = 0
    """For linear values: the difference between neighbouring lanes."""

    @property
    def uniform(self) -> bool:
        """Whether every lane holds the same."""
        return self.lanes == 1 and self.stride == 0

    @property
    def varying(self) -> bool:
        """Whether it is held as a vector."""
        return self.lanes > 1

    def copy(self, index: int) -> str:
        """The text for copy ``index``."""
        return self.names[index if len(self.names) > 1 else 0]

    @property
    def literal(self) -> int | None:
        """The integer, if it is a uniform integer literal."""
        text = self.copy(0)
        if self.uniform and len(self.names) == 1 and text.lstrip("-").isdigit():
            return int(text)
        return None


ZERO = Value(("0",))


def lane_numbers(spelled: str, lanes: int, stride: int = 1) -> str:
    """The constant ``<0, stride, 2*stride, ...>``."""
    return "<" + ", ".join(f"{spelled} {lane * stride}" for lane in range(lanes)) + ">"


def as_lanes(body: Body, value: Value, copy: int, lanes: int, type: Attribute) -> str:
    """``value`` of one copy as a vector of ``lanes`` (or a scalar for one lane)."""
    name = value.copy(copy)
    if value.lanes == lanes and not value.stride:
        return name
    assert value.lanes == 1, "vectors of two widths met"
    spelled = llvm_type(type)
    wide = body.splat_value(spelled, name, lanes)
    if not value.stride:
        return wide
    numbers = lane_numbers(spelled, lanes, value.stride)
    return body.emit(f"add nsw {vector(spelled, lanes)} {wide}, {numbers}")


def _combine(body: Body, op: str, a: str, b: str) -> str:
    """``a op b`` on i64 scalars, folding what is known."""
    known = [int(x) if x.lstrip("-").isdigit() else None for x in (a, b)]
    if known[0] is not None and known[1] is not None:
        left, right = known[0], known[1]
        return str(left + right if op == "add" else left - right if op == "sub" else left * right)
    if op == "mul":
        if 0 in known:
            return "0"
        if known[0] == 1:
            return b
        if known[1] == 1:
            return a
    elif known[1] == 0:
        return a
    elif known[0] == 0 and op == "add":
        return b
    return body.emit(f"{op} nsw i64 {a}, {b}")


def index_arithmetic(body: Body, op: str, a: Value, b: Value) -> Value | None:
    """``add``, ``sub`` or ``mul`` of index values kept scalar; None where a vector is needed."""
    if a.varying or b.varying:
        return None
    if op == "mul":
        if a.stride:
            a, b = b, a
        if b.stride:
            factor = a.literal
            if factor is None:
                return None
            stride = b.stride * factor
        else:
            stride = 0
    else:
        stride = a.stride + (b.stride if op == "add" else -b.stride)
    copies = max(len(a.names), len(b.names))
    names = tuple(_combine(body, op, a.copy(c), b.copy(c)) for c in range(copies))
    return Value(names, 1, stride)


_SIGNED = ("eq", "ne", "slt", "sle", "sgt", "sge")


def compare_linear(body: Body, predicate: int, given: list[Value], lanes: int) -> Value | None:
    """``base + stride * lane  <predicate>  limit`` through narrow integers.

    ``limit - base`` is clamped to just outside of what ``stride * lane`` reaches, which keeps the
    answer and makes 32 bits enough. None where the operands are not of that form.
    """
    left, right = given
    if lanes == 1 or not left.stride or not right.uniform or predicate >= len(_SIGNED):
        return None
    reach = sorted((0, left.stride * (lanes - 1)))
    if max(abs(reach[0]), abs(reach[1])) >= 1 << 30:
        return None
    numbers = lane_numbers("i32", lanes, left.stride)
    names: list[str] = []
    for copy in range(max(len(left.names), len(right.names))):
        limit = _combine(body, "sub", right.copy(copy), left.copy(copy))
        limit = body.intrinsic("smin", "i64", 1, [limit, str(reach[1] + 1)])
        limit = body.intrinsic("smax", "i64", 1, [limit, str(reach[0] - 1)])
        narrow = body.emit(f"trunc i64 {limit} to i32")
        wide = body.splat_value("i32", narrow, lanes)
        type = vector("i32", lanes)
        names.append(body.emit(f"icmp {_SIGNED[predicate]} {type} {numbers}, {wide}"))
    return Value(tuple(names), lanes)
