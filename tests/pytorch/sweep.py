"""Runs operators of PyTorch's own test database through plait and compares with eager PyTorch.

    python tests/pytorch/sweep.py [--samples N] [--grad] [NAME...]

prints, for each operator, whether all of it ran in plait (``whole``), some of it in PyTorch
(``part``), or what went wrong.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from functorch.compile import aot_function, make_boxed_func, nop
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from plait.frontend.torch.decompose import decompositions
from plait.frontend.torch.execute import CompiledGraph

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5, "equal_nan": True, "check_stride": True}


@dataclass
class Outcome:
    """What became of the samples of one operator."""

    samples: int = 0
    whole: int = 0
    fallbacks: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])

    @property
    def verdict(self) -> str:
        if self.wrong:
            return "wrong"
        if self.errors:
            return "error"
        if not self.samples:
            return "none"
        return "whole" if self.whole == self.samples else "part"


def named(name: str) -> Any:
    """An operator of the database by its full name."""
    return next(op for op in op_db if full_name(op) == name)


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


class Capture:
    """Compiles what AOTAutograd hands over and keeps it."""

    def __init__(self) -> None:
        self.graphs: list[tuple[CompiledGraph, tuple[Any, ...]]] = []

    def __call__(self, module: Any, example: Any) -> Any:
        module.graph.eliminate_dead_code()
        compiled = CompiledGraph(module)

        def run(*args: Any) -> Any:
            self.graphs.append((compiled, args))
            return compiled(*args)

        return make_boxed_func(run)


def as_function(op: Any, sample: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A sample as a function of its tensors alone."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: Any) -> list[Any]:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        given, args, kwargs = pytree.tree_unflatten(filled, spec)
        made = pytree.tree_leaves(op(given, *args, **kwargs))
        return [leaf for leaf in made if isinstance(leaf, torch.Tensor)]

    return function, [leaves[place].detach() for place in places]


def results(function: Callable[..., Any], tensors: list[Any], grad: bool) -> list[Any]:
    """The outputs of a function and, if asked for, its gradients."""
    torch.manual_seed(0)
    inputs = [t.clone().requires_grad_(grad and t.is_floating_point()) for t in tensors]
    made = function(*[t.clone() for t in inputs])
    wanted = [t for t in inputs if t.requires_grad]
    outputs = [t for t in made if t.requires_grad]
    if wanted and outputs:
        torch.manual_seed(1)
        weights = [torch.randn_like(t) for t in outputs]
        made += torch.autograd.grad(outputs, wanted, weights, allow_unused=True)
    return [None if t is None else t.detach() for t in made]


def tolerance(values: list[Any]) -> dict[str, Any]:
    """For 16-bit floats a few of their last digits: eager operators round in other places."""
    if any(v is not None and v.dtype in (torch.float16, torch.bfloat16) for v in values):
        return {**TOLERANCE, "rtol": 3e-2, "atol": 3e-2}
    return TOLERANCE


def close(made: list[Any], expected: list[Any]) -> bool:
    try:
        torch.testing.assert_close(made, expected, **tolerance(expected))
    except AssertionError:
        return False
    return True


def run_sample(
    function: Callable[..., Any], tensors: list[Any], grad: bool, outcome: Outcome
) -> None:
    """Adds the outcome of one sample."""
    capture = Capture()
    compiled = aot_function(
        function, fw_compiler=capture, bw_compiler=capture, decompositions=decompositions()
    )
    eager = aot_function(function, fw_compiler=nop, bw_compiler=nop)
    try:
        expected = results(function, tensors, grad)
        results(eager, tensors, grad)
        again = results(eager, tensors, grad)
        if not close(again, expected):
            expected = again  # seeded while it was traced
    except Exception:
        return
    outcome.samples += 1
    try:
        results(compiled, tensors, grad)
        made = results(compiled, tensors, grad)
        programs = [graph.program(args) for graph, args in capture.graphs]
        for graph, _ in capture.graphs:
            outcome.fallbacks.update(graph.reasons)
    except Exception as error:
        outcome.errors.append(f"{type(error).__name__}: {error}"[:300])
        return
    whole = True
    for program in programs:
        reasons = {} if program is None else program.imported.reasons
        called = {str(node.target): why for node, why in reasons.items()}
        outcome.fallbacks.update(f"{name} ({why})" for name, why in called.items())
        whole &= program is not None and not called
    outcome.whole += whole
    try:
        torch.testing.assert_close(made, expected, **tolerance(expected))
    except AssertionError as error:
        shapes = [tuple(tensor.shape) for tensor in tensors]
        outcome.wrong.append(f"{shapes}: {str(error)[:300]}")


def sweep(op: Any, count: int, dtype: Any = torch.float32, grad: bool = False) -> Outcome:
    """The first samples of an operator."""
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for sample in islice(op.sample_inputs("cpu", dtype), count):
            run_sample(*as_function(op, sample), grad and op.supports_autograd, outcome)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    dtype = getattr(torch, args.dtype)
    verdicts: Counter[str] = Counter()
    for op in op_db:
        name = full_name(op)
        if (args.names and name not in args.names) or not op.supports_dtype(dtype, "cpu"):
            continue
        try:
            outcome = sweep(op, args.samples, dtype, args.grad)
        except Exception as error:
            outcome = Outcome(errors=[f"samples: {error}"[:200]])
        verdicts[outcome.verdict] += 1
        print(f"{outcome.verdict:6} {name} {outcome.whole}/{outcome.samples}", flush=True)
        for text in outcome.wrong[:2] + outcome.errors[:2]:
            print("       ", " ".join(text.split()))
        for what, count in outcome.fallbacks.most_common(3):
            print("        -", count, what[:150])
    print(dict(verdicts), file=sys.stderr)


if __name__ == "__main__":
    main()
