"""The ``nest`` dialect: one kernel as a loop nest over named axes, on buffers, in scalars.

A ``nest.kernel`` runs its body once at every point of its parallel axes, in any order.
``nest.reduce`` opens further axes inside, runs its body over them, and closes them with combined
values; ``nest.sequential`` runs over axes in order, carrying values. Elements move between
buffers and scalars with ``nest.load`` and ``nest.store``, through affine maps of the indices; the
scalars are computed by ``arith`` and ``math``.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from plait.dialects.nest_access import IndexOp, LoadOp, StoreOp, TestOp
from plait.dialects.nest_attrs import (
    AxisAttr,
    CombineKind,
    Level,
    PieceAttr,
    Reduction,
    ScheduleAttr,
)
from plait.dialects.nest_kernel import KernelOp, LaunchOp, LocalOp
from plait.dialects.nest_loops import (
    LoopOp,
    ReduceOp,
    SequentialOp,
    YieldOp,
)

__all__ = [
    "AxisAttr",
    "CombineKind",
    "IndexOp",
    "KernelOp",
    "LaunchOp",
    "Level",
    "LoadOp",
    "LocalOp",
    "LoopOp",
    "Nest",
    "PieceAttr",
    "ReduceOp",
    "Reduction",
    "ScheduleAttr",
    "SequentialOp",
    "StoreOp",
    "TestOp",
    "YieldOp",
]

Nest = Dialect(
    "nest",
    [
        KernelOp,
        ReduceOp,
        SequentialOp,
        LoadOp,
        StoreOp,
        TestOp,
        IndexOp,
        LaunchOp,
        LocalOp,
        YieldOp,
    ],
    [AxisAttr, PieceAttr, ScheduleAttr],
)
