"""What passes decided about the kernels of a plan, as it stands after the last of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from plait.errors import PlaitError
from plait.passes.fusion.plan import Plan, functions_with_groups
from plait.passes.remarks import Fact, Remark, RemarkKind


class Record:
    """The kernels of a plan and the decisions about them.

    A kernel that was merged is known under the names of its parts too. Of several refusals to merge
    two kernels the last one counts, and none if they are one kernel in the end.
    """

    def __init__(self, module: ModuleOp, found: Sequence[Remark]):
        self.plans = [Plan.read(function) for function in functions_with_groups(module)]
        self.kernels = [name for plan in self.plans for name in plan.graph.names]
        self._parent: dict[str, str] = {}
        for remark in found:
            names = _names(remark)
            for name in names:
                self._parent.setdefault(_first(name), _first(name))
            if remark.kind is RemarkKind.PASSED:
                for name in names[1:]:
                    self._parent[self._root(name)] = self._root(names[0])
        self._final = {self._root(name): name for name in self.kernels}
        self.decisions = self._settled(found)
        """The remarks that count, in order."""

    def _root(self, name: str) -> str:
        name = _first(name)
        while self._parent.get(name, name) != name:
            name = self._parent[name]
        return name

    def kernel(self, name: str) -> str:
        """The kernel of the plan that a name is, or went into; raises :class:`PlaitError`."""
        if name in self.kernels:
            return name
        known = _first(name) in self._parent and self._root(name) in self._final
        if known and _first(name) == name:
            return self._final[self._root(name)]
        shown = ", ".join(self.kernels[:12]) + (", ..." if len(self.kernels) > 12 else "")
        raise PlaitError(f"no kernel '{name}' in the plan: found {shown or 'none'}")

    def about(self, *kernels: str) -> list[Remark]:
        """The decisions about all of these kernels of the plan."""
        wanted = {self._root(name) for name in kernels}
        return [r for r in self.decisions if wanted <= {self._root(name) for name in _names(r)}]

    def _settled(self, found: Sequence[Remark]) -> list[Remark]:
        last: dict[object, Remark] = {}
        for remark in found:
            names = _names(remark)
            key: object = str(remark)
            if remark.kind is RemarkKind.MISSED and len(names) > 1:
                roots = frozenset(self._root(name) for name in names)
                if len(roots) == 1:
                    continue
                key, remark = roots, self._renamed(remark)
                if key in last and _is_void(remark):
                    continue
            last.pop(key, None)
            last[key] = remark
        return list(last.values())

    def _renamed(self, remark: Remark) -> Remark:
        """A refusal with the names that kernels have in the plan."""

        def now(name: str) -> str:
            return self._final.get(self._root(name), name)

        facts: dict[str, Fact] = dict(remark.facts)
        for key in ("groups", "path"):
            value = facts.get(key)
            if isinstance(value, tuple):
                facts[key] = tuple(dict.fromkeys(map(now, value)))
        message = re.sub(r"'(\w+(?:\+\d+)?)'", lambda m: f"'{now(m.group(1))}'", remark.message)
        return replace(remark, message=message, facts=facts)


def _names(remark: Remark) -> tuple[str, ...]:
    """The kernels that a remark is about."""
    groups = remark.facts.get("groups")
    if isinstance(groups, tuple):
        return groups
    kernel = remark.facts.get("kernel")
    return (kernel,) if isinstance(kernel, str) else ()


def _is_void(remark: Remark) -> bool:
    """Whether a cycle that a merge would have closed is none now that its kernels are merged."""
    path = remark.facts.get("path")
    return remark.id == "fuse.closes-cycle" and isinstance(path, tuple) and len(path) < 3


def _first(name: str) -> str:
    """The kernel that a merged one is named after."""
    return name.split("+")[0]
