"""What a kernel plan costs: kernels, bytes, passes over large buffers, the lower bound, time.

The keys and their definitions are the design's: a kernel is a launch, bytes are those of distinct
elements as often as they are fetched (:mod:`plait.passes.analysis.traffic`), a large pass is a read
or write of a buffer at least a quarter the size of the program's largest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.dtypes import itemsize
from plait.passes.analysis.access import AccessKind
from plait.passes.analysis.reads import Sweep, sweeps_of_group
from plait.passes.analysis.targets import DEFAULT, Target, get
from plait.passes.analysis.traffic import Traffic, bytes_of, traffic_of_sweeps
from plait.passes.analysis.updates import kept_elements
from plait.passes.analysis.work import operations_of

Report = dict[str, Any]


@dataclass(frozen=True)
class Kernel:
    """One group of a plan and what it costs."""

    group: GroupOp
    name: str
    kind: str
    """``contraction reduce scan scatter gather map`` or ``copy``: what it mostly does."""
    space: tuple[int, ...]
    """The extents of its largest iteration space, reduced axes included."""
    traffic: Traffic
    modelled_us: float


def report(module: ModuleOp, target: str | Target = DEFAULT) -> Report:
    """The costs of a module of level 2, under the keys of the command line's ``--json``:

    ``kernels``, ``bytes_read``, ``bytes_written``, ``bytes``, ``lower_bound_bytes``, ``gap``,
    ``large_passes``, ``modelled_us``, ``target`` and ``detail``: per kernel ``name``, ``kind``,
    ``space``, ``reads``, ``writes``, ``bytes``, ``modelled_us``. Each of ``reads`` has ``buffer``,
    ``bytes``, ``elements``, ``sweeps``, ``access`` and ``exact``; each of ``writes``
    ``buffer``, ``bytes`` and ``elements``.
    """
    machine = get(target) if isinstance(target, str) else target
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    kernels = [kernel for f in functions for kernel in kernels_of(f, machine)]
    moved = sum(kernel.traffic.bytes for kernel in kernels)
    bound = sum(lower_bound(function, kernels) for function in functions)
    names = _Names(kernels)
    return {
        "kernels": len(kernels),
        "bytes_read": sum(kernel.traffic.bytes_read for kernel in kernels),
        "bytes_written": sum(kernel.traffic.bytes_written for kernel in kernels),
        "bytes": moved,
        "lower_bound_bytes": bound,
        "gap": moved / bound if bound else 1.0,
        "large_passes": large_passes(functions, kernels),
        "modelled_us": sum(kernel.modelled_us for kernel in kernels),
        "target": machine.name,
        "detail": [_detail(kernel, names) for kernel in kernels],
    }


def kernels_of(function: FuncOp, target: Target) -> list[Kernel]:
    """The kernels of a function in order; groups that launch nothing are left out."""
    groups = [op for op in function.body.block.ops if isinstance(op, GroupOp)]
    return [
        kernel_of(group, f"group_{number}", target)
        for number, group in enumerate(groups)
        if is_kernel(group)
    ]


def is_kernel(group: GroupOp) -> bool:
    """Whether a group launches anything: it has elements to store that are not operands already."""
    return any(
        bytes_of(value) and not isinstance(value, BlockArgument)
        for value in group.yield_op.arguments
    )


def kernel_of(group: GroupOp, default_name: str, target: Target) -> Kernel:
    """A group with its costs on a target."""
    sweeps = sweeps_of_group(group)
    traffic = traffic_of_sweeps(sweeps, group.outputs, target)
    if group.updates:
        traffic = replace(traffic, writes=tuple(written_bytes(group)))
    name = group.label.data if group.label is not None else default_name
    kind = kind_of(group, sweeps)
    type = lazy.element_type_of(group.outputs[0])
    work = operations_of(group.block.ops)
    time = target.time_us(traffic.bytes, work, type, kind == "contraction")
    space = max((sweep.space for sweep in sweeps), key=prod)
    return Kernel(group, name, kind, space, traffic, time)


def written_bytes(group: GroupOp) -> list[int]:
    """Bytes of every output that the kernel writes: all of it, or what it changes in place."""
    found = [bytes_of(value) for value in group.outputs]
    for output, number in group.updates.items():
        value = group.yield_op.arguments[output]
        kept = kept_elements(value, group.block.args[number])
        found[output] -= kept * itemsize(lazy.element_type_of(value))
    return found


_NAMED: tuple[tuple[type[Operation], str], ...] = (
    (lazy.ReduceOp, "reduce"),
    (lazy.ArgReduceOp, "reduce"),
    (lazy.ScanOp, "scan"),
    (lazy.ScatterOp, "scatter"),
    (lazy.GatherOp, "gather"),
    (lazy.ElementwiseOp, "map"),
    (lazy.RngBitsOp, "map"),
)


def kind_of(group: GroupOp, sweeps: list[Sweep]) -> str:
    """What a kernel mostly does. A contraction sums products whose factors are read again and
    again."""
    if any(_is_contraction(sweep) for sweep in sweeps):
        return "contraction"
    ops = list(group.block.ops)
    for wanted, name in _NAMED:
        if any(isinstance(op, wanted) for op in ops):
            return name
    return "copy"


def _is_contraction(sweep: Sweep) -> bool:
    op = sweep.closing
    if not isinstance(op, lazy.ReduceOp) or op.kind.data is not lazy.ReduceKind.SUM:
        return False
    product = sweep.value.owner
    while isinstance(product, lazy.CastOp | lazy.ReshapeOp | lazy.PermuteOp):
        product = product.operands[0].owner
    repeated = [load for load in sweep.loads if load.kind is AccessKind.BROADCAST]
    return isinstance(product, lazy.MulOp) and len(repeated) > 1


def base_of(value: SSAValue) -> SSAValue:
    """The buffer that a value returned by the function is a view of."""
    while isinstance(value.owner, lazy.MovementOp | lazy.MaterializeOp):
        value = value.owner.operands[0]
    return value


def lower_bound(function: FuncOp, kernels: list[Kernel]) -> int:
    """Bytes no plan can avoid: every input that is used read once, every output written once.

    An input of which the plan's kernels together do not read all counts with what they read.
    """
    read: dict[SSAValue, int] = {}
    for kernel in kernels:
        for each in kernel.traffic.reads:
            if isinstance(each.buffer, BlockArgument) and each.buffer.block.parent_op() is function:
                read[each.buffer] = read.get(each.buffer, 0) + each.bytes
    inputs = sum(min(bytes_of(buffer), bytes) for buffer, bytes in read.items())
    terminator = function.body.block.last_op
    results = terminator.arguments if isinstance(terminator, ReturnOp) else ()
    outputs: dict[SSAValue, int] = {}
    for value in results:
        base = base_of(value)
        if isinstance(base.owner, GroupOp):
            needed = min(bytes_of(value), bytes_of(base))
            outputs[base] = max(outputs.get(base, 0), needed)
    return inputs + sum(outputs.values())


def large_passes(functions: list[FuncOp], kernels: list[Kernel]) -> int:
    """Reads and writes of buffers at least a quarter the size of the program's largest."""
    buffers: list[SSAValue] = []
    for function in functions:
        buffers.extend(function.body.block.args)
    for kernel in kernels:
        buffers.extend(kernel.group.outputs)
    enough = max((bytes_of(value) for value in buffers), default=0) / 4
    return sum(
        sum(read.sweeps for read in kernel.traffic.reads if bytes_of(read.buffer) >= enough)
        + sum(bytes >= enough for bytes in kernel.traffic.writes)
        for kernel in kernels
    )


class _Names:
    """Buffers by name: an argument's, or the kernel that writes it."""

    def __init__(self, kernels: list[Kernel]):
        self.names: dict[SSAValue, str] = {}
        for kernel in kernels:
            outputs = kernel.group.outputs
            for number, value in enumerate(outputs):
                suffix = f"#{number}" if len(outputs) > 1 else ""
                self.names[value] = f"{kernel.name}{suffix}"

    def of(self, value: SSAValue) -> str:
        known = self.names.get(value)
        if known is not None:
            return known
        if isinstance(value, BlockArgument):
            return f"%{value.name_hint}" if value.name_hint else f"%arg{value.index}"
        return f"constant {value.type}"


def _detail(kernel: Kernel, names: _Names) -> dict[str, Any]:
    reads = [
        {
            "buffer": names.of(read.buffer),
            "bytes": read.bytes,
            "elements": read.elements,
            "sweeps": read.sweeps,
            "access": [str(kind) for kind in read.kinds],
            "exact": read.exact,
        }
        for read in kernel.traffic.reads
    ]
    written = zip(kernel.group.outputs, kernel.traffic.writes, strict=True)
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "space": list(kernel.space),
        "reads": reads,
        "writes": [
            {
                "buffer": names.of(value),
                "bytes": bytes,
                "elements": bytes // itemsize(lazy.element_type_of(value)),
            }
            for value, bytes in written
        ],
        "bytes": kernel.traffic.bytes,
        "modelled_us": kernel.modelled_us,
    }
