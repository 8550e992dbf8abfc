"""Runs an imported graph: plans and PyTorch's own operators, phase by phase."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from plait.errors import PlaitError
from plait.frontend.torch import phases
from plait.frontend.torch.api import fx, torch
from plait.frontend.torch.concrete import key_of, propagate
from plait.frontend.torch.importer import Imported, Importer, has_tensor
from plait.frontend.torch.segment import Compiled


def demanded(nodes: Sequence[Any], imported: Imported) -> set[Any]:
    """Nodes whose values must exist as tensors of PyTorch."""
    found: set[Any] = set()
    for segment in imported.segments.values():
        found.update(segment.inputs)
    called = {node for calls in imported.calls.values() for node in calls}
    for node in reversed(nodes):
        if node.op == "output" or node in called or (node in found and node in imported.views):
            found.update(node.all_input_nodes)
    return found


class Program:
    """A graph made ready for arguments of given shapes."""

    def __init__(self, module: Any, args: Sequence[Any], backend: str):
        self.module, self.backend = module, backend
        self.nodes = list(module.graph.nodes)
        fakes = propagate(module, args)
        self.imported = Importer(fakes).run(self.nodes)
        self.placeholders = [node for node in self.nodes if node.op == "placeholder"]
        self.output = next(node for node in self.nodes if node.op == "output")
        self.known = {
            node: fakes[node]
            for node in self.nodes
            if node.op == "call_function" and not has_tensor(fakes[node])
        }
        """Values that are the same in every run: numbers, and what has none."""
        self.steps = self._free(list(self._steps(fakes)))

    def _steps(self, fakes: Any) -> Iterable[Compiled | Any]:
        """Plans and nodes in the order they run in."""
        imported = self.imported
        wanted = demanded(self.nodes, imported)
        place = {node: k for k, node in enumerate(self.nodes)}
        called = {number: list(calls) for number, calls in imported.calls.items()}
        where = {node: number for number, calls in called.items() for node in calls}
        for view in imported.views:
            root = view
            while root in imported.views:
                root = imported.views[root]
            if view in wanted:
                called.setdefault(where.get(root, -1), []).append(view)
        for number in sorted({*called, *imported.segments}):
            yield from sorted(called.get(number, ()), key=place.__getitem__)
            segment = imported.segments.get(number)
            outputs = [n for n in segment.values if n in wanted] if segment else []
            outputs = [n for n in outputs if n not in imported.views]
            if segment and outputs:
                ordered = sorted(outputs, key=place.__getitem__)
                yield Compiled(segment, ordered, fakes, self.backend)

    def _free(self, steps: Sequence[Any]) -> list[tuple[Any, list[Any]]]:
        """Each step with the values that nothing needs after it."""
        seen = set(self.output.all_input_nodes)
        freed: list[tuple[Any, list[Any]]] = []
        for step in reversed(steps):
            uses = step.inputs if isinstance(step, Compiled) else step.all_input_nodes
            made = step.outputs if isinstance(step, Compiled) else [step]
            freed.append((step, [n for n in dict.fromkeys([*uses, *made]) if n not in seen]))
            seen.update(uses)
        return freed[::-1]

    @property
    def plans(self) -> list[Compiled]:
        """The plans, in order."""
        return [step for step, _ in self.steps if isinstance(step, Compiled)]

    def run(self, args: Sequence[Any]) -> Any:
        """The outputs, in the structure of the graph's."""
        env: dict[Any, Any] = {**self.known, **dict(zip(self.placeholders, args, strict=True))}
        for node in self.nodes:
            if node.op == "get_attr":
                env[node] = _attribute(self.module, node.target)
        for step, done in self.steps:
            if isinstance(step, Compiled):
                env.update(step.run(env))
            else:
                taken, options = (fx.node.map_arg(x, env.get) for x in (step.args, step.kwargs))
                env[step] = step.target(*taken, **options)
            for node in done:
                env.pop(node, None)
        return fx.node.map_arg(self.output.args[0], env.get)


def _attribute(module: Any, target: str) -> Any:
    for name in target.split("."):
        module = getattr(module, name)
    return module


_fakes: Any = import_module("torch._subclasses.fake_tensor")
_UNKNOWN_SHAPES = (
    _fakes.UnsupportedFakeTensorException,
    _fakes.DynamicOutputShapeException,
    _fakes.DataDependentOutputException,
)


class CompiledGraph:
    """A graph that is compiled once for each combination of shapes it is called with."""

    def __init__(self, module: Any, backend: str = "cpu"):
        self.module, self.backend = module, backend
        self.programs: dict[Any, Program | None] = {}
        self.reasons: list[str] = []
        """Why PyTorch runs the graph for some arguments."""

    def program(self, args: Sequence[Any]) -> Program | None:
        """The program for these arguments; None for a graph that PyTorch must run as it is."""
        key = key_of(args)
        if key not in self.programs:
            self.programs[key] = self._made(args)
        return self.programs[key]

    def _made(self, args: Sequence[Any]) -> Program | None:
        writing = [node for node in self.module.graph.nodes if phases.writes(node)]
        if writing:
            self.reasons.append(f"{writing[0].target} writes to memory")
            return None
        try:
            return Program(self.module, args, self.backend)
        except _UNKNOWN_SHAPES:
            self.reasons.append("shapes that depend on data")
        except Exception as error:
            self.reasons.append(f"it could not be compiled: {type(error).__name__}: {error}")
            warnings.warn(f"plait: PyTorch runs a graph: {self.reasons[-1]}", stacklevel=2)
        return None

    def __call__(self, *args: Any) -> Any:
        program = self.program(args)
        with torch.no_grad():
            if program is None:
                return fx.Interpreter(self.module).run(*args)
            try:
                return program.run(args)
            except PlaitError as error:
                # An operator of PyTorch gave another type than it had announced.
                warnings.warn(f"plait: PyTorch runs a graph: {error}", stacklevel=2)
                self.programs[key_of(args)] = None
                return fx.Interpreter(self.module).run(*args)
