"""From tensors to a module of ``lazy`` operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from plait.errors import PlaitError
from plait.frontend.node import Node, i64_attr
from plait.frontend.tensor import Tensor


def topological(outputs: Sequence[Node]) -> list[Node]:
    """Every node that outputs are made of, sources first; graphs may be of any depth."""
    order: list[Node] = []
    done: set[int] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(outputs)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if ready:
            done.add(id(node))
            order.append(node)
            continue
        stack.append((node, True))
        stack.extend((source, False) for source in reversed(node.sources))
    return order


def type_of(node: Node) -> TensorType[Attribute]:
    return TensorType(cast(Attribute, node.element), node.shape)


def build_module(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor] | None = None
) -> tuple[ModuleOp, list[Tensor]]:
    """A module whose ``@main`` computes the outputs, and the tensor of each of its arguments.

    Arguments are ``inputs`` in order, or the inputs that outputs depend on in the order in which
    they are met. Raises :class:`PlaitError` for an input that is not among ``inputs``.
    """
    order = topological([*outputs, *(o.alias_of for o in outputs if o.alias_of is not None)])
    found = [cast(Tensor, node) for node in order if node.op is None]
    if inputs is not None:
        missing = [node for node in found if all(node is not given for given in inputs)]
        if missing:
            raise PlaitError(f"{missing[0]!r} is used but is not among the inputs")
        found = list(inputs)
    block = Block(arg_types=[type_of(node) for node in found])
    values: dict[int, SSAValue] = {}
    known: dict[Any, SSAValue] = {}
    for argument, node in zip(block.args, found, strict=True):
        argument.name_hint = node.name
        values[id(node)] = argument
    for node in order:
        if node.op is None:
            continue
        operands = [values[id(source)] for source in node.sources]
        properties = tuple(sorted(node.properties.items()))
        key = (node.op, tuple(operands), properties, node.shape, node.element)
        if key not in known:
            op = _operation(node, operands)
            block.add_op(op)
            op.results[0].name_hint = node.name
            known[key] = op.results[0]
        values[id(node)] = known[key]
    block.add_op(ReturnOp(*(values[id(output)] for output in outputs)))
    function = FuncOp(
        "main",
        ([type_of(node) for node in found], [type_of(node) for node in outputs]),
        Region(block),
        arg_attrs=ArrayAttr([_argument(node) for node in found]),
        res_attrs=ArrayAttr([_result(output, found) for output in outputs]),
    )
    return ModuleOp([function]), found


def _operation(node: Node, operands: Sequence[SSAValue]) -> Any:
    from plait.dialects.lazy import ConcatOp

    assert node.op is not None
    grouped = [list(operands)] if node.op is ConcatOp else list(operands)
    return cast(Any, node.op).build(
        operands=grouped, properties=node.properties, result_types=[type_of(node)]
    )


def _argument(node: Node) -> DictionaryAttr:
    return DictionaryAttr({"lazy.donated": UnitAttr()} if node.donated else {})


def _result(output: Node, inputs: Sequence[Node]) -> DictionaryAttr:
    if output.alias_of is None:
        return DictionaryAttr({})
    position = next(k for k, node in enumerate(inputs) if node is output.alias_of)
    return DictionaryAttr({"lazy.aliases": i64_attr(position)})
