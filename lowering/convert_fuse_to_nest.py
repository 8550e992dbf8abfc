"""``convert-fuse-to-nest``: kernel plans to loop nests on buffers."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from plait.dialects import fuse, lazy, nest
from plait.dialects.lazy_constants import splat_scalar
from plait.dtypes import is_unsigned
from plait.lowering.fuse_to_nest_kernel import kernel_of
from plait.lowering.fuse_to_nest_scalars import buffer_type, storage_type
from plait.passes.fusion import views
from plait.passes.fusion.views import row_major


@dataclass(frozen=True)
class ConvertFuseToNestPass(ModulePass):
    """Turns every ``fuse.group`` into a ``nest.kernel`` and its launch, and tensors into buffers.

    A group becomes a loop nest by asking, for every element it stores, which elements that takes:
    movement operations become affine maps of the loads, elementwise operations scalar code, each
    placed in the outermost loop it can be. Reductions over equally many elements that do not
    depend on each other share a sweep; a reduction that is used again under its own axes makes
    another sweep. Any group can be converted; legality of fusion is not asked here.

    Before:
    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
      %s = fuse.group "sum" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
        %r = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
        fuse.yield %r : tensor<4xf32>
      }
      func.return %s : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    nest.kernel @sum(%a: memref<4x8xf32>, %0: memref<4xf32>) axes [%i0 = 4]
        attributes {source = "reduce"} {
      %1 = nest.reduce [sum] over [%r0 = 8] {
        %2 = nest.load %a[(d0, d1) -> (d0, d1)](%i0, %r0) : memref<4x8xf32>
        nest.yield %2 : f32
      } : f32
      nest.store %1, %0[(d0) -> (d0)](%i0) : memref<4xf32>
    }
    func.func @main(%x: memref<4x8xf32>) -> memref<4xf32> {
      %s = memref.alloc() : memref<4xf32>
      nest.launch @sum(%x, %s) : memref<4x8xf32>, memref<4xf32>
      func.return %s : memref<4xf32>
    }
    ```
    """

    name = "convert-fuse-to-nest"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [function for function in op.ops if isinstance(function, FuncOp)]
        for function in functions:
            if any(isinstance(type, TensorType) for type in _signature(function)):
                _Function(op, function).convert()


def _signature(function: FuncOp) -> list[Attribute]:
    return [*function.function_type.inputs, *function.function_type.outputs]


def _with_elements(attrs: Any, values: Sequence[SSAValue]) -> ArrayAttr[DictionaryAttr] | None:
    """Attributes of arguments or results, with the element type that a buffer does not tell."""
    entries: list[DictionaryAttr] = []
    for number, value in enumerate(values):
        entry: dict[str, Attribute] = dict(attrs.data[number].data) if attrs is not None else {}
        element = lazy.element_type_of(value)
        if is_unsigned(element):
            entry["plait.element"] = element
        entries.append(DictionaryAttr(entry))
    return ArrayAttr(entries) if any(entry.data for entry in entries) else None


def identifier(label: str) -> str:
    """A label as a name for generated code."""
    name = re.sub(r"\W+", "_", label).strip("_") or "kernel"
    return f"k_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name


class _Function:
    """Converts one function: everything new is built beside it, then takes its place."""

    def __init__(self, module: ModuleOp, function: FuncOp):
        self.module = module
        self.function = function
        self.names: set[str] = {
            symbol.data
            for op in module.ops
            if isinstance(symbol := op.properties.get("sym_name"), StringAttr)
        }
        types = [buffer_type(argument) for argument in function.args]
        self.block = Block(arg_types=types)
        self.buffers: dict[SSAValue, SSAValue] = {}
        for new, old in zip(self.block.args, function.args, strict=True):
            new.name_hint = old.name_hint
            self.buffers[old] = new
        self.before: list[Operation] = []
        self.strided: dict[SSAValue, tuple[SSAValue, views.Strided]] = {}

    def convert(self) -> None:
        for op in self.function.body.block.ops:
            self.convert_op(op)
        last, before = self.block.last_op, self.function.body.block.last_op
        assert last is not None and before is not None
        returned = before.operands
        function = FuncOp(
            self.function.sym_name.data,
            ([arg.type for arg in self.block.args], list(last.operand_types)),
            Region(self.block),
            arg_attrs=_with_elements(self.function.arg_attrs, self.function.args),
            res_attrs=_with_elements(self.function.res_attrs, returned),
        )
        function.attributes.update(self.function.attributes)
        body = self.module.body.block
        body.insert_ops_before(self.before, self.function)
        body.insert_op_before(function, self.function)
        self.function.detach()
        self.function.erase(safe_erase=False)

    def convert_op(self, op: Operation) -> None:
        match op:
            case fuse.GroupOp():
                self.convert_group(op)
            case lazy.ConstantOp():
                self.buffers[op.result] = self.constant(op, self.block)
            case lazy.MovementOp() | lazy.MaterializeOp():
                self.convert_view(op)
            case ReturnOp():
                self.block.add_op(ReturnOp(*(self.buffer(value) for value in op.arguments)))
            case _:
                raise DiagnosticException(
                    f"'{op.name}' is outside of every group: expected all computation in "
                    "'fuse.group', as 'fuse-form-groups' leaves it"
                )

    def unique(self, label: str) -> str:
        name, number = identifier(label), 0
        while (found := f"{name}_{number}" if number else name) in self.names:
            number += 1
        self.names.add(found)
        return found

    def constant(self, op: lazy.ConstantOp, block: Block) -> SSAValue:
        """A buffer with the elements of a constant."""
        name = self.unique("constant")
        type = buffer_type(op.result)
        value = cast(Any, op.value)
        dense = cast(Any, DenseIntOrFPElementsAttr)(
            TensorType(storage_type(type.element_type), type.get_shape()), value.data
        )
        self.before.append(
            memref.GlobalOp.get(
                sym_name=StringAttr(name),
                sym_type=type,
                initial_value=dense,
                sym_visibility=StringAttr("private"),
                constant=UnitAttr(),
            )
        )
        get = memref.GetGlobalOp(name, type)
        block.add_op(get)
        return get.memref

    def convert_group(self, group: fuse.GroupOp) -> None:
        dense = [
            op for op in group.body_ops() if isinstance(op, lazy.ConstantOp) and not _is_splat(op)
        ]
        updates = group.updates
        results: list[SSAValue] = []
        for number, value in enumerate(group.outputs):
            if number in updates:
                self.update(value, group.inputs[updates[number]], results)
                continue
            alloc = memref.AllocOp.get(_element(value), shape=_shape(value))
            self.block.add_op(alloc)
            alloc.memref.name_hint = value.name_hint
            self.buffers[value] = alloc.memref
            results.append(alloc.memref)
        if all(0 in lazy.shape_of(value) for value in group.outputs):
            return
        name = self.unique(group.label.data if group.label is not None else "kernel")
        kernel, _ = kernel_of(group, name, [op.result for op in dense])
        self.before.append(kernel)
        over = set(updates.values())
        reads = [self.buffer(v) for number, v in enumerate(group.inputs) if number not in over]
        reads += [self.constant(op, self.block) for op in dense]
        self.block.add_op(nest.LaunchOp(name, [*reads, *results]))

    def update(self, value: SSAValue, over: SSAValue, results: list[SSAValue]) -> None:
        """A result that is written over a buffer is that buffer, maybe under another shape."""
        results.append(self.buffer(over))
        if _shape(value) == _shape(over):
            self.buffers[value] = self.buffer(over)
        self.strided[value] = (over, views.Strided.whole(_shape(value)))

    # Views of buffers that the function returns

    def convert_view(self, op: lazy.MovementOp | lazy.MaterializeOp) -> None:
        source = op.operands[0]
        base, view = self.strided.get(source, (source, views.Strided.whole(lazy.shape_of(source))))
        moved = views.apply(op, view)
        if moved is None:
            raise DiagnosticException(
                f"'{op.name}' outside of a group is not a strided view of a buffer: expected it "
                "in a 'fuse.group', as 'fuse-form-groups' leaves it"
            )
        self.strided[op.results[0]] = (base, moved)

    def buffer(self, value: SSAValue) -> SSAValue:
        """The buffer of a value; a view of a buffer is made when it is first needed."""
        if value not in self.buffers:
            base, view = self.strided[value]
            operations = _reinterpret(self.buffer(base), view)
            self.block.add_ops(operations)
            self.buffers[value] = operations[-1].results[0]
        return self.buffers[value]


def _is_splat(op: lazy.ConstantOp) -> bool:
    return 0 in lazy.shape_of(op.result) or splat_scalar(op.value) is not None


def _element(value: SSAValue) -> Any:
    return storage_type(lazy.element_type_of(value))


def _shape(value: SSAValue) -> tuple[int, ...]:
    return lazy.shape_of(value)


def _reinterpret(buffer: SSAValue, view: views.Strided) -> list[Operation]:
    """The view of a buffer. MLIR has no static stride of 0, so that an expanded axis takes its
    stride from a constant."""
    element = cast(Any, buffer.type).element_type
    plain = view.is_range and view.offset == 0
    zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
    strides = [stride or DYNAMIC_INDEX for stride in view.strides]
    if plain:
        strides, result = list(row_major(view.shape)), MemRefType(element, view.shape)
    else:
        layout = StridedLayoutAttr(
            [None if stride == DYNAMIC_INDEX else stride for stride in strides], view.offset
        )
        result = MemRefType(element, view.shape, layout)
    dynamic = [zero.result for stride in strides if stride == DYNAMIC_INDEX]
    made = memref.ReinterpretCastOp(
        buffer, [], [], dynamic, [view.offset], list(view.shape), strides, result
    )
    return [zero, made] if dynamic else [made]
