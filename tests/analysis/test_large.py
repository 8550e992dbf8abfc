"""Accesses of large spaces against integer set computations by isl."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from movement_chains import operations
from xdsl.dialects.builtin import FloatAttr, TensorType, f32
from xdsl.ir import Block, Operation, SSAValue

from plait.dialects import lazy
from plait.passes.analysis.access import Access, AccessKind, elements_read
from plait.passes.analysis.affine import Expr, Quotient
from plait.passes.analysis.reads import sweeps_of_operations


def text(expr: Expr) -> str:
    """An expression as isl reads it."""
    parts = [str(expr.constant)]
    for atom, factor in expr.terms:
        if isinstance(atom, int):
            parts.append(f"{factor}*d{atom}")
        elif isinstance(atom, Quotient):
            parts.append(f"{factor}*floor(({text(atom.expr)})/{atom.divisor})")
        else:
            parts.append(f"{factor}*(({text(atom.expr)}) mod {atom.divisor})")
    return " + ".join(parts)


def isl_map(access: Access) -> isl.Map:
    dims = ", ".join(f"d{k}" for k in range(len(access.space)))
    results = ", ".join(map(text, access.point))
    bounds = [f"0 <= d{k} < {extent}" for k, extent in enumerate(access.space)]
    held = [f"{text(c.expr)} {'=' if c.equality else '>='} 0" for c in access.conditions]
    return isl.Map(f"{{ [{dims}] -> [{results}] : {' and '.join([*bounds, *held]) or 'true'} }}")


def count(elements: isl.Set) -> int:
    return int(elements.count_val().to_python())


@dataclass
class View:
    """A chain without the numpy meaning, for shapes that are too large for it."""

    block: Block
    value: SSAValue
    ops: list[Operation]

    @property
    def shape(self) -> tuple[int, ...]:
        return lazy.shape_of(self.value)

    def append(self, op: Operation) -> None:
        self.block.add_op(op)
        self.ops.append(op)
        self.value = op.results[0]

    def access(self) -> Access | None:
        (sweep,) = sweeps_of_operations(self.ops, [self.value])
        return sweep.loads[0] if sweep.loads else None


def view_of(*shape: int) -> View:
    block = Block(arg_types=[TensorType(f32, shape)])
    return View(block, block.args[0], [])


@st.composite
def views(draw: st.DrawFn) -> View:
    view = view_of(*draw(st.lists(st.integers(8, 96), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(1, 4))):
        op = draw(operations(view, 3_000_000))
        if op is not None:
            view.append(op)
    return view


@settings(max_examples=120, deadline=None, derandomize=True)
@given(views())
def test_image_and_injectivity_match_isl(view: View) -> None:
    access = view.access()
    if access is None:
        return
    map = isl_map(access)
    assert access.exact
    assert access.distinct_elements == count(map.range())
    assert access.image.points == count(map.domain())
    assert (access.kind is not AccessKind.BROADCAST) == map.is_injective()


def zero() -> FloatAttr:
    return FloatAttr(0.0, f32)


def convolution(n: int, c: int, size: int, k: int, stride: int, dilation: int, pad: int) -> View:
    view = view_of(n, c, size, size)
    amounts = [0, 0, pad, pad]
    view.append(lazy.PadOp(view.value, amounts, amounts, [0] * 4, zero()))
    pair = [2, 3]
    view.append(lazy.WindowOp(view.value, pair, [k, k], [stride] * 2, [dilation] * 2))
    return view


@pytest.mark.parametrize(
    ("size", "k", "stride", "dilation", "pad"),
    [(224, 7, 2, 1, 3), (56, 3, 1, 1, 1), (56, 1, 2, 1, 0), (112, 3, 2, 2, 1), (55, 2, 5, 3, 4)],
)
def test_convolution_windows(size: int, k: int, stride: int, dilation: int, pad: int) -> None:
    access = convolution(8, 64, size, k, stride, dilation, pad).access()
    assert access is not None and access.exact
    assert access.distinct_elements == count(isl_map(access).range())


def test_windows_of_a_batch_that_cannot_be_enumerated() -> None:
    access = convolution(256, 512, 512, 7, 2, 1, 3).access()
    assert access is not None and prod(access.space) > 4 * 10**11
    assert access.distinct_elements == 256 * 512 * 512 * 512
    assert access.kind is AccessKind.BROADCAST


@settings(max_examples=60, deadline=None, derandomize=True)  # isl may count for minutes
@given(st.data())
def test_union_of_windows_of_a_buffer_matches_isl(data: st.DataObject) -> None:
    block = Block(arg_types=[TensorType(f32, [96, 64])])
    loads: list[Access] = []
    for _ in range(data.draw(st.integers(2, 4))):
        view = View(block, block.args[0], [])
        for _ in range(data.draw(st.integers(1, 3))):
            op = data.draw(operations(view, 200_000))
            if op is not None:
                view.append(op)
        if view.ops and (access := view.access()) is not None:
            loads.append(access)
    if loads:
        union = isl_map(loads[0]).range()
        for load in loads[1:]:
            union = union.union(isl_map(load).range())
        assert elements_read(loads) == (count(union), True)
