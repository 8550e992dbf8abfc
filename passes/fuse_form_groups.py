"""The pass ``fuse-form-groups``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp, YieldOp
from plait.passes import remarks
from plait.passes.analysis.blocks import only_block
from plait.passes.fusion.baseline import choose_stores
from plait.passes.fusion.program import Program, Role
from plait.passes.fusion.stores import Stores


@dataclass(frozen=True)
class FuseFormGroupsPass(ModulePass):
    """Turns a tensor program into the baseline kernel plan.

    One group per value that must be in memory (:mod:`plait.passes.fusion.stores` says which: a
    reduce after its epilogue, a result, a value cheaper to store than to compute again); each
    group computes its value from buffers, cloning what it needs. Movement operations go into the
    groups that read through them; a result that is a strided view of a buffer stays a view in the
    function and costs no kernel.

    Before:
    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = lazy.exp %x : tensor<4x8xf32>
      %1 = lazy.reduce sum %0 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
      func.return %1 : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = fuse.group "sum_0" (%1 = %x : tensor<4x8xf32>) -> tensor<4xf32> {
        %2 = lazy.exp %1 : tensor<4x8xf32>
        %3 = lazy.reduce sum %2 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
        fuse.yield %3 : tensor<4xf32>
      }
      func.return %0 : tensor<4xf32>
    }
    ```
    Remarks: `fuse.group-formed` (analysis), with the reason its value is stored.
    """

    name = "fuse-form-groups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                if any(isinstance(inner, GroupOp) for inner in only_block(function).ops):
                    continue
                program = Program.read(function)
                _Former(program, choose_stores(program)).form()


@dataclass
class _Former:
    """Builds the groups of a decided plan in place of the function's operations."""

    program: Program
    stores: Stores

    def form(self) -> None:
        program = self.program
        block = only_block(program.function)
        old = list(block.ops)
        terminator = block.last_op
        assert isinstance(terminator, ReturnOp)
        buffers = dict[int, SSAValue]()
        new = list[Operation]()
        for node, role in enumerate(program.roles):
            op = program.ops[node]
            if op is None:
                buffers[node] = program.values[node]
            elif node in self.stores.why:
                group = self._group(node, buffers, len(new))
                buffers[node] = group.outputs[0]
                new.append(group)
            elif role is Role.BUFFER:
                new.append(op.clone())
                buffers[node] = new[-1].results[0]
        results = [
            self._view(node, base, buffers, new)
            for node, base in zip(program.results, self.stores.result_base, strict=True)
        ]
        block.insert_ops_before(new, terminator)
        terminator.operands = results
        for op in reversed(old[:-1]):
            op.detach()
            op.erase(safe_erase=False)

    def _group(self, root: int, buffers: dict[int, SSAValue], number: int) -> GroupOp:
        """The group that computes one stored node from buffers."""
        program = self.program
        nodes, inputs = self._cone(root, buffers)
        block = Block(arg_types=[buffers[node].type for node in inputs])
        local: dict[int, SSAValue] = dict(zip(inputs, block.args, strict=True))
        for node in nodes:
            if isinstance(program.ops[node], lazy.MaterializeOp) and program.sizes[node]:
                local[node] = local[program.sources[node][0]]
                continue
            clone = _clone(program, node, local)
            block.add_op(clone)
            local[node] = clone.results[0]
        block.add_op(YieldOp(local[root]))
        label = f"{_kind(program, nodes)}_{number}"
        remarks.analysis(
            "fuse.group-formed",
            f"kernel '{label}' stores a value",
            kernel=label,
            reason=str(self.stores.why[root]),
            bytes=program.bytes_of(root),
        )
        return GroupOp(
            [buffers[node] for node in inputs], [program.values[root].type], block, label
        )

    def _cone(self, root: int, buffers: dict[int, SSAValue]) -> tuple[list[int], list[int]]:
        """What the root needs that is not in memory, in order, and the buffers under it."""
        seen, pending = {root}, [root]
        nodes, inputs = [root], list[int]()
        while pending:
            for source in self.program.sources[pending.pop()]:
                if source in seen:
                    continue
                seen.add(source)
                if source in buffers:
                    inputs.append(source)
                else:
                    nodes.append(source)
                    pending.append(source)
        return sorted(nodes), sorted(inputs)

    def _view(
        self, node: int, base: int, buffers: dict[int, SSAValue], new: list[Operation]
    ) -> SSAValue:
        """A result as views of the buffer under it, made in the function."""
        if base not in buffers:
            new.append(_clone(self.program, base, {}))
            buffers[base] = new[-1].results[0]
        chain = list[int]()
        while node not in buffers:
            chain.append(node)
            (node,) = self.program.sources[node]
        for view in reversed(chain):
            source = buffers[self.program.sources[view][0]]
            if isinstance(self.program.ops[view], lazy.MaterializeOp):
                buffers[view] = source
            else:
                new.append(_clone(self.program, view, {self.program.sources[view][0]: source}))
                buffers[view] = new[-1].results[0]
        return buffers[node if not chain else chain[0]]


def _clone(program: Program, node: int, local: dict[int, SSAValue]) -> Operation:
    op = program.ops[node]
    assert op is not None
    if program.sizes[node] == 0:
        return lazy.ConstantOp(_empty(program.values[node].type))
    mapper = {program.values[source]: local[source] for source in program.sources[node]}
    return op.clone(mapper)


def _empty(type: Attribute) -> DenseIntOrFPElementsAttr:
    assert isinstance(type, TensorType)
    return DenseIntOrFPElementsAttr.from_list(type, [])  # pyright: ignore


def _kind(program: Program, nodes: Iterable[int]) -> str:
    """What a kernel mostly does, for its name."""
    kind = "copy"
    for node in nodes:
        match program.ops[node]:
            case lazy.ReduceOp() as op:
                return op.kind.data.value
            case lazy.ArgReduceOp() | lazy.ScanOp() | lazy.ScatterOp() as op:
                return op.name.removeprefix("lazy.")
            case lazy.ElementwiseOp() | lazy.GatherOp() | lazy.RngBitsOp():
                kind = "map"
            case _:
                pass
    return kind
