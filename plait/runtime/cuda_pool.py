"""A pool of device memory for one stream, in whose order blocks are used again.

PyCUDA's own pool ends the process when memory is given back while no context is current, which a
user's result may be at any time.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

_SMALLEST = 512


def rounded(nbytes: int) -> int:
    """The size of the block for so many bytes: at most a quarter more, beyond the smallest."""
    if nbytes <= _SMALLEST:
        return _SMALLEST
    step = 1 << (nbytes.bit_length() - 3)
    return -(-nbytes // step) * step


class Block:
    """Device memory that goes back to its pool when nothing holds it; ``int`` is its address."""

    __slots__ = ("memory", "pool", "size")

    def __init__(self, pool: Pool, size: int, memory: Any):
        self.pool, self.size, self.memory = pool, size, memory

    def __int__(self) -> int:
        return int(self.memory)

    def __del__(self) -> None:
        self.pool.held[self.size].append(self.memory)


class Pool:
    """Blocks by size; a stream's work is done in order, so a block can be used again at once."""

    def __init__(self, cuda: Any, stream: Any):
        self.cuda = cuda
        self.stream = stream  # kept, so that no later stream has its handle
        self.held: defaultdict[int, list[Any]] = defaultdict(list)

    def allocate(self, nbytes: int) -> Block:
        """A block of at least so many bytes, aligned to 256; raises PyCUDA's ``MemoryError``."""
        size = rounded(nbytes)
        try:
            memory = self.held[size].pop()
        except IndexError:
            memory = self.cuda.mem_alloc(size)
        return Block(self, size, memory)

    def free_held(self) -> None:
        """Gives the blocks that nothing holds back to the driver."""
        self.held.clear()
