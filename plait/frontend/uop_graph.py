"""Imports a graph of tinygrad-like operations, given as a list of plain nodes, into ``lazy`` IR.

A node is a mapping with ``op``, ``dt``, ``sh`` and ``in`` (positions of its sources in the list;
sources come first) and the fields of its operation (``perm``, ``axes``, ``pads``, ``bounds``,
``value``, ...). Buffers are ``input`` nodes and become the arguments of ``@main``, in order. A
``store`` updates a buffer through a chain of views; readers of the buffer see what was there
before, readers of the ``after`` node what is there then. A buffer that is stored to becomes a
donated argument, and its final contents a result that aliases it, behind the graph's outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from plait.errors import PlaitError
from plait.frontend.uop_emit import Emitter, Literal, Node, tensor_type

_VIEWS = {"reshape", "permute", "shrink", "flip", "contiguous_backward", "detach"}
"""Operations a store can look through to the buffer it updates."""


@dataclass(frozen=True)
class View:
    """Where a node's value lives: views over a root node, after some stores into the root."""

    root: int
    chain: tuple[int, ...] = ()
    """The view nodes from the root outwards."""
    stores: tuple[int, ...] = ()
    """The store nodes that have run."""


@dataclass(frozen=True)
class ImportedGraph:
    """A module and how its function relates to the graph."""

    module: ModuleOp
    inputs: tuple[int, ...]
    """The node of each argument of ``@main``."""
    outputs: int
    """The results that are outputs of the graph; those behind are final contents of buffers."""


def import_graph(records: Sequence[Mapping[str, Any]], outputs: Sequence[int]) -> ImportedGraph:
    """The graph as a module with one function ``@main``.

    Raises :class:`PlaitError` for an operation that has no meaning on tensors (``call``) or an
    unknown one, with its position.
    """
    nodes = [Node.from_json(record) for record in records]
    inputs = tuple(i for i, node in enumerate(nodes) if node.op == "input")
    block = Block(arg_types=[tensor_type(nodes[i].dtype, nodes[i].shape) for i in inputs])
    importer = _Importer(nodes, Emitter(block), dict(zip(inputs, block.args, strict=True)))
    importer.run()
    results = [importer.emit.value_of(importer.values[i], nodes[i].dtype) for i in outputs]
    written = importer.final_contents()
    argument_attrs = [
        DictionaryAttr({"lazy.donated": UnitAttr()} if i in written else {}) for i in inputs
    ]
    result_attrs = [DictionaryAttr({}) for _ in results] + [
        DictionaryAttr({"lazy.aliases": IntegerAttr(inputs.index(i), i64)}) for i in written
    ]
    results += written.values()
    block.add_op(ReturnOp(*results))
    function = FuncOp(
        "main",
        ([arg.type for arg in block.args], [result.type for result in results]),
        Region(block),
        arg_attrs=ArrayAttr(argument_attrs),
        res_attrs=ArrayAttr(result_attrs),
    )
    return ImportedGraph(ModuleOp([function]), inputs, len(outputs))


class _Importer:
    """Walks the nodes in order and keeps each one's value and where it lives."""

    def __init__(self, nodes: Sequence[Node], emit: Emitter, arguments: dict[int, SSAValue]):
        self.nodes = nodes
        self.emit = emit
        self.values: list[SSAValue | Literal] = []
        self.views: list[View] = []
        self.arguments = arguments
        self.stores: dict[int, list[int]] = {}
        """Per root, its stores in order."""
        self.contents: dict[View, SSAValue] = {}

    def run(self) -> None:
        for position, node in enumerate(self.nodes):
            sources = node.sources
            if any(not 0 <= source < position for source in sources):
                raise PlaitError(
                    f"node {position} ({node.op}): sources must come before it, found {sources}"
                )
            self.views.append(self.view(position, node))
            try:
                self.values.append(self.value(position, node))
            except ValueError as error:
                raise PlaitError(f"node {position} ({node.op}): {error}") from None

    def view(self, position: int, node: Node) -> View:
        if node.op in _VIEWS:
            source = self.views[node.sources[0]]
            return View(source.root, (*source.chain, position), source.stores)
        if node.op == "after":
            target = self.views[node.sources[0]]
            ran = dict.fromkeys(target.stores)
            for effect in node.sources[1:]:
                ran.update(dict.fromkeys(self.stores_of(effect, target.root)))
            return View(target.root, target.chain, tuple(ran))
        if node.op == "store":
            target = self.views[node.sources[0]]
            if not self.is_invalid(node.sources[1]):
                self.stores.setdefault(target.root, []).append(position)
        return View(position)

    def stores_of(self, effect: int, root: int) -> tuple[int, ...]:
        """The stores into ``root`` that an effect stands for."""
        if self.nodes[effect].op == "store":
            fits = effect in self.stores.get(root, ())
            return (*self.views[self.nodes[effect].sources[0]].stores, effect) if fits else ()
        view = self.views[effect]
        return view.stores if view.root == root else ()

    def is_invalid(self, position: int) -> bool:
        """Whether a node is the literal whose stores mean nothing, or a view of it."""
        while self.nodes[position].op in ("cast", "expand", "reshape"):
            position = self.nodes[position].sources[0]
        return self.nodes[position].fields.get("value") == "invalid"

    def value(self, position: int, node: Node) -> SSAValue | Literal:
        sources = [self.values[source] for source in node.sources]
        match node.op:
            case "input":
                return self.arguments[position]
            case "store":
                return sources[0]
            case "after":
                return self.value_after(position, node)
            case _:
                return self.emit.operation(node, sources)

    def value_after(self, position: int, node: Node) -> SSAValue | Literal:
        view = self.views[position]
        before = self.views[node.sources[0]]
        new = [store for store in view.stores if store not in before.stores]
        if not new:
            return self.values[node.sources[0]]
        last = self.nodes[new[-1]]
        if self.views[last.sources[0]].chain == view.chain:
            return self.stored(last)
        content = self.content(View(view.root, (), view.stores))
        for link in view.chain:
            content = self.emit.view(self.nodes[link], content)
        return content

    def stored(self, store: Node) -> SSAValue:
        """The value of a store as its target holds it: of the target's type and shape."""
        target = self.nodes[store.sources[0]]
        value = self.emit.value_of(self.values[store.sources[1]], target.dtype)
        return self.emit.broadcast(value, target.shape)

    def content(self, view: View) -> SSAValue:
        """What a root holds once the stores of ``view`` have run, in order."""
        done = View(view.root)
        content = self.emit.value_of(self.values[view.root], self.nodes[view.root].dtype)
        for store in view.stores:
            done = View(view.root, (), (*done.stores, store))
            if done not in self.contents:
                self.contents[done] = self.written(content, self.nodes[store])
            content = self.contents[done]
        return content

    def written(self, content: SSAValue, store: Node) -> SSAValue:
        """The content of a root after one store through a chain of views."""
        chain = self.views[store.sources[0]].chain
        seen = [content]
        for link in chain:
            seen.append(self.emit.view(self.nodes[link], seen[-1]))
        value = self.stored(store)
        for link, whole in zip(reversed(chain), reversed(seen[:-1]), strict=True):
            value = self.emit.put_back(self.nodes[link], whole, value)
        return value

    def final_contents(self) -> dict[int, SSAValue]:
        """For each buffer that is stored to, what it holds in the end, in argument order."""
        return {
            root: self.content(View(root, (), tuple(self.stores[root])))
            for root in self.arguments
            if root in self.stores
        }
