"""``convert-nest-to-loops``: kernels become functions of machine loops."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import nest
from plait.lowering.nest_to_loops_function import FunctionEmitter
from plait.lowering.nest_to_loops_keep import keep_rows
from plait.lowering.nest_to_loops_merge import merge_loops
from plait.lowering.nest_to_loops_pack import cut_contraction, pack
from plait.lowering.nest_to_loops_plan import choose
from plait.lowering.nest_to_loops_read import read_kernel
from plait.lowering.nest_to_loops_split import Split, split
from plait.lowering.nest_to_loops_tree import Tree, drop_unit_axes, merge_axes
from plait.passes import remarks


@dataclass
class Converted:
    """What became of a kernel: functions to call in order, on its buffers and temporaries."""

    functions: list[func.FuncOp]
    temporaries: list[MemRefType[Attribute]]


@dataclass(frozen=True)
class ConvertNestToLoopsPass(ModulePass):
    """Lowers every ``nest.kernel`` to a function over a range of units of its parallel space.

    A kernel becomes ``func.func @k(buffers..., %begin: index, %end: index)`` with
    ``plait.extent`` units (any partition of which may run in any order, in parallel) and
    ``plait.work``, the elementary operations of one. Inside, loops carry ``plait.lanes``,
    ``plait.jam`` and ``plait.reduce`` (see :mod:`plait.lowering.llvm_function`), which say how to
    print them and change nothing in what they mean. Launches become calls over all units. A large
    reduction of a kernel with few parallel points becomes two functions: partial results, then
    the rest. What one sweep over a row computes at some cost, and a later one needs again, stays in
    memory of the function (:mod:`plait.lowering.nest_to_loops_keep`). A contraction gets a function
    for each factor that it had better not read in place, which writes it to a temporary in the
    order in which it is read. Sweeps that read the same and need nothing of each other become one.
    Stores to large results, a line of memory at a time, are marked ``plait.stream``.

    Before:
    ```mlir
    nest.kernel @double(%x: memref<64xf32>, %y: memref<64xf32>) axes [%i = 64] {
      %v = nest.load %x[(d0) -> (d0)](%i) : memref<64xf32>
      %r = arith.addf %v, %v : f32
      nest.store %r, %y[(d0) -> (d0)](%i) : memref<64xf32>
    }
    ```
    After (the inner loops only):
    ```mlir
    scf.for %step = %c0 to %c4 step %c1 {
      %base = arith.muli %step, %c16 : index
      scf.for %lane = %c0 to %c16 step %c1 {
        %i = arith.addi %base, %lane : index
        %v = memref.load %x[%i] : memref<64xf32>
        %r = arith.addf %v, %v : f32
        memref.store %r, %y[%i] : memref<64xf32>
      } {plait.lanes = 16 : index}
    }
    ```

    Remarks: ``nest.loops`` (which axes became vectors and copies, and how many units).
    """

    name = "convert-nest-to-loops"

    vector_bytes: int = 32
    """Width of the machine's vector registers in bytes."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.vector_bytes not in (16, 32, 64):
            raise DiagnosticException(
                f"convert-nest-to-loops: vector-bytes: expected 16, 32 or 64, found "
                f"{self.vector_bytes}"
            )
        kernels = [inner for inner in op.body.block.ops if isinstance(inner, nest.KernelOp)]
        converted = [(kernel, self.convert(kernel)) for kernel in kernels]
        found: dict[str, Converted] = {}
        for kernel, result in converted:
            found[kernel.sym_name.data] = result
            op.body.block.insert_ops_before(result.functions, kernel)
            kernel.detach()
            kernel.erase()
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                _convert_launches(function, found)

    def convert(self, kernel: nest.KernelOp) -> Converted:
        """The functions of one kernel, which stays as it is."""
        tree = read_kernel(kernel)
        drop_unit_axes(tree)
        merge_axes(tree)
        merge_loops(tree)
        parts = self.parts(tree)
        functions = [self.function(part, kernel) for part in parts.trees]
        return Converted(functions, parts.temporaries)

    def parts(self, tree: Tree) -> Split:
        """The kernels that replace one: packed factors, partial results, and the kernel proper."""
        packed = pack(tree, self.vector_bytes)
        if packed is None:
            return split(tree) or Split([tree], [])
        *before, main = packed.trees
        after = split(main, cut_contraction) or Split([main], [])
        for part in before:
            if part.lanes is None:
                merge_axes(part)
            part.arguments = after.trees[0].arguments
        return Split([*before, *after.trees], [*packed.temporaries, *after.temporaries])

    def function(self, tree: Tree, kernel: nest.KernelOp) -> func.FuncOp:
        """The function of one tree."""
        plan = choose(tree, self.vector_bytes)
        kept = keep_rows(tree) if plan.lane_axis is None else None
        if kept is not None:
            tree, plan = kept, choose(kept, self.vector_bytes)
        function = FunctionEmitter(tree, plan).function()
        if kernel.source is not None:
            function.attributes["plait.source"] = kernel.source
        if remarks.wanted():
            remarks.analysis(
                "nest.loops",
                f"loops of '{tree.name}'",
                vector=plan.lane_axis.name if plan.lane_axis else "reductions",
                lanes=plan.lanes,
                copies=prod(size for _, size in plan.jams),
                units=plan.units,
            )
        return function


def _extent(function: func.FuncOp) -> int:
    attribute = function.attributes["plait.extent"]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def _convert_launches(function: func.FuncOp, converted: dict[str, Converted]) -> None:
    """Launches in a host function become calls over all units."""
    constants: dict[int, Operation] = {}
    launches = [op for op in function.walk() if isinstance(op, nest.LaunchOp)]

    def constant(value: int) -> Operation:
        if value not in constants:
            constants[value] = arith.ConstantOp(IntegerAttr(value, IndexType()))
            first = function.body.block.first_op
            assert first is not None
            if len(constants) > 1:
                function.body.block.insert_op_after(constants[value], [*constants.values()][-2])
            else:
                function.body.block.insert_op_before(constants[value], first)
        return constants[value]

    for launch in launches:
        name = launch.kernel.string_value()
        if name not in converted:
            raise DiagnosticException(f"convert-nest-to-loops: launch of unknown kernel '@{name}'")
        temporaries = [
            memref.AllocOp.get(type.element_type, shape=type.get_shape())
            for type in converted[name].temporaries
        ]
        buffers = [*launch.buffers, *(alloc.memref for alloc in temporaries)]
        calls = [
            func.CallOp(part.sym_name.data, [*buffers, constant(0), constant(_extent(part))], [])
            for part in converted[name].functions
        ]
        parent = launch.parent
        assert parent is not None
        parent.insert_ops_before([*temporaries, *calls], launch)
        launch.detach()
        launch.erase()
