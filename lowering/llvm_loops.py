"""Prints ``scf.for``: plain, vectorised, jammed, and reductions carried per lane."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

from plait.lowering.llvm_function import FunctionPrinter, int_of, kinds_of
from plait.lowering.llvm_reduce import horizontal, horizontal_arg, identity
from plait.lowering.llvm_types import llvm_type, vector
from plait.lowering.llvm_values import Value, as_lanes, lane_numbers

UNROLLED = 4
"""Trips of an innermost loop with carried values, such as a row of a window, that are printed one
after the other."""


def emit_loop(printer: FunctionPrinter, op: scf.ForOp) -> None:
    """Prints a loop in the way its attributes choose."""
    kinds = kinds_of(op)
    if kinds is not None and printer.lanes == 1 and int_of(op, "plait.width") > 1:
        _lane_reduction(printer, op, kinds)
    else:
        _any_loop(printer, op, [printer.get(init) for init in op.iter_args])


def _any_loop(printer: FunctionPrinter, op: scf.ForOp, inits: list[Value]) -> None:
    lanes, jam = int_of(op, "plait.lanes"), int_of(op, "plait.jam")
    carried = printer.lanes > 1
    if lanes > 1 and (carried or not op.iter_args):
        if carried and printer.lanes != lanes:
            raise DiagnosticException("target llvm: plait.lanes differs from plait.width")
        results = _lane_loop(printer, op, lanes, inits)
    elif jam > 1 and not op.iter_args and printer.lanes == 1:
        _jam_loop(printer, op, jam)
        results = []
    else:
        bounds = _bounds(printer, op)
        trips = bounds.trips
        if op.iter_args and trips is not None and trips <= UNROLLED and _is_innermost(op):
            results = _unrolled(printer, op, bounds, inits)
        else:
            results = _counted(printer, op, bounds, inits, 1, None)
    printer.values.update(zip(op.results, results, strict=True))


@dataclass(frozen=True)
class Bounds:
    """The loop's bounds as texts."""

    low: str
    high: str
    step: str

    @property
    def trips(self) -> int | None:
        """The number of iterations, if known."""
        if all(text.lstrip("-").isdigit() for text in (self.low, self.high, self.step)):
            return max(0, -(-(int(self.high) - int(self.low)) // int(self.step)))
        return None


def _bounds(printer: FunctionPrinter, op: scf.ForOp) -> Bounds:
    return Bounds(
        printer.scalar(op.lb, op, "the lower bound"),
        printer.scalar(op.ub, op, "the upper bound"),
        printer.scalar(op.step, op, "the step"),
    )


def _carried_types(op: scf.ForOp) -> list[Attribute]:
    return [argument.type for argument in op.body.block.args[1:]]


def _counted(
    printer: FunctionPrinter,
    op: scf.ForOp,
    bounds: Bounds,
    inits: list[Value],
    scale: int,
    clamp: int | None,
) -> list[Value]:
    """One counted loop whose counter moves ``scale`` steps at a time.

    ``scale`` is the number of lanes or copies made of the induction variable, as the caller has
    set them in ``printer``; with ``clamp`` the variable never exceeds ``high - clamp``.
    """
    body = printer.body
    types = _carried_types(op)
    lanes, copies = printer.lanes, printer.copies
    start = [
        printer.spread(value, type, lanes, copies) for value, type in zip(inits, types, strict=True)
    ]
    before = body.block
    head, inside, after = body.label("loop"), body.label("body"), body.label("done")
    body.do(f"br label %{head}")
    body.start(head)
    counter, following = body.fresh(), body.fresh()
    phis = len(body.lines)
    body.lines.append("")
    arguments: list[Value] = []
    for _ in types:
        arguments.append(Value(tuple(body.fresh() for _ in range(copies)), lanes))
    body.lines.extend([""] * (copies * len(types)))
    test = body.emit(f"icmp slt i64 {counter}, {bounds.high}")
    body.do(f"br i1 {test}, label %{inside}, label %{after}")
    body.start(inside)
    position = counter
    if clamp is not None:
        latest = body.emit(f"sub nsw i64 {bounds.high}, {clamp}")
        late = body.emit(f"icmp slt i64 {counter}, {latest}")
        position = body.emit(f"select i1 {late}, i64 {counter}, i64 {latest}")
    _bind_induction(printer, op, position, bounds.step)
    printer.values.update(zip(op.body.block.args[1:], arguments, strict=True))
    yielded = printer.block(op.body.block)
    finish = [
        printer.spread(value, type, lanes, copies)
        for value, type in zip(yielded, types, strict=True)
    ]
    finish = _masked(printer, finish, arguments, types)
    stride = _times(bounds.step, scale, printer)
    body.do(f"{following} = add nsw i64 {counter}, {stride}")
    last = body.block
    body.do(f"br label %{head}")
    body.lines[phis] = (
        f"  {counter} = phi i64 [ {bounds.low}, %{before} ], [ {following}, %{last} ]"
    )
    line = phis
    for argument, first, then, type in zip(arguments, start, finish, types, strict=True):
        spelled = vector(llvm_type(type), lanes)
        for name, a, b in zip(argument.names, first.names, then.names, strict=True):
            line += 1
            body.lines[line] = f"  {name} = phi {spelled} [ {a}, %{before} ], [ {b}, %{last} ]"
    body.start(after)
    return arguments


def _is_innermost(op: scf.ForOp) -> bool:
    return not any(inner is not op and isinstance(inner, scf.ForOp) for inner in op.walk())


def _unrolled(
    printer: FunctionPrinter, op: scf.ForOp, bounds: Bounds, inits: list[Value]
) -> list[Value]:
    """Every iteration in turn, with the induction variable a constant."""
    types = _carried_types(op)
    lanes, copies = printer.lanes, printer.copies
    carried = [
        printer.spread(value, type, lanes, copies) for value, type in zip(inits, types, strict=True)
    ]
    for trip in range(bounds.trips or 0):
        position = int(bounds.low) + trip * int(bounds.step)
        printer.values[op.body.block.args[0]] = Value((str(position),))
        printer.values.update(zip(op.body.block.args[1:], carried, strict=True))
        yielded = printer.block(op.body.block)
        new = [
            printer.spread(value, type, lanes, copies)
            for value, type in zip(yielded, types, strict=True)
        ]
        carried = _masked(printer, new, carried, types)
    return carried


def _times(step: str, scale: int, printer: FunctionPrinter) -> str:
    if step.isdigit():
        return str(int(step) * scale)
    return step if scale == 1 else printer.body.emit(f"mul nsw i64 {step}, {scale}")


def _bind_induction(printer: FunctionPrinter, op: scf.ForOp, position: str, step: str) -> None:
    """The induction variable as the enclosing mode sees it."""
    variable = op.body.block.args[0]
    if _is_lane_loop(printer, op):
        printer.values[variable] = Value((position,), 1, int(step))
    elif _is_jam_loop(printer, op):
        names = [position]
        for copy in range(1, int_of(op, "plait.jam")):
            names.append(printer.body.emit(f"add nsw i64 {position}, {copy * int(step)}"))
        printer.values[variable] = Value(tuple(names * (printer.copies // len(names))))
    else:
        printer.values[variable] = Value((position,))


def _is_lane_loop(printer: FunctionPrinter, op: Operation) -> bool:
    return printer.lanes > 1 and int_of(op, "plait.lanes") == printer.lanes


def _is_jam_loop(printer: FunctionPrinter, op: Operation) -> bool:
    return printer.jammed is op


def _masked(
    printer: FunctionPrinter,
    new: list[Value],
    old: list[Value],
    types: list[Attribute],
) -> list[Value]:
    """Where the mask is off, carried values stay."""
    mask = printer.mask
    if mask is None or not new:
        return new
    lanes = printer.lanes
    found: list[Value] = []
    for value, before, type in zip(new, old, types, strict=True):
        names: list[str] = []
        spelled, flag = vector(llvm_type(type), lanes), vector("i1", lanes)
        for copy in range(len(value.names)):
            m = as_lanes(printer.body, mask, copy, lanes, i1)
            names.append(
                printer.body.emit(
                    f"select {flag} {m}, {spelled} {value.copy(copy)}, "
                    f"{spelled} {before.copy(copy)}"
                )
            )
        found.append(Value(tuple(names), lanes))
    return found


def _need_constant_step(bounds: Bounds, op: scf.ForOp) -> None:
    if not bounds.step.isdigit():
        raise DiagnosticException("target llvm: a vectorised loop needs a constant step")


def _lane_loop(
    printer: FunctionPrinter, op: scf.ForOp, lanes: int, inits: list[Value]
) -> list[Value]:
    """Whole vectors, then the remainder under a mask (or overlapping the last vector)."""
    bounds = _bounds(printer, op)
    _need_constant_step(bounds, op)
    outer = printer.lanes
    printer.lanes = lanes
    try:
        trips = bounds.trips
        if trips is not None and trips % lanes == 0:
            return _counted(printer, op, bounds, inits, lanes, None)
        if trips is not None and trips > lanes and "plait.overlap" in op.attributes:
            return _counted(printer, op, bounds, inits, lanes, lanes * int(bounds.step))
        return _with_tail(printer, op, bounds, inits, lanes)
    finally:
        printer.lanes = outer


def _with_tail(
    printer: FunctionPrinter, op: scf.ForOp, bounds: Bounds, inits: list[Value], lanes: int
) -> list[Value]:
    body = printer.body
    trips, step = bounds.trips, int(bounds.step)
    if trips is not None:
        whole = trips - trips % lanes
        middle = str(int(bounds.low) + whole * step)
        rest = str(trips - whole)
    else:
        count = body.emit(f"sub nsw i64 {bounds.high}, {bounds.low}")
        if step != 1:
            count = body.emit(f"add nsw i64 {count}, {step - 1}")
            count = body.emit(f"sdiv i64 {count}, {step}")
        rest = body.emit(f"srem i64 {count}, {lanes}")
        done = body.emit(f"sub nsw i64 {count}, {rest}")
        middle = body.emit(f"add nsw i64 {bounds.low}, {_times(done, step, printer)}")
    values = inits
    if trips is None or trips >= lanes:
        values = _counted(printer, op, Bounds(bounds.low, middle, bounds.step), inits, lanes, None)
    small = vector("i32", lanes)
    narrow = rest if rest.isdigit() else body.emit(f"trunc i64 {rest} to i32")
    limit = body.splat_value("i32", narrow, lanes)
    mask = body.emit(f"icmp slt {small} {lane_numbers('i32', lanes)}, {limit}")
    outer = printer.mask
    full = Value((mask,), lanes)
    printer.mask = full if outer is None else printer.both(outer, full)
    # One iteration of the same loop, as a loop of at most one trip: its body is not special.
    end = body.emit(f"add nsw i64 {middle}, {step}") if trips is None else str(int(middle) + step)
    if trips is None:
        some = body.emit(f"icmp sgt i64 {rest}, 0")
        end = body.emit(f"select i1 {some}, i64 {end}, i64 {middle}")
    found = _counted(printer, op, Bounds(middle, end, bounds.step), values, lanes, None)
    printer.mask = outer
    return found


def _jam_loop(printer: FunctionPrinter, op: scf.ForOp, jam: int) -> None:
    """Copies side by side, then the remainder one by one (or overlapping)."""
    bounds = _bounds(printer, op)
    _need_constant_step(bounds, op)
    trips = bounds.trips
    if trips is not None and trips % jam == 0:
        _jammed(printer, op, bounds, jam, None)
        return
    if trips is not None and trips > jam and "plait.overlap" in op.attributes:
        _jammed(printer, op, bounds, jam, jam * int(bounds.step))
        return
    body, step = printer.body, int(bounds.step)
    if trips is not None:
        middle = str(int(bounds.low) + (trips - trips % jam) * step)
    else:
        count = body.emit(f"sub nsw i64 {bounds.high}, {bounds.low}")
        count = body.emit(f"sdiv i64 {count}, {step * jam}")
        count = body.emit(f"mul nsw i64 {count}, {step * jam}")
        middle = body.emit(f"add nsw i64 {bounds.low}, {count}")
    if trips is None or trips >= jam:
        _jammed(printer, op, Bounds(bounds.low, middle, bounds.step), jam, None)
    _counted(printer, op, Bounds(middle, bounds.high, bounds.step), [], 1, None)


def _jammed(
    printer: FunctionPrinter, op: scf.ForOp, bounds: Bounds, jam: int, clamp: int | None
) -> None:
    """A loop of ``jam`` copies. Inside another jammed loop every copy splits into ``jam``."""
    copies, jammed, mask = printer.copies, printer.jammed, printer.mask
    outside = {
        key: value for key, value in printer.values.items() if 1 < len(value.names) == copies
    }
    for key, value in outside.items():
        printer.values[key] = _split_copies(value, jam)
    if mask is not None and 1 < len(mask.names) == copies:
        printer.mask = _split_copies(mask, jam)
    printer.copies, printer.jammed = copies * jam, op
    _counted(printer, op, bounds, [], jam, clamp)
    printer.copies, printer.jammed, printer.mask = copies, jammed, mask
    printer.values.update(outside)


def _split_copies(value: Value, jam: int) -> Value:
    names = tuple(name for name in value.names for _ in range(jam))
    return Value(names, value.lanes, value.stride)


def _lane_reduction(printer: FunctionPrinter, op: scf.ForOp, kinds: list[str]) -> None:
    """Carries a vector of partial results, then combines the lanes with the start values."""
    body = printer.body
    starts = [printer.get(init) for init in op.iter_args]
    types = _carried_types(op)
    inits: list[Value] = []
    for index, (kind, type) in enumerate(zip(kinds, types, strict=True)):
        if kind == "argindex" and index:
            inits.append(Value((identity("argindex", type),)))
        else:
            inits.append(Value((identity(kind, type),)))
    lanes = printer.lanes = int_of(op, "plait.width")
    _any_loop(printer, op, inits)
    printer.lanes = 1
    partial = [printer.get(result) for result in op.results]
    index = 0
    while index < len(kinds):
        kind, copies = kinds[index], len(partial[index].names)
        if kind in ("argmax", "argmin"):
            pairs = [
                horizontal_arg(
                    body,
                    kind,
                    (types[index], types[index + 1]),
                    (partial[index].copy(c), partial[index + 1].copy(c)),
                    lanes,
                    (starts[index].copy(c), starts[index + 1].copy(c)),
                )
                for c in range(copies)
            ]
            for offset in range(2):
                names = tuple(pair[offset] for pair in pairs)
                printer.values[op.results[index + offset]] = Value(names)
            index += 2
            continue
        names = tuple(
            horizontal(
                body, kind, types[index], partial[index].copy(c), lanes, starts[index].copy(c)
            )
            for c in range(copies)
        )
        printer.values[op.results[index]] = Value(names)
        index += 1
