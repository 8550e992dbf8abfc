"""The set cost of a plan: what kernels read and write, shared operands once per kernel."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from plait.dialects import lazy
from plait.dtypes import itemsize
from plait.passes.fusion.footprint import Footprint, Where


def bytes_of(value: SSAValue) -> int:
    """Bytes of a tensor in memory."""
    assert isinstance(value.type, TensorType)
    return prod(lazy.shape_of(value)) * itemsize(lazy.element_type_of(value))


def bytes_read(footprint: Footprint) -> int:
    """Bytes of the distinct elements a kernel reads.

    Loads of one buffer at different places are added up, to no more than the buffer: exact when
    they do not overlap or one of them covers it.
    """
    per_buffer = dict[SSAValue, dict[Where, int]]()
    for load in footprint.loads:
        per_buffer.setdefault(load.buffer, {})[load.where] = load.bytes
    return sum(min(bytes_of(buffer), sum(places.values())) for buffer, places in per_buffer.items())


def cost(footprint: Footprint) -> int:
    """Bytes a kernel moves."""
    return bytes_read(footprint) + sum(map(bytes_of, footprint.outputs))


def bytes_moved(footprint: Footprint) -> int:
    """Bytes a kernel fetches and stores; a buffer read at two places is fetched for each."""
    return sum(x.bytes for x in {x.key: x for x in footprint.loads}.values()) + sum(
        map(bytes_of, footprint.outputs)
    )


def gain(a: Footprint, b: Footprint) -> int:
    """Bytes that making two independent kernels one saves."""
    return bytes_read(a) + bytes_read(b) - bytes_read(a.merged(b))
