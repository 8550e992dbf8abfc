"""A part of a graph that is one plan: its inputs and results are values of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from plait.dtypes import Array
from plait.frontend.schedule import Plan
from plait.frontend.tensor import Tensor
from plait.frontend.torch.arrays import to_array, to_tensor
from plait.frontend.torch.concrete import Values
from plait.frontend.torch.types import element
from plait.frontend.trace import build_module
from plait.runtime import driver


def like(fake: Any) -> Tensor:
    """A tensor without data, of the shape and type of a fake one."""
    return Tensor(None, (), tuple(fake.shape), element(fake.dtype))


class Segment:
    """Operators that are computed together, while they are collected."""

    def __init__(self) -> None:
        self.inputs: dict[Any, Tensor] = {}
        """Values from elsewhere, by node."""
        self.values: dict[Any, Any] = {}
        """What is computed here, by node: tensors and tuples of them."""
        self.conditions: list[Tensor] = []
        """What must hold for results to be right."""

    def input(self, node: Any, fake: Any) -> Tensor:
        """A value from elsewhere."""
        if node not in self.inputs:
            made = like(fake)
            made.name = node.name if node.name.isidentifier() else None
            self.inputs[node] = made
        return self.inputs[node]


class Compiled:
    """A segment as a plan, with the nodes whose values it takes and gives."""

    def __init__(self, segment: Segment, outputs: Sequence[Any], fakes: Values, backend: str):
        self.outputs = list(outputs)
        self.forms = [form_of(fakes[node]) for node in outputs]
        """Type and strides of each output, or a list of them."""
        results: list[Tensor] = []
        for node in outputs:
            value: Any = segment.values[node]
            results.extend(cast(Sequence[Tensor], value) if isinstance(value, tuple) else [value])
        program, found = build_module([*results, *segment.conditions])
        nodes = {id(tensor): node for node, tensor in segment.inputs.items()}
        self.inputs = [nodes[id(tensor)] for tensor in found]
        self.count = len(results)
        self.plan = Plan(program, found)
        self.code = driver.compiled(self.plan.module, backend)

    def run(self, env: Mapping[Any, Any]) -> dict[Any, Any]:
        """The values of its output nodes; raises IndexError for positions out of range."""
        given = [to_array(env[node]) for node in self.inputs]
        arrays = self.code.run(*given)
        if not all(bool(condition) for condition in arrays[self.count :]):
            raise IndexError("index out of range in a compiled graph")
        results = iter(unshared(arrays[: self.count], given))
        made: dict[Any, Any] = {}
        for node, form in zip(self.outputs, self.forms, strict=True):
            if isinstance(form, list):
                made[node] = tuple(to_tensor(next(results), *each) for each in form)
            else:
                made[node] = to_tensor(next(results), *form)
        return made


Form = tuple[Any, tuple[int, ...]]
"""The type and the strides that PyTorch expects of a value."""


def form_of(fake: Any) -> Form | list[Form]:
    if isinstance(fake, tuple | list):
        return [(each.dtype, each.stride()) for each in fake]  # pyright: ignore
    return fake.dtype, fake.stride()


def unshared(arrays: Sequence[Array], given: Sequence[Array]) -> list[Array]:
    """Arrays of which none shows the memory of another, or of ``given``."""
    taken = {storage_of(array) for array in given}
    made: list[Array] = []
    for array in arrays:
        storage = storage_of(array)
        made.append(array.copy() if storage in taken else array)
        taken.add(storage)
    return made


def storage_of(array: Any) -> int:
    """Identifies the memory that an array shows, whatever part of it."""
    base = array
    while getattr(base, "base", None) is not None:
        base = base.base
    return id(base)
