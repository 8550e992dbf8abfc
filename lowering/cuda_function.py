"""Prints a ``gpu.func`` as a CUDA C function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects import arith, gpu, llvm, memref, scf, vector
from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects.gpu_shuffle import ShuffleMode, ShuffleOp
from plait.lowering.cuda_expressions import FUNCTION_NAMES, Expressions, bare
from plait.lowering.cuda_ranges import Ranges
from plait.lowering.cuda_types import RESERVED, c_type, literal

_LONGEST_INLINE = 72
_ATOMIC = {1: "atomicAdd", 2: "atomicExch"}
"""Functions for kinds of ``memref.atomic_rmw``: addi, assign."""
_INTRINSICS = {"llvm.nvvm.membar.gl": "__threadfence", "llvm.nvvm.bar.warp.sync": "__syncwarp"}


class FunctionPrinter:
    """Prints one function: values that are used once and cheap to read stay inside expressions."""

    def __init__(self, function: gpu.FuncOp):
        self.function = function
        self.block = function.body.block
        self.lines: list[str] = []
        self.depth = 1
        self.text: dict[SSAValue, str] = {}
        self.count = 0
        self.reserved = {*RESERVED, *FUNCTION_NAMES, "main"}
        self.used_names = {*self.reserved, function.sym_name.data}
        self.wide = self._needs_wide_indices()
        self.expressions = Expressions(self.wide)
        self.shared: dict[str, str] = {}

    # Facts

    def geometry(self, key: str) -> tuple[int, ...]:
        return tuple(cast(Any, self.function.attributes[f"plait.{key}"]).get_values())

    def _needs_wide_indices(self) -> bool:
        grid, threads = (prod(self.geometry(key)) for key in ("grid", "block"))
        return not Ranges(self.function, grid, threads).fits

    def written(self) -> set[SSAValue]:
        """The buffers that are stored to."""
        bases: dict[SSAValue, SSAValue] = {argument: argument for argument in self.block.args}
        found: set[SSAValue] = set()
        for op in self.function.walk():
            if isinstance(op, memref.ReinterpretCastOp):
                bases[op.result] = bases.get(op.source, op.source)
            elif isinstance(op, memref.StoreOp | memref.AtomicRMWOp | vector.StoreOp):
                base = op.base if isinstance(op, vector.StoreOp) else op.memref
                found.add(bases.get(base, base))
        return found

    # Names

    def fresh(self, hint: str | None, prefix: str = "v") -> str:
        base = re.sub(r"\W", "_", hint, flags=re.ASCII) if hint and not hint[0].isdigit() else None
        if base is not None and base not in self.used_names:
            self.used_names.add(base)
            return base
        while (name := f"{base or prefix}{self.count}") in self.used_names:
            self.count += 1
        self.used_names.add(name)
        self.count += 1
        return name

    def say(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def c(self, type: Attribute) -> str:
        return c_type(type, self.wide)

    # Printing

    def print(self) -> str:
        """The function's text."""
        kernel = self.function.sym_name.data
        if not re.fullmatch(r"[A-Za-z_]\w*", kernel, re.ASCII) or kernel in self.reserved:
            raise DiagnosticException(
                f"cuda: a kernel cannot be called '{kernel}' in CUDA C: rename it"
            )
        written = self.written()
        parameters: list[str] = []
        for number, argument in enumerate(self.block.args):
            name = self.fresh(argument.name_hint, f"b{number}_")
            self.text[argument] = name
            const = "" if argument in written else "const "
            element = self.c(cast(Any, argument.type).element_type)
            parameters.append(f"{const}{element}* __restrict__ {name}")
        self.body(self.block)
        threads = prod(self.geometry("block"))
        name = self.function.sym_name.data
        head = f'extern "C" __global__ void __launch_bounds__({threads})\n{name}('
        joined = ",\n    ".join(parameters)
        return f"{self.header()}{head}{joined})\n{{\n" + "\n".join(self.lines) + "\n}\n"

    def header(self) -> str:
        """What the kernel is, for readers."""
        lines = [f"// {self.function.sym_name.data}"]
        for key in ("source", "space", "schedule"):
            value = self.function.attributes.get(f"plait.{key}")
            if isinstance(value, StringAttr):
                lines.append(f"//   {key}: {value.data}")
        grid, block = self.geometry("grid")[0], self.geometry("block")[0]
        lines.append(f"//   launch: {grid} blocks of {block} threads")
        return "\n".join(lines) + "\n"

    def body(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def is_unused(self, op: Operation) -> bool:
        """Whether nothing would be missing without an operation."""
        effects = bool(op.regions) or isinstance(op, memref.AtomicRMWOp)
        return len(op.results) == 1 and not effects and not op.results[0].uses.get_length()

    def operation(self, op: Operation) -> None:
        if self.is_unused(op):
            return
        match op:
            case arith.ConstantOp(result=SSAValue(type=VectorType())):
                self.text[op.result] = "{}"  # all zeros
            case arith.ConstantOp():
                value = cast(Any, op.value).value.data
                text = literal(value, op.result.type)
                self.text[op.result] = f"({text})" if text.startswith("-") else text
            case gpu.BlockIdOp():
                self.text[op.result] = "(long long)blockIdx.x" if self.wide else "(int)blockIdx.x"
                self.named(op.result, self.text[op.result], "block")
            case gpu.ThreadIdOp():
                self.named(op.result, "(int)threadIdx.x", "thread")
            case gpu.BarrierOp():
                self.say("__syncthreads();")
            case gpu.ReturnOp() | scf.YieldOp():
                pass
            case memref.ReinterpretCastOp():
                self.text[op.result] = self.text[op.source]
            case memref.GetGlobalOp():
                self.global_array(op)
            case memref.LoadOp():
                [index] = op.indices
                element = f"{self.text[op.memref]}[{bare(self.text[index])}]"
                self.named(op.results[0], element)
            case memref.StoreOp():
                [index] = op.indices
                target = f"{self.text[op.memref]}[{bare(self.text[index])}]"
                self.say(f"{target} = {bare(self.text[op.value])};")
            case vector.LoadOp():
                self.named(op.result, f"*(const {self.vector(op.base, op.result.type, op.indices)}")
            case vector.StoreOp():
                target = self.vector(op.base, op.vector.type, op.indices)
                self.say(f"*({target} = {self.text[op.vector]};")
            case vector.ExtractOp():
                [lane] = op.dynamic_position
                self.named(op.result, f"{self.text[op.vector]}.at[{bare(self.text[lane])}]")
            case vector.InsertOp():
                self.insert(op)
            case memref.AtomicRMWOp():
                self.atomic(op)
            case ShuffleOp():
                self.shuffle(op)
            case llvm.CallIntrinsicOp() if op.intrin.data in _INTRINSICS:
                arguments = ", ".join(bare(self.text[argument]) for argument in op.args)
                self.say(f"{_INTRINSICS[op.intrin.data]}({arguments});")
            case scf.ForOp():
                self.loop(op)
            case scf.IfOp():
                self.branch(op)
            case _:
                self.expression(op)

    def vector(self, base: SSAValue, type: Attribute, indices: Sequence[SSAValue]) -> str:
        """A place in memory as that of a vector, after the opening parenthesis."""
        [index] = indices
        return f"{self.c(type)}*)&{self.text[base]}[{bare(self.text[index])}]"

    def insert(self, op: vector.InsertOp) -> None:
        """A vector with one element changed: in place, for nothing else reads the old one."""
        if op.dest.uses.get_length() != 1:
            raise DiagnosticException("cuda: a vector that is changed is used again")
        [lane] = op.dynamic_position
        element = f"{self.text[op.dest]}.at[{bare(self.text[lane])}]"
        self.say(f"{element} = {bare(self.text[op.source])};")
        self.text[op.result] = self.text[op.dest]

    def atomic(self, op: memref.AtomicRMWOp) -> None:
        """A change of an element at once."""
        kind = op.kind.value.data
        if kind not in _ATOMIC:
            raise DiagnosticException(f"cuda: no atomic operation of kind {kind}")
        [index] = op.indices
        element = f"&{self.text[op.memref]}[{bare(self.text[index])}]"
        call = f"{_ATOMIC[kind]}({element}, {bare(self.text[op.value])})"
        if op.result.uses.get_length():
            self.named(op.result, call)
        else:
            self.say(f"{call};")

    def shuffle(self, op: ShuffleOp) -> None:
        """A value from another lane of a warp, all of which take part."""
        mode = op.mode.data
        suffix = "" if mode == ShuffleMode.IDX else f"_{mode.value}"
        value, offset = bare(self.text[op.value]), bare(self.text[op.offset])
        self.named(op.shuffled, f"__shfl{suffix}_sync(0xffffffffu, {value}, {offset})")

    def named(self, value: SSAValue, text: str, hint: str | None = None) -> None:
        """A variable with a value."""
        name = self.fresh(hint or value.name_hint)
        self.say(f"{self.c(value.type)} {name} = {bare(text)};")
        self.text[value] = name

    def expression(self, op: Operation) -> None:
        if len(op.results) != 1:
            raise DiagnosticException(f"cuda: cannot print '{op.name}'")
        [result] = op.results
        text = self.expressions.of(op, [self.text[operand] for operand in op.operands])
        uses = list(result.uses)
        here = len(uses) == 1 and uses[0].operation.parent is op.parent
        if here and len(text) <= _LONGEST_INLINE:
            self.text[result] = f"({text})"
        else:
            self.named(result, text)

    def global_array(self, op: memref.GetGlobalOp) -> None:
        """A shared array, declared where it is first used."""
        symbol = op.name_.string_value()
        if symbol not in self.shared:
            type = cast(Any, op.memref.type)
            size = prod(type.get_shape())
            name = self.shared[symbol] = self.fresh(symbol)
            self.say(f"__shared__ {self.c(type.element_type)} {name}[{size}];")
        self.text[op.memref] = self.shared[symbol]

    def loop(self, op: scf.ForOp) -> None:
        index, *carried = op.body.block.args
        for argument, init, result in zip(carried, op.iter_args, op.results, strict=True):
            self.named(argument, self.text[init], "acc")
            self.text[result] = self.text[argument]
        name = self.fresh(index.name_hint, "i")
        self.text[index] = name
        low, high, step = (bare(self.text[v]) for v in (op.lb, op.ub, op.step))
        advance = f"++{name}" if step == "1" else f"{name} += {step}"
        kind = self.c(index.type)
        if "plait.unroll" in op.attributes:
            self.lines.append("#pragma unroll")
        self.say(f"for ({kind} {name} = {low}; {name} < {high}; {advance}) {{")
        self.depth += 1
        self.body(op.body.block)
        self.assign([self.text[argument] for argument in carried], self.yielded(op.body.block))
        self.depth -= 1
        self.say("}")

    def yielded(self, block: Block) -> list[SSAValue]:
        last = block.last_op
        return list(last.operands) if isinstance(last, scf.YieldOp) else []

    def assign(self, names: list[str], values: list[SSAValue]) -> None:
        """Assigns all at once: no new value may read a name that is already assigned."""
        texts = [bare(self.text[value]) for value in values]
        pairs = [(n, t, v) for n, t, v in zip(names, texts, values, strict=True) if n != t]
        if len(pairs) > 1:
            held: list[tuple[str, str]] = []
            for name, text, value in pairs:
                fresh = self.fresh("next")
                self.say(f"{self.c(value.type)} {fresh} = {text};")
                held.append((name, fresh))
            pairs = [(name, fresh, values[0]) for name, fresh in held]
        for name, text, _ in pairs:
            self.say(f"{name} = {text};")

    def branch(self, op: scf.IfOp) -> None:
        condition = bare(self.text[op.cond])
        guarded = self.guarded_load(op)
        if guarded is not None:
            self.named(op.results[0], f"{self.text[op.cond]} ? {guarded[0]} : {guarded[1]}")
            return
        names: list[str] = []
        for result in op.results:
            name = self.fresh(result.name_hint)
            self.say(f"{self.c(result.type)} {name};")
            self.text[result] = name
            names.append(name)
        self.say(f"if ({condition}) {{")
        for number, region in enumerate(op.regions):
            if not region.blocks or (number and not names and len(list(region.block.ops)) < 2):
                continue
            if number:
                self.say("} else {")
            self.depth += 1
            self.body(region.block)
            self.assign(names, self.yielded(region.block))
            self.depth -= 1
        self.say("}")

    def guarded_load(self, op: scf.IfOp) -> tuple[str, str] | None:
        """A load under a condition, as the two sides of a conditional expression."""
        if len(op.results) != 1:
            return None
        load, other = op.true_region.block.first_op, op.false_region.block.first_op
        plain = isinstance(load, memref.LoadOp) and isinstance(load.next_op, scf.YieldOp)
        if not plain or not isinstance(other, scf.YieldOp):
            return None
        assert isinstance(load, memref.LoadOp)
        element = f"{self.text[load.memref]}[{bare(self.text[load.indices[0]])}]"
        return element, self.text[other.operands[0]]
