"""How planning time grows with the program: random programs with cross edges, pass by pass.

    python benchmarks/plan_scaling.py [OPERATIONS ...]

Prints seconds per pass for programs of about 1,000 to 32,000 tensor operations; the time per
operation should stay the same.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from plait.dialects import lazy
from plait.dialects.fuse import GroupOp
from plait.passes.fuse_elementwise_reduce import FuseElementwiseReducePass
from plait.passes.fuse_form_groups import FuseFormGroupsPass
from plait.passes.fuse_group_crossing_dag import FuseGroupCrossingDagPass
from plait.passes.fuse_merge_reduces import FuseMergeReducesPass
from plait.passes.fuse_sweeps import FuseSweepsPass
from plait.passes.lazy_simplify import LazySimplifyPass

SIZE = 64
PASSES: tuple[ModulePass, ...] = (
    LazySimplifyPass(),
    FuseFormGroupsPass(),
    FuseMergeReducesPass(),
    FuseGroupCrossingDagPass(),
    FuseSweepsPass(),
    FuseElementwiseReducePass(),
)


def _step(rng: random.Random, values: list[SSAValue]) -> Iterator[Operation]:
    """One step of the program: elementwise, a reduce with its broadcast, or a product."""
    recent = values[-20:]
    a = rng.choice(recent if rng.random() < 0.9 else values)
    b = rng.choice(recent)
    kind = rng.random()
    if kind < 0.5:
        yield lazy.AddOp(a, b)
    elif kind < 0.6:
        yield lazy.ExpOp(a)
    elif kind < 0.8:
        yield (reduced := lazy.ReduceOp(lazy.ReduceKind.MAX, a, [1]))
        yield (column := lazy.ReshapeOp(reduced.result, (SIZE, 1)))
        yield (wide := lazy.ExpandOp(column.result, (SIZE, SIZE)))
        yield lazy.SubOp(a, wide.result)
    else:
        cube = (SIZE, SIZE, SIZE)
        yield (left := lazy.ReshapeOp(a, (SIZE, SIZE, 1)))
        yield (left_wide := lazy.ExpandOp(left.result, cube))
        yield (right := lazy.ReshapeOp(b, (1, SIZE, SIZE)))
        yield (right_wide := lazy.ExpandOp(right.result, cube))
        yield (product := lazy.MulOp(left_wide.result, right_wide.result))
        yield lazy.ReduceOp(lazy.ReduceKind.SUM, product.result, [1])


def random_program(operations: int, seed: int = 0) -> ModuleOp:
    """A program of about this many operations, with edges across it."""
    rng = random.Random(seed)
    type = TensorType(f32, [SIZE, SIZE])
    block = Block(arg_types=[type] * 8)
    values: list[SSAValue] = list(block.args)
    count = 0
    while count < operations:
        for op in _step(rng, values):
            block.add_op(op)
            count += 1
        assert block.last_op is not None
        values.append(block.last_op.results[0])
    block.add_op(ReturnOp(*values[-20:]))
    function = FuncOp("main", ([type] * 8, [type] * 20), Region(block))
    return ModuleOp([function])


def main(sizes: list[int]) -> None:
    names = [step.name for step in PASSES]
    print(f"{'operations':>10} {'kernels':>8} " + " ".join(f"{name:>24}" for name in names))
    for size in sizes:
        module = random_program(size)
        seconds = list[float]()
        for step in PASSES:
            start = time.perf_counter()
            step.apply(Context(), module)
            seconds.append(time.perf_counter() - start)
        kernels = sum(isinstance(op, GroupOp) for op in module.walk())
        times = " ".join(f"{second:>24.2f}" for second in seconds)
        print(f"{size:>10} {kernels:>8} {times}", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1_000, 2_000, 4_000, 8_000, 16_000, 32_000])
