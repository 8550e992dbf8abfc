"""Threefry-2x32 as scalar code (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
as 1, 2, 3", 2011)."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from plait.lowering.fuse_to_nest_scalars import Scalars

PARITY = 0x1BD11BDA
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
ROUNDS = 20


def threefry(
    scalars: Scalars, key0: SSAValue, key1: SSAValue, low: SSAValue, high: SSAValue
) -> SSAValue:
    """Word 0 of the block of a 64-bit counter (two i32 words) under a key (two i32 words)."""

    def add(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return scalars.emit(arith.AddiOp(lhs, rhs))

    def xor(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return scalars.emit(arith.XOrIOp(lhs, rhs))

    def rotate(value: SSAValue, by: int) -> SSAValue:
        left = scalars.emit(arith.ShLIOp(value, scalars.const(by, i32)))
        right = scalars.emit(arith.ShRUIOp(value, scalars.const(32 - by, i32)))
        return scalars.emit(arith.OrIOp(left, right))

    keys = (key0, key1, xor(xor(key0, key1), scalars.const(PARITY, i32)))
    x, y = add(low, key0), add(high, key1)
    for block in range(ROUNDS // 4):
        for by in ROTATIONS[block % 2]:
            x = add(x, y)
            y = xor(rotate(y, by), x)
        number = block + 1
        x = add(x, keys[number % 3])
        y = add(add(y, keys[(number + 1) % 3]), scalars.const(number, i32))
    return x
