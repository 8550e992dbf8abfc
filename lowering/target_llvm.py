"""Target ``llvm``: level 4 (func, scf, arith, math, memref) as LLVM IR text.

Every function that takes only memrefs and indices and returns nothing (a kernel) is printed twice:
under its own name, with one pointer per memref, and as ``<name>.packed(ptr, i64, i64)``, which
takes the pointers from an array, so that one function type serves every kernel. The host function
(the one that allocates and calls) is a plan for the runtime, not code; it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.hints import isa
from xdsl.utils.target import Target

from plait.lowering.llvm_function import FunctionPrinter, source_of
from plait.lowering.llvm_text import Body, CpuFeatures, ModuleText
from plait.lowering.llvm_types import UnsupportedTypeError, byte_size, llvm_type
from plait.lowering.llvm_values import Value


def symbol(name: str) -> str:
    """``name`` as an LLVM global name, quoted where it must be."""
    return name if re.fullmatch(r"[A-Za-z$._][A-Za-z$._0-9-]*", name) else f'"{name}"'


def is_kernel(op: func.FuncOp) -> bool:
    """Whether the function is a kernel: ``plait.extent`` says so, or its signature does."""
    if op.is_declaration or len(op.body.blocks) != 1:
        return False
    if "plait.extent" in op.attributes:
        return True
    kinds = (MemRefType, IndexType)
    plain = all(isinstance(type, kinds) for type in op.function_type.inputs)
    calls = any(isinstance(inner, func.CallOp | memref.AllocOp) for inner in op.body.block.ops)
    return plain and not calls and not op.function_type.outputs.data


def kernels_of(module: ModuleOp) -> list[func.FuncOp]:
    """The kernels of a level 4 module, in order."""
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and is_kernel(op)]


def _written(block: Block) -> set[SSAValue]:
    """The buffers stored to anywhere below ``block``, through casts."""
    found: set[SSAValue] = set()
    for op in block.walk():
        if isinstance(op, memref.StoreOp):
            found.add(source_of(op.memref))
    return found


def print_kernel(
    op: func.FuncOp, module: ModuleText, name: str, aligned: Collection[int] = ()
) -> str:
    """The two functions of one kernel, named ``name`` and ``name.packed``; ``aligned`` are the
    numbers of the buffers that begin at a multiple of 64 bytes."""
    body = Body(module)
    printer = FunctionPrinter(body)
    block = op.body.block
    written = _written(block)
    parameters: list[str] = []
    given: list[str] = []
    unpack: list[str] = []
    pointers = 0
    scalars = 0
    for argument in block.args:
        register = body.fresh()
        printer.values[argument] = Value((register,))
        type = argument.type
        if isa(type, MemRefType):
            if pointers in aligned:
                printer.aligned.add(argument)
            access = "" if argument in written else "readonly "
            align = byte_size(type.element_type)
            parameters.append(f"ptr noalias nonnull {access}align {align} {register}")
            unpack.append(f"  %s{pointers} = getelementptr ptr, ptr %args, i64 {pointers}")
            unpack.append(f"  %p{pointers} = load ptr, ptr %s{pointers}, align 8")
            given.append(f"ptr %p{pointers}")
            pointers += 1
        else:
            parameters.append(f"{llvm_type(type)} {register}")
            given.append(f"i64 {('%begin', '%end')[min(scalars, 1)]}")
            scalars += 1
    try:
        printer.block(block)
    except UnsupportedTypeError as error:
        raise DiagnosticException(f"target llvm: kernel '{name}': {error}") from error
    allocas = "".join(line + "\n" for line in printer.allocas)
    lines = "\n".join(body.lines)
    own = symbol(name)
    packed = symbol(f"{name}.packed")
    unpacked = "".join(line + "\n" for line in unpack)
    return (
        f"define void @{own}({', '.join(parameters)}) noinline nounwind {{\n"
        f"entry:\n{allocas}{lines}\n}}\n\n"
        f"define void @{packed}(ptr %args, i64 %begin, i64 %end) nounwind {{\n"
        f"entry:\n{unpacked}  call void @{own}({', '.join(given)})\n  ret void\n}}\n"
    )


def module_to_llvm_ir(
    module: ModuleOp, *, features: CpuFeatures | None = None, triple: str = ""
) -> str:
    """The LLVM IR text of every kernel of ``module``.

    Raises a :class:`DiagnosticException` for an operation that has no place at level 4.
    """
    text = ModuleText(features or CpuFeatures())
    functions = [print_kernel(op, text, op.sym_name.data) for op in kernels_of(module)]
    head = f'target triple = "{triple}"\n' if triple else ""
    return head + "\n" + "\n".join(functions) + "\n" + str(text)


@dataclass(frozen=True)
class LLVMTarget(Target):
    """Prints LLVM IR. Without options the text names no machine and no operating system."""

    name: ClassVar[str] = "llvm"

    triple: str = ""
    """The target triple to print; empty for none."""
    half_conversion: bool = False
    """Assume the machine converts f16 (x86 F16C, AArch64)."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        features = CpuFeatures(half_conversion=self.half_conversion)
        output.write(module_to_llvm_ir(module, features=features, triple=self.triple))


@dataclass(frozen=True)
class PlaitLLVMTarget(LLVMTarget):
    """The same target in tools where xDSL's own has the name ``llvm``."""

    name: ClassVar[str] = "plait-llvm"
