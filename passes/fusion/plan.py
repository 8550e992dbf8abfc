"""A function of level 2 as a group graph, and what a set of merges makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from plait.dialects.fuse import GroupOp, YieldOp
from plait.passes.analysis.blocks import only_block
from plait.passes.fusion.graph import GroupGraph
from plait.passes.simplify.builder import Key, key_of


@dataclass
class Plan:
    """The groups of a function, numbered in their order, and the graph over them."""

    function: FuncOp
    groups: list[GroupOp]
    graph: GroupGraph

    @staticmethod
    def read(function: FuncOp) -> Plan:
        """Reads the groups of a function of one block; drops those whose results nobody reads."""
        drop_dead_groups(function)
        groups = [op for op in only_block(function).ops if isinstance(op, GroupOp)]
        number: dict[Operation, int] = {group: k for k, group in enumerate(groups)}
        edges = [
            (number[value.owner], target)
            for target, group in enumerate(groups)
            for value in group.inputs
            if isinstance(value.owner, GroupOp)
        ]
        return Plan(function, groups, GroupGraph.build(label_all(groups), edges))

    def readers(self) -> dict[SSAValue, list[int]]:
        """For every buffer, the groups that read it, in order."""
        found = dict[SSAValue, list[int]]()
        for number, group in enumerate(self.groups):
            for value in dict.fromkeys(group.inputs):
                found.setdefault(value, []).append(number)
        return found

    def clusters(self) -> list[list[int]]:
        """The groups that are one after the merges in the graph, clusters in topological order."""
        members = dict[int, list[int]]()
        for number in range(len(self.groups)):
            members.setdefault(self.graph.find(number), []).append(number)
        return [members[node] for node in self.graph.order()]

    def rewrite(self) -> bool:
        """Makes the merges of the graph in the function; returns whether there were any."""
        clusters = self.clusters()
        if len(clusters) == len(self.groups):
            return False
        block = only_block(self.function)
        first = self.groups[0]
        anchor = first.prev_op
        late = _between(block, first)
        for group in self.groups:
            group.detach()
        for op in late:
            op.detach()
        ordered = [merge_groups([self.groups[number] for number in each]) for each in clusters]
        constants = [op for op in late if not op.operands]
        views = [op for op in late if op.operands]
        everything: list[Operation] = [*constants, *ordered, *views]
        if anchor is not None:
            block.insert_ops_after(everything, anchor)
        else:
            terminator = block.first_op
            assert terminator is not None
            block.insert_ops_before(everything, terminator)
        return True


def drop_dead_groups(function: FuncOp) -> None:
    """Erases the groups that no result of the function needs."""
    for op in reversed(list(only_block(function).ops)):
        if isinstance(op, GroupOp) and all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()


def functions_with_groups(module: ModuleOp) -> list[FuncOp]:
    """The functions that hold a plan."""
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and not op.is_declaration
        and any(isinstance(inner, GroupOp) for block in op.body.blocks for inner in block.ops)
    ]


def label_all(groups: Sequence[GroupOp]) -> list[str]:
    """A name for each group: its label, or its position."""
    return [
        group.label.data if group.label is not None else f"group_{number}"
        for number, group in enumerate(groups)
    ]


def _between(block: Block, first: GroupOp) -> list[Operation]:
    """What stands between and after the groups, without the terminator."""
    found = list[Operation]()
    op = first.next_op
    while op is not None and op is not block.last_op:
        if not isinstance(op, GroupOp):
            found.append(op)
        op = op.next_op
    return found


def merge_groups(groups: Sequence[GroupOp]) -> GroupOp:
    """One group that does the work of several, given in topological order.

    A value that passes between them stays inside, unless something else reads it. Operations that
    are equal are shared, and so are equal results.
    """
    return groups[0] if len(groups) == 1 else _Merger().merge(groups)


class _Merger:
    def __init__(self) -> None:
        self.block = Block()
        self.inputs = list[SSAValue]()
        self.local = dict[SSAValue, SSAValue]()
        self.known = dict[Key, Operation]()

    def merge(self, groups: Sequence[GroupOp]) -> GroupOp:
        for group in groups:
            self._take(group)
        members = set[Operation](groups)
        kept = [
            result
            for group in groups
            for result in group.outputs
            if any(use.operation not in members for use in result.uses)
        ]
        stored = list(dict.fromkeys(self.local[result] for result in kept))
        self.block.add_op(YieldOp(*stored))
        first = groups[0].label
        label = None if first is None else f"{first.data.split('+')[0]}+{len(groups) - 1}"
        merged = GroupOp(self.inputs, [value.type for value in stored], self.block, label)
        output = dict(zip(stored, merged.outputs, strict=True))
        for result in kept:
            output[self.local[result]].name_hint = result.name_hint
            result.replace_all_uses_with(output[self.local[result]])
        for group in reversed(groups):
            group.erase(safe_erase=False)
        return merged

    def _take(self, group: GroupOp) -> None:
        """Moves what a group computes into the block."""
        for argument, value in zip(group.block.args, group.inputs, strict=True):
            argument.replace_all_uses_with(self._input(value, argument.name_hint))
        for op in group.body_ops():
            known = self.known.setdefault(key_of(op), op)
            op.detach()
            if known is op:
                self.block.add_op(op)
            else:
                op.results[0].replace_all_uses_with(known.results[0])
                op.erase()
        self.local.update(zip(group.outputs, group.yield_op.arguments, strict=True))

    def _input(self, value: SSAValue, hint: str | None) -> SSAValue:
        if value not in self.local:
            self.inputs.append(value)
            argument = self.block.insert_arg(value.type, len(self.block.args))
            argument.name_hint = hint
            self.local[value] = argument
        return self.local[value]
