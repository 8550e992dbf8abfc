"""Which schedule a kernel gets, and that its pieces describe what runs."""

from __future__ import annotations

from math import prod

import pytest
from gpu_kernels import parse
from xdsl.context import Context

from plait.dialects import nest
from plait.errors import PlaitError
from plait.passes.nest_schedule import NestSchedulePass, threads_of


def kernel(axes: str, body: str = "") -> nest.KernelOp:
    module, _ = parse(f"nest.kernel @k(%x: memref<4xf32>) axes [{axes}] {{ {body} }}")
    found = module.body.block.first_op
    assert isinstance(found, nest.KernelOp)
    return found


def scheduled(op: nest.KernelOp, target: str = "cuda:sm_80") -> nest.ScheduleAttr:
    module = op.parent_op()
    assert module is not None
    NestSchedulePass(target=target).apply(Context(), module)  # pyright: ignore[reportArgumentType]
    module.verify()
    assert op.schedule is not None
    return op.schedule


def sweep(extent: int) -> str:
    return f"nest.reduce [] over [%j = {extent}] {{ }}"


def in_order(extent: int) -> str:
    return f"nest.sequential over [%n = {extent}] {{ }}"


@pytest.mark.parametrize(
    ("axes", "body", "reduction"),
    [
        ("%i = 1000", "", "serial"),
        ("%i = 1000", sweep(63), "serial"),
        ("%i = 1000", sweep(64), "block"),
        ("%i = 100000", sweep(64), "serial"),
        ("", sweep(1000), "block"),
        ("%i = 8", in_order(1000), "serial"),
        ("%i = 8", in_order(1000) + sweep(512), "serial"),
        ("%i = 8", in_order(10) + sweep(512), "block"),
        ("%i = 0", sweep(0), "serial"),
    ],
)
def test_who_reduces(axes: str, body: str, reduction: str) -> None:
    assert scheduled(kernel(axes, body)).reduction.data == reduction


def rows(points: int, extent: int, map: str) -> nest.KernelOp:
    """A kernel whose lanes along `%j` or along `%i` read what is together."""
    shape = f"{points}x{extent}" if map.startswith("d0") else f"{extent}x{points}"
    module, _ = parse(f"""
    nest.kernel @k(%x: memref<{shape}xf32>, %y: memref<{points}xf32>) axes [%i = {points}] {{
      %s = nest.reduce [sum] over [%j = {extent}] {{
        %v = nest.load %x[(d0, d1) -> ({map})](%i, %j) : memref<{shape}xf32>
        nest.yield %v : f32
      }} : f32
      nest.store %s, %y[(d0) -> (d0)](%i) : memref<{points}xf32>
    }}""")
    found = module.body.block.first_op
    assert isinstance(found, nest.KernelOp)
    return found


@pytest.mark.parametrize(
    ("points", "extent", "map", "reduction"),
    [
        (4096, 512, "d0, d1", "warp"),
        (100000, 32, "d0, d1", "warp"),
        (4095, 512, "d0, d1", "block"),
        (4096, 1025, "d0, d1", "block"),
        (100000, 2048, "d0, d1", "block"),
        (4096, 31, "d0, d1", "serial"),
        (4096, 512, "d1, d0", "block"),
        (100000, 512, "d1, d0", "serial"),
    ],
)
def test_rows_that_are_together_get_warps(
    points: int, extent: int, map: str, reduction: str
) -> None:
    assert scheduled(rows(points, extent, map)).reduction.data == reduction


def test_pieces_of_a_warp() -> None:
    pieces = scheduled(rows(4100, 100, "d0, d1")).pieces.data
    assert [str(piece).partition("piece")[2] for piece in pieces] == [
        "<i = 513 : grid>",
        "<i = 8 : thread>",
        "<j = 32 : thread>",
        "<j = 4 : serial>",
    ]


@pytest.mark.parametrize(
    "axes", ["", "%i = 1", "%i = 1000", "%i = 7, %j = 300", "%i = 3, %j = 5, %k = 2", "%i = 0"]
)
def test_pieces_cover_every_point(axes: str) -> None:
    op = kernel(axes)
    pieces = scheduled(op).pieces.data
    for axis in op.axes:
        sizes = [piece.size.data for piece in pieces if piece.axis == axis.axis]
        assert prod(sizes) >= axis.extent.data
    threads = prod(piece.size.data for piece in pieces if piece.level.data == "thread")
    assert threads <= 256


def pointwise(rows: int, columns: int, element: str, map: str = "d0, d1") -> nest.KernelOp:
    type = f"memref<{rows}x{columns}x{element}>"
    module, _ = parse(f"""
    nest.kernel @k(%x: {type}, %y: {type}) axes [%i = {rows}, %j = {columns}] {{
      %v = nest.load %x[(d0, d1) -> ({map})](%i, %j) : {type}
      nest.store %v, %y[(d0, d1) -> ({map})](%i, %j) : {type}
    }}""")
    found = module.body.block.first_op
    assert isinstance(found, nest.KernelOp)
    return found


@pytest.mark.parametrize(
    ("op", "width"),
    [
        (pointwise(512, 512, "f32"), 4),
        (pointwise(512, 512, "f16"), 8),
        (pointwise(512, 512, "f64"), 2),
        (pointwise(512, 512, "i1"), 1),
        (pointwise(512, 514, "f32"), 2),
        (pointwise(512, 513, "f32"), 1),
        (pointwise(128, 512, "f16"), 2),
        (pointwise(100, 512, "f32"), 1),
        (pointwise(512, 512, "f32", "d1, d0"), 1),
        (pointwise(512, 512, "f32", "d0, (d1 + 1) mod 512"), 4),
    ],
)
def test_points_of_a_thread(op: nest.KernelOp, width: int) -> None:
    pieces = scheduled(op).pieces.data
    found = [piece.size.data for piece in pieces if piece.level.data == "vector"]
    assert found == ([width] if width > 1 else [])
    for axis in op.axes:
        sizes = [piece.size.data for piece in pieces if piece.axis == axis.axis]
        assert prod(sizes) >= axis.extent.data


@pytest.mark.parametrize(("extent", "threads"), [(64, 64), (100, 128), (256, 256), (5000, 256)])
def test_threads_of_a_shared_reduction(extent: int, threads: int) -> None:
    op = kernel("%i = 8", sweep(extent))
    scheduled(op)
    assert threads_of(op) == threads


def test_a_schedule_that_is_there_stays() -> None:
    op = kernel("%i = 8", sweep(512))
    first = scheduled(op)
    assert scheduled(op, "cpu") is first


def test_unknown_target() -> None:
    with pytest.raises(PlaitError, match="nowhere"):
        scheduled(kernel("%i = 8"), "nowhere")


@pytest.mark.parametrize(
    ("axes", "extent", "blocks"),
    [("", 8192, 2), ("", 2**20, 256), ("%i = 8", 2**20, 64), ("", 8191, 1), ("%i = 600", 8192, 1)],
)
def test_large_reductions_of_few_points_are_cut(axes: str, extent: int, blocks: int) -> None:
    pieces = scheduled(kernel(axes, sweep(extent))).pieces.data
    found = [piece for piece in pieces if piece.axis.data == "j"]
    cut = [piece.size.data for piece in found if piece.level.data == "grid"]
    assert cut == ([blocks] if blocks > 1 else [])
    assert prod(piece.size.data for piece in found) >= extent


def test_a_cut_of_an_outer_axis() -> None:
    body = "nest.reduce [] over [%j = 2048, %k = 100] { }"
    pieces = scheduled(kernel("", body)).pieces.data
    assert [str(piece).partition("piece")[2] for piece in pieces] == [
        "<j = 32 : grid>",
        "<j = 64 : serial>",
        "<k = 100 : thread>",
    ]


def test_a_name_of_two_extents_has_no_pieces() -> None:
    body = sweep(64) + sweep(512)
    assert not scheduled(kernel("", body)).pieces.data
