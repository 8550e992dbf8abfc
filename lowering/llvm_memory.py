"""Loads, stores and their masks: contiguous, uniform and gathered accesses of one or many lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute

from plait.lowering.llvm_text import Body
from plait.lowering.llvm_types import byte_size, llvm_type, memory_type, splat, suffix, vector
from plait.lowering.llvm_values import ZERO, Value, as_lanes, index_arithmetic, lane_numbers

ZEROS = "@plait.zeros"
ZEROS_BYTES = 512
LINE = 64
"""Bytes of a line of the caches, which memory is written in."""


def strides_of(type: MemRefType[Attribute]) -> list[int]:
    """Row-major or declared strides, in elements."""
    if isinstance(type.layout, StridedLayoutAttr):
        found = type.layout.get_strides()
        return [stride if stride is not None else 0 for stride in found]
    assert isinstance(type.layout, NoneAttr), "layouts are made explicit before"
    strides: list[int] = []
    stride = 1
    for extent in reversed(type.get_shape()):
        strides.append(stride)
        stride *= extent
    return strides[::-1]


def flat_offset(
    body: Body, type: MemRefType[Attribute], indices: Sequence[Value], lanes: int, copies: int
) -> Value:
    """The element offset of ``indices``, linear where they all are."""
    total: Value = ZERO
    vectors: list[tuple[Value, int]] = []
    for index, stride in zip(indices, strides_of(type), strict=True):
        scaled = index_arithmetic(body, "mul", index, Value((str(stride),)))
        if scaled is None:
            vectors.append((index, stride))
            continue
        found = index_arithmetic(body, "add", total, scaled)
        assert found is not None
        total = found
    if not vectors:
        return total
    count = max(len(total.names), *(len(value.names) for value, _ in vectors))
    wide = vector("i64", lanes)
    names: list[str] = []
    for copy in range(count):
        sum_ = as_lanes(body, total, copy, lanes, IndexType())
        for value, stride in vectors:
            scale = splat("i64", str(stride), lanes)
            part = as_lanes(body, value, copy, lanes, IndexType())
            part = body.emit(f"mul nsw {wide} {part}, {scale}")
            sum_ = body.emit(f"add nsw {wide} {sum_}, {part}")
        names.append(sum_)
    return Value(tuple(names), lanes)


def _address(body: Body, element: str, pointer: str, offset: str, masked: bool) -> str:
    inbounds = "" if masked else "inbounds "
    return body.emit(f"getelementptr {inbounds}{element}, ptr {pointer}, i64 {offset}")


def _use_zeros(body: Body) -> str:
    body.module.globals.setdefault(
        ZEROS,
        f"{ZEROS} = internal constant [{ZEROS_BYTES} x i8] zeroinitializer, align 64",
    )
    return ZEROS


def any_lane(body: Body, mask: str, lanes: int) -> str:
    """Whether the mask holds in some lane."""
    if lanes == 1:
        return mask
    name = f"llvm.vector.reduce.or.{suffix('i1', lanes)}"
    return body.call(name, "i1", [(vector("i1", lanes), mask)])


def _from_memory(body: Body, value: str, type: Attribute, lanes: int) -> str:
    if llvm_type(type) != "i1":
        return value
    wide = vector("i8", lanes)
    zero = "0" if lanes == 1 else "zeroinitializer"
    return body.emit(f"icmp ne {wide} {value}, {zero}")


def to_memory(body: Body, value: str, type: Attribute, lanes: int) -> str:
    """The stored form of a register: i1 becomes a byte."""
    if llvm_type(type) != "i1":
        return value
    return body.emit(f"zext {vector('i1', lanes)} {value} to {vector('i8', lanes)}")


def _masked_call_load(
    body: Body, kind: str, element: str, lanes: int, pointer: str, size: int, mask: str
) -> str:
    type = vector(element, lanes)
    pointers = "ptr" if kind == "load" else vector("ptr", lanes)
    overload = suffix(element, lanes) + "." + suffix("ptr", 1 if kind == "load" else lanes)
    return body.call(
        f"llvm.masked.{kind}.{overload}",
        type,
        [
            (pointers, pointer),
            ("i32", str(size)),
            (vector("i1", lanes), mask),
            (type, "zeroinitializer"),
        ],
    )


def _masked_call_store(
    body: Body, kind: str, element: str, lanes: int, value: str, pointer: str, size: int, mask: str
) -> None:
    type, flag = vector(element, lanes), vector("i1", lanes)
    pointers = "ptr" if kind == "store" else vector("ptr", lanes)
    overload = suffix(element, lanes) + "." + suffix("ptr", 1 if kind == "store" else lanes)
    name = f"llvm.masked.{kind}.{overload}"
    body.module.declare(name, "void", [type, pointers, "i32", flag])
    body.do(f"call void @{name}({type} {value}, {pointers} {pointer}, i32 {size}, {flag} {mask})")


def _full_mask(body: Body, mask: str | None, mask_lanes: int, lanes: int) -> str:
    if mask is None:
        return splat("i1", "true", lanes)
    return mask if mask_lanes == lanes else body.splat_value("i1", mask, lanes)


def emit_load(
    body: Body,
    element_type: Attribute,
    pointer: str,
    offset: Value,
    copy: int,
    lanes: int,
    mask: str | None,
    mask_lanes: int,
) -> tuple[str, int]:
    """Loads one copy; returns the register and its number of lanes. Masked-off lanes give 0."""
    element = memory_type(element_type)
    size = byte_size(element_type)
    name = offset.copy(copy)
    if offset.uniform:
        address = _address(body, element, pointer, name, mask is not None)
        if mask is not None:
            some = any_lane(body, mask, mask_lanes)
            address = body.emit(f"select i1 {some}, ptr {address}, ptr {_use_zeros(body)}")
        value = body.emit(f"load {element}, ptr {address}, align {size}")
        return _from_memory(body, value, element_type, 1), 1
    type = vector(element, lanes)
    if not offset.varying and abs(offset.stride) == 1:
        backward = offset.stride == -1
        if backward:
            name = body.emit(f"add nsw i64 {name}, {1 - lanes}")
        address = _address(body, element, pointer, name, mask is not None)
        if mask is None:
            value = body.emit(f"load {type}, ptr {address}, align {size}")
        elif mask_lanes == 1 and lanes * size <= ZEROS_BYTES:
            address = body.emit(f"select i1 {mask}, ptr {address}, ptr {_use_zeros(body)}")
            value = body.emit(f"load {type}, ptr {address}, align {size}")
        else:
            full = _full_mask(body, mask, mask_lanes, lanes)
            if backward:
                full = _reverse(body, "i1", full, lanes)
            value = _masked_call_load(body, "load", element, lanes, address, size, full)
        if backward:
            value = _reverse(body, element, value, lanes)
        return _from_memory(body, value, element_type, lanes), lanes
    wide = as_lanes(body, offset, copy, lanes, IndexType())
    addresses = body.emit(f"getelementptr {element}, ptr {pointer}, {vector('i64', lanes)} {wide}")
    full = _full_mask(body, mask, mask_lanes, lanes)
    value = _masked_call_load(body, "gather", element, lanes, addresses, size, full)
    return _from_memory(body, value, element_type, lanes), lanes


def _reverse(body: Body, element: str, value: str, lanes: int) -> str:
    order = "<" + ", ".join(f"i32 {lanes - 1 - lane}" for lane in range(lanes)) + ">"
    type = vector(element, lanes)
    return body.emit(f"shufflevector {type} {value}, {type} poison, <{lanes} x i32> {order}")


def emit_store(
    body: Body,
    element_type: Attribute,
    pointer: str,
    offset: Value,
    value: Value,
    copy: int,
    lanes: int,
    mask: str | None,
    mask_lanes: int,
    stream: bool = False,
) -> None:
    """Stores one copy, in lane order where lanes meet in one element; ``stream``: past the caches,
    whole lines of them."""
    element = memory_type(element_type)
    size = byte_size(element_type)
    if offset.uniform and value.uniform and (mask is None or mask_lanes == 1 or lanes == 1):
        stored = to_memory(body, value.copy(copy), element_type, 1)
        address = _address(body, element, pointer, offset.copy(copy), mask is not None)
        if mask is None:
            body.do(f"store {element} {stored}, ptr {address}, align {size}")
            return
        after, inside = body.label("stored"), body.label("store")
        body.do(f"br i1 {mask}, label %{inside}, label %{after}")
        body.start(inside)
        body.do(f"store {element} {stored}, ptr {address}, align {size}")
        body.do(f"br label %{after}")
        body.start(after)
        return
    stored = as_lanes(body, value, copy, lanes, element_type)
    stored = to_memory(body, stored, element_type, lanes)
    type = vector(element, lanes)
    if not offset.varying and offset.stride == 1:
        address = _address(body, element, pointer, offset.copy(copy), mask is not None)
        if mask is None and stream and lanes * size % LINE == 0:
            body.module.globals.setdefault("!0", "!0 = !{i32 1}")
            body.do(f"store {type} {stored}, ptr {address}, align {LINE}, !nontemporal !0")
            return
        if mask is None:
            body.do(f"store {type} {stored}, ptr {address}, align {size}")
            return
        full = _full_mask(body, mask, mask_lanes, lanes)
        _masked_call_store(body, "store", element, lanes, stored, address, size, full)
        return
    wide = as_lanes(body, offset, copy, lanes, IndexType())
    addresses = body.emit(f"getelementptr {element}, ptr {pointer}, {vector('i64', lanes)} {wide}")
    full = _full_mask(body, mask, mask_lanes, lanes)
    _masked_call_store(body, "scatter", element, lanes, stored, addresses, size, full)


__all__ = ["emit_load", "emit_store", "flat_offset", "lane_numbers", "strides_of"]
