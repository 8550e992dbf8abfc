"""Random chains of movement operations, and the same on numpy arrays of element numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from xdsl.dialects.builtin import FloatAttr, TensorType, f32
from xdsl.ir import Block, Operation, SSAValue

from plait.dialects import lazy

Numbers = NDArray[np.int64]
PADDING = -1


@dataclass
class Chain:
    """A value made of the arguments of a block; each of its elements is an element of one."""

    block: Block
    value: SSAValue
    numbers: Numbers
    """For every element, its number in the concatenation of all arguments; -1 for padding."""
    ops: list[Operation] = field(default_factory=list[Operation])

    @property
    def shape(self) -> tuple[int, ...]:
        return lazy.shape_of(self.value)

    def append(self, op: Operation, numbers: Numbers) -> None:
        self.block.add_op(op)
        self.ops.append(op)
        op.verify_()
        self.value, self.numbers = op.results[0], numbers
        assert numbers.shape == self.shape, (op, numbers.shape)

    def elements_of(self, argument: int) -> Numbers:
        """The elements of an argument at the points where it is read."""
        sizes = [prod(lazy.shape_of(a)) for a in self.block.args]
        first = sum(sizes[:argument])
        inside = (self.numbers >= first) & (self.numbers < first + sizes[argument])
        return self.numbers[inside] - first


def whole(block: Block, argument: int) -> Numbers:
    sizes = [prod(lazy.shape_of(a)) for a in block.args]
    shape = lazy.shape_of(block.args[argument])
    return np.arange(sizes[argument]).reshape(shape) + sum(sizes[:argument])


def start(*shapes: tuple[int, ...]) -> Chain:
    block = Block(arg_types=[TensorType(f32, shape) for shape in shapes])
    return Chain(block, block.args[0], whole(block, 0))


def _ints(attribute: object) -> tuple[int, ...]:
    return tuple(cast(Any, attribute).get_values())


def apply(chain: Chain, op: Operation) -> None:
    """Adds an operation on the chain's value, with its meaning by the docstring."""
    x = chain.numbers
    match op:
        case lazy.ReshapeOp() | lazy.ExpandOp():
            shape = lazy.shape_of(op.result)
            moved = x.reshape(shape) if isinstance(op, lazy.ReshapeOp) else None
            numbers = np.broadcast_to(x, shape).copy() if moved is None else moved
        case lazy.PermuteOp():
            numbers = x.transpose(_ints(op.permutation))
        case lazy.FlipOp():
            numbers = np.flip(x, _ints(op.axes))
        case lazy.SliceOp():
            cut = zip(_ints(op.starts), _ints(op.stops), _ints(op.steps), strict=True)
            numbers = x[tuple(slice(a, b, c) for a, b, c in cut)]
        case lazy.PadOp():
            numbers = np.full(lazy.shape_of(op.result), PADDING)
            places = zip(_ints(op.low), _ints(op.interior), x.shape, strict=True)
            inside = [slice(a, a + max((n - 1) * (g + 1) + 1, 0), g + 1) for a, g, n in places]
            numbers[tuple(inside)] = x
        case lazy.WindowOp():
            numbers = _windows(op, x)
        case _:
            raise AssertionError(op.name)
    chain.append(op, numbers)


def _windows(op: lazy.WindowOp, x: Numbers) -> Numbers:
    axes, strides, dilations = _ints(op.axes), _ints(op.strides), _ints(op.dilations)
    result = np.empty(lazy.shape_of(op.result), dtype=np.int64)
    for point in np.ndindex(result.shape):
        at = list(point[: x.ndim])
        for axis, k, stride, dilation in zip(
            axes, point[x.ndim :], strides, dilations, strict=True
        ):
            at[axis] = at[axis] * stride + k * dilation
        result[point] = x[tuple(at)]
    return result


def _factorings(size: int) -> list[tuple[int, ...]]:
    divisors = [a for a in range(1, size + 1) if size % a == 0]
    pairs = [(a, size // a) for a in divisors]
    triples = [(a, b, size // a // b) for a in divisors for b in divisors[1:] if size // a % b == 0]
    return [(size,), *pairs, *triples]


@st.composite
def chains(draw: st.DrawFn, steps: int = 5, most: int = 400) -> Chain:
    """A chain over one or two arguments of up to ``most`` elements."""
    extents = st.lists(st.integers(1, 6), min_size=1, max_size=3)
    shapes = [tuple(draw(extents))]
    if draw(st.booleans()):
        other = list(shapes[0])
        other[draw(st.integers(0, len(other) - 1))] = draw(st.integers(1, 4))
        shapes.append(tuple(other))
    chain = start(*shapes)
    if len(shapes) == 2:
        (axis,) = [k for k in range(len(shapes[0])) if shapes[0][k] != shapes[1][k]] or [0]
        first, second = (whole(chain.block, k) for k in (0, 1))
        op = lazy.ConcatOp(list(chain.block.args), axis)
        chain.append(op, np.concatenate([first, second], axis))
    for _ in range(draw(st.integers(1, steps))):
        op = draw(operations(chain, most))
        if op is not None:
            apply(chain, op)
    return chain


@st.composite
def operations(draw: st.DrawFn, chain: Chain, most: int) -> Operation | None:
    """An operation on the chain's value with a result of no more than about ``most`` elements, or
    None."""
    shape, value = chain.shape, chain.value
    rank, size = len(shape), prod(shape)
    some = st.integers(0, 2)
    match draw(st.integers(0, 6)):
        case 0 if size:
            return lazy.ReshapeOp(value, draw(st.sampled_from(_factorings(size))))
        case 1:
            return lazy.PermuteOp(value, draw(st.permutations(range(rank))))
        case 2 if 1 in shape:
            wide = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in shape)
            return lazy.ExpandOp(value, wide) if prod(wide) <= most else None
        case 3:
            low, high, gap = ([draw(some) for _ in shape] for _ in range(3))
            wide = [
                n + (n - 1) * g + a + b for n, a, b, g in zip(shape, low, high, gap, strict=True)
            ]
            return (
                lazy.PadOp(value, low, high, gap, FloatAttr(0.0, f32))
                if (prod(wide) <= most and 0 not in shape)
                else None
            )
        case 4:
            starts = [draw(st.integers(0, max(n - 1, 0))) for n in shape]
            stops = [
                draw(st.integers(min(a + 1, n), n)) for a, n in zip(starts, shape, strict=True)
            ]
            return lazy.SliceOp(value, starts, stops, [draw(st.integers(1, 3)) for _ in shape])
        case 5:
            return lazy.FlipOp(value, [k for k in range(rank) if draw(st.booleans())])
        case 6 if rank < 5:
            axis = draw(st.integers(0, rank - 1))
            dilation = draw(st.integers(1, 2))
            longest = (shape[axis] - 1) // dilation + 1
            window = draw(st.integers(1, max(min(longest, 4), 1)))
            if window > longest or size * window > most:
                return None
            return lazy.WindowOp(value, [axis], [window], [draw(st.integers(1, 3))], [dilation])
        case _:
            return None
