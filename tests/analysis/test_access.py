"""Accesses against brute-force enumeration."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from movement_chains import Chain, apply, chains, start
from xdsl.dialects.builtin import TensorType, f32, i64
from xdsl.ir import Block

from plait.dialects import lazy
from plait.passes.analysis.access import AccessKind, elements_read
from plait.passes.analysis.reads import Sweep, sweeps_of_operations


def only_sweep(chain: Chain) -> Sweep:
    (sweep,) = sweeps_of_operations(chain.ops, [chain.value])
    return sweep


@settings(max_examples=600, deadline=None)
@given(chains())
def test_chains_read_what_enumeration_says(chain: Chain) -> None:
    sweep = only_sweep(chain)
    for number, argument in enumerate(chain.block.args):
        read = chain.elements_of(number)
        distinct = len(np.unique(read))
        loads = [load for load in sweep.loads if load.value is argument]
        assert elements_read(loads) == (distinct, True) if loads else distinct == 0
        if len(loads) == 1:
            assert loads[0].image.points == len(read)
            assert loads[0].kind == kind_of(read, chain.numbers.size, prod(loads[0].shape))


def kind_of(read: np.ndarray, space: int, buffer: int) -> AccessKind:
    if len(np.unique(read)) != len(read):
        return AccessKind.BROADCAST
    onto = len(read) == space == buffer
    return AccessKind.BIJECTIVE if onto else AccessKind.INJECTIVE


@settings(max_examples=200, deadline=None)
@given(chains(steps=3))
def test_maps_evaluate_to_the_elements_read(chain: Chain) -> None:
    found = np.full(chain.shape, -1)
    first = 0
    loads = only_sweep(chain).loads
    for argument in chain.block.args:
        for load in loads:
            if load.value is argument:
                for point in np.ndindex(chain.shape):
                    if holds(load.where, point):
                        at = load.map.eval(point, ())
                        found[point] = first + np.ravel_multi_index(at, load.shape)
        first += prod(lazy.shape_of(argument))
    assert (found == chain.numbers).all()


def holds(where, point) -> bool:
    if where is None:
        return True
    values = [(c.lhs.eval(point, ()), c.kind.value) for c in where.constraints]
    return all(value == 0 if kind == "==" else value >= 0 for value, kind in values)


@settings(max_examples=300, deadline=None)
@given(chains(steps=3, most=120), chains(steps=3, most=120))
def test_union_of_two_views_of_one_buffer(first: Chain, second: Chain) -> None:
    """Both chains are rebuilt over the argument of the first, where the shapes agree."""
    block = Block(arg_types=[TensorType(f32, lazy.shape_of(first.block.args[0]))])
    if any(isinstance(op, lazy.ConcatOp) for op in (*first.ops, *second.ops)):
        return
    shape = lazy.shape_of(block.args[0])
    size = prod(shape)
    loads, read = [], []
    for source in (first, second):
        if prod(lazy.shape_of(source.block.args[0])) != size:
            return
        chain = Chain(block, block.args[0], np.arange(size).reshape(shape))
        apply(chain, lazy.ReshapeOp(chain.value, lazy.shape_of(source.block.args[0])))
        for op in source.ops:
            apply(chain, op.clone({op.operands[0]: chain.value}))
        loads.extend(only_sweep(chain).loads)
        read.append(chain.elements_of(0))
    if loads:
        assert elements_read(loads) == (len(np.unique(np.concatenate(read))), True)


@pytest.mark.parametrize(
    ("stride", "dilation", "pad", "gap"), [(1, 1, 1, 0), (2, 1, 3, 0), (1, 2, 2, 1), (3, 1, 0, 2)]
)
def test_windows_over_padding(stride: int, dilation: int, pad: int, gap: int) -> None:
    chain = start((2, 11))
    zero = lazy.PadOp(chain.value, [0, pad], [0, pad], [0, gap], padding())
    apply(chain, zero)
    apply(chain, lazy.WindowOp(chain.value, [1], [3], [stride], [dilation]))
    (load,) = only_sweep(chain).loads
    read = chain.elements_of(0)
    assert load.distinct_elements == len(np.unique(read))
    assert load.image.points == len(read)


def padding():
    from xdsl.dialects.builtin import FloatAttr

    return FloatAttr(0.0, f32)


def test_gather_reads_no_more_than_its_indices_name() -> None:
    block = Block(arg_types=[TensorType(f32, [50000, 768]), TensorType(i64, [16])])
    table, words = block.args
    column = lazy.ReshapeOp(words, (16, 1))
    wide = lazy.ExpandOp(column.result, (16, 768))
    rows = lazy.GatherOp(table, wide.result, 0)
    block.add_ops([column, wide, rows])
    (sweep,) = sweeps_of_operations(list(block.ops), [rows.result])
    of_table = next(load for load in sweep.loads if load.value is table)
    of_words = next(load for load in sweep.loads if load.value is words)
    assert (of_table.kind, of_table.distinct_elements) == (AccessKind.IRREGULAR, 16 * 768)
    assert (of_words.kind, of_words.distinct_elements) == (AccessKind.BROADCAST, 16)


def test_sweeps_are_levelled_by_what_they_need() -> None:
    block = Block(arg_types=[TensorType(f32, [64, 128])])
    x = block.args[0]
    top = lazy.ReduceOp(lazy.ReduceKind.MAX, x, [1])
    column = lazy.ReshapeOp(top.result, (64, 1))
    wide = lazy.ExpandOp(column.result, (64, 128))
    centred = lazy.SubOp(x, wide.result)
    powers = lazy.ExpOp(centred.result)
    bottom = lazy.ReduceOp(lazy.ReduceKind.SUM, powers.result, [1])
    ops = [top, column, wide, centred, powers, bottom]
    block.add_ops(ops)
    sweeps = sweeps_of_operations(ops, [powers.result, bottom.result])
    levels = sorted((sweep.level, sweep.reduced, len(sweep.loads)) for sweep in sweeps)
    assert levels == [(0, (1,), 1), (1, (), 1), (1, (1,), 1), (2, (), 0)]
