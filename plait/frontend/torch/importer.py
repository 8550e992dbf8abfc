"""From a graph of ``aten`` operators to plans, with PyTorch in between where it must be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from plait.errors import PlaitError
from plait.frontend.tensor import Tensor
from plait.frontend.torch import phases
from plait.frontend.torch.api import UnsupportedError, fx, torch
from plait.frontend.torch.aten import rule
from plait.frontend.torch.checks import collected
from plait.frontend.torch.concrete import Values
from plait.frontend.torch.segment import Segment, like
from plait.frontend.torch.types import dtype_name


@dataclass
class Imported:
    """What becomes of each node of a graph."""

    fakes: Values
    segments: dict[int, Segment] = field(default_factory=dict[int, Segment])
    """The part of each even phase that plait computes."""
    calls: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    """The nodes that PyTorch runs in each odd phase, in order."""
    reasons: dict[Any, str] = field(default_factory=dict[Any, str])
    """Why PyTorch runs a node."""
    views: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """Views of what plait does not compute, and what they show: part of every plan that uses
    them."""


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def has_tensor(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(has_tensor(each) for each in cast(list[Any], value))
    return is_tensor(value)


def is_empty(value: Any) -> bool:
    """Whether a value is a tensor without elements: there is nothing to compute."""
    return is_tensor(value) and not value.numel()


def is_whole(fake: Any) -> bool:
    """Whether a tensor lies at the start of its memory in row-major order."""
    return bool(fake.is_contiguous() and not fake.storage_offset())


def reason_of(error: Exception) -> str:
    """Why a node is not computed here, in a line."""
    if isinstance(error, UnsupportedError | PlaitError):
        return str(error)
    return f"{type(error).__name__}: {error}".split("\n")[0]


class Importer:
    """Walks a graph once; every node finds its phase and, if it can, its meaning."""

    def __init__(self, fakes: Values):
        self.result = Imported(fakes)
        self.fakes = fakes
        self.phase: dict[Any, int] = {}
        """The phase after which a node's value exists."""
        self.order = phases.Order()

    def run(self, nodes: Iterable[Any]) -> Imported:
        for node in nodes:
            self.place(node)
        return self.result

    def place(self, node: Any) -> None:
        if node.op in ("placeholder", "get_attr", "output"):
            self.phase[node] = phases.FIRST
            return
        if not has_tensor(self.fakes[node]) and self.fakes[node] is not None:
            self.phase[node] = phases.FIRST
            return
        sources = [self.phase[source] for source in node.all_input_nodes]
        if phases.is_view(node) and self.is_outside(node.all_input_nodes[0]) and rule(node.target):
            self.result.views[node] = node.all_input_nodes[0]
            self.phase[node] = sources[0]
            return
        number = self.order.computed(sources)
        segment = self.result.segments.setdefault(number, Segment())
        try:
            segment.values[node] = self.value(node, segment)
            self.phase[node] = number
        except Exception as error:  # whatever it is, PyTorch knows what to do
            if not phases.is_item(node):
                self.result.reasons[node] = reason_of(error)
            self.call(node, sources)

    def is_outside(self, node: Any) -> bool:
        return self.phase[node] % 2 == 1

    def call(self, node: Any, sources: list[int]) -> None:
        """Has PyTorch run a node."""
        number = self.order.called(node, sources)
        self.phase[node] = number
        self.result.calls.setdefault(number, []).append(node)

    # Meanings

    def value(self, node: Any, segment: Segment) -> Any:
        """The node in plait's tensors; raises :class:`UnsupportedError` for what has none."""
        if phases.is_item(node):
            source, position = node.args
            if source not in segment.values:
                raise UnsupportedError("part of what PyTorch computes")
            return segment.values[source][position]
        if rule(node.target) is None:
            raise UnsupportedError("not in the table")
        fake: Any = self.fakes[node]
        self.check(fake)
        if is_empty(fake):
            return like(fake).full_like(0)
        args, kwargs = (self.operands(part, segment) for part in (node.args, node.kwargs))
        with collected() as conditions:
            made = self.meaning(node, args, kwargs)
        self.compare(made, fake)
        segment.conditions.extend(conditions)
        return made

    def operands(self, part: Any, segment: Segment) -> Any:
        def operand(source: Any) -> Any:
            return self.operand(source, segment)

        return fx.node.map_arg(part, operand)

    def operand(self, node: Any, segment: Segment) -> Any:
        """A source in this segment: computed here, a view of an input, an input, or a number."""
        if not has_tensor(self.fakes[node]):
            return self.fakes[node]
        chain: list[Any] = []
        while node in self.result.views and node not in segment.values:
            chain.append(node)
            node = self.result.views[node]
        if node not in segment.values:
            self.check(self.fakes[node])
            made: Any = segment.input(node, self.fakes[node])
        else:
            made = segment.values[node]
        for view in reversed(chain):
            made = segment.values[view] = self.view(view, made)
        return made

    def view(self, node: Any, source: Tensor) -> Any:
        def operand(each: Any) -> Any:
            return source if each is node.all_input_nodes[0] else self.fakes[each]

        args, kwargs = (fx.node.map_arg(part, operand) for part in (node.args, node.kwargs))
        made = self.meaning(node, args, kwargs)
        self.compare(made, self.fakes[node])
        return made

    def meaning(self, node: Any, args: Any, kwargs: Any) -> Any:
        """A rule applied to operands."""
        found = rule(node.target)
        assert found is not None
        if found.contiguous:
            sources = [self.fakes[source] for source in node.all_input_nodes]
            if not all(is_whole(source) for source in sources if is_tensor(source)):
                raise UnsupportedError("memory that is not contiguous")
        if found.wants_result:
            kwargs = {**kwargs, "result": like(self.fakes[node])}
        return found.meaning(*args, **kwargs)

    def check(self, fake: Any) -> None:
        """Only dense tensors of known types on the CPU."""
        if isinstance(fake, tuple | list):
            for each in cast(list[Any], fake):
                self.check(each)
        elif is_tensor(fake):
            self.check_tensor(fake)

    def check_tensor(self, fake: Any) -> None:
        if fake.device.type != "cpu" or fake.layout != torch.strided:
            raise UnsupportedError(f"a tensor on {fake.device}, {fake.layout}")
        dtype_name(fake.dtype)

    def compare(self, made: Any, fake: Any) -> None:
        """A meaning must agree with PyTorch on shape and type."""
        if isinstance(made, tuple):
            for each, expected in zip(cast(tuple[Any, ...], made), fake, strict=True):
                self.compare(each, expected)
        elif made is not None:
            found = (made.dtype, made.shape)
            expected = (dtype_name(fake.dtype), tuple(fake.shape))
            if found != expected:
                raise UnsupportedError(f"found {found}, expected {expected}")
