"""The plan of fewest bytes there is, by exact search.

A plan is a sequence of kernels, each a set of groups whose inputs are there when it runs. What has
run so far is a set of groups closed under what they read, so plans are paths from the empty set to
all groups, and the cheapest path is found best first (A*): a path is continued where what it moved
and a bound on what the rest must move are least together. The bound is that every buffer the rest
reads is read once more, and every result the rest makes is written.

Kernels are the sets that the rules of the other passes allow if only bytes count. They are found
as sets that grow group by group: of up to ``ALL`` groups every set that hangs together is tried, of
more those that are at most ``ASTRAY`` groups away from a kernel.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

from xdsl.ir import SSAValue

from plait.dialects.fuse import GroupOp
from plait.passes.analysis.counts import is_kernel, kernel_of
from plait.passes.analysis.targets import Target
from plait.passes.fusion.chain_rules import Chain, ChainRules
from plait.passes.fusion.cost import bytes_of
from plait.passes.fusion.engine import Merge
from plait.passes.fusion.footprints import Memo, footprint_of
from plait.passes.fusion.horizontal import runs_over_more
from plait.passes.fusion.kernels import fits, row_stays_on_chip
from plait.passes.fusion.merged import Merged
from plait.passes.fusion.objective import Objective
from plait.passes.fusion.plan import Plan
from plait.passes.fusion.siblings import Shape, threads_suit

ALL = 12
ASTRAY = 1
LIMIT_S = 10.0
"""Seconds to search, if nothing else is asked for."""

Cost = tuple[int, int]
"""Bytes, then kernels."""


@dataclass(frozen=True)
class Best:
    """The best plan that was found, and what no plan can go below."""

    kernels: Sequence[tuple[int, ...]]
    """The groups of each kernel, in the order in which they run."""
    kept: Sequence[tuple[SSAValue, ...]]
    """What each kernel keeps on chip."""
    bytes: int
    bound: int
    """Bytes that every plan moves at least; equal to ``bytes`` if the search was finished."""

    @property
    def proven(self) -> bool:
        """Whether no plan moves fewer bytes."""
        return self.bytes <= self.bound


@dataclass
class Search:
    """The search over the groups of one function."""

    plan: Plan
    target: Target
    limit_s: float = LIMIT_S
    rules: ChainRules = field(init=False)
    memo: Memo = field(default_factory=Memo)
    reads: list[dict[SSAValue, int]] = field(default_factory=list[dict[SSAValue, int]])
    before: list[int] = field(default_factory=list[int])
    """For each group the set of groups it reads from, as bits."""
    near: list[int] = field(default_factory=list[int])
    """For each group those it reads from, is read by, or shares a buffer with."""
    known: dict[int, tuple[SSAValue, ...] | None] = field(
        default_factory=dict[int, tuple[SSAValue, ...] | None]
    )
    """For each set what it keeps as a kernel; None for one that cannot be."""
    number: dict[GroupOp, int] = field(init=False)
    finished: bool = True
    """Whether there was time to try everything."""

    def __post_init__(self) -> None:
        self.rules = ChainRules(self.target, Objective.BYTES)
        self.number = {group: k for k, group in enumerate(self.plan.groups)}
        sharing = dict[SSAValue, int]()
        for k, group in enumerate(self.plan.groups):
            self.reads.append(_reads(group, self.target))
            owners = (value.owner for value in group.inputs)
            self.before.append(_bits(self.number[o] for o in owners if isinstance(o, GroupOp)))
            for value in (*group.inputs, *group.outputs):
                sharing[value] = sharing.get(value, 0) | 1 << k
        self.near = [0] * len(self.plan.groups)
        for k, group in enumerate(self.plan.groups):
            for value in (*group.inputs, *group.outputs):
                self.near[k] |= sharing[value] & ~(1 << k)

    def run(self) -> Best:
        """Searches until the plan is proven best or the time is up."""
        end = time.monotonic() + self.limit_s
        everything = (1 << len(self.plan.groups)) - 1
        order = count()
        queue: list[tuple[Cost, int, int]] = [((self._rest(0), 0), next(order), 0)]
        spent: dict[int, Cost] = {0: (0, 0)}
        came = dict[int, int]()
        bound = queue[0][0][0]
        while queue:
            (promised, _), _, done = heapq.heappop(queue)
            bound = max(bound, promised)
            if done == everything:
                return self._found(came, done, bound)
            if time.monotonic() > end:
                self.finished = False
                break
            moved, kernels = spent[done]
            if promised > moved + self._rest(done):
                continue
            for part in self._kernels(done, end):
                after = done | part
                cost = (moved + self.bytes(part), kernels + self._launches(part))
                if after not in spent or cost < spent[after]:
                    spent[after] = cost
                    came[after] = done
                    total = (cost[0] + self._rest(after), cost[1])
                    heapq.heappush(queue, (total, next(order), after))
        return self._greedy(bound, everything)

    def _greedy(self, bound: int, everything: int) -> Best:
        """A plan when there is no time for the best: the kernel that leaves least, again and
        again."""
        done, came = 0, dict[int, int]()
        end = time.monotonic() + self.limit_s / 4
        while done != everything:
            slot = min(end, time.monotonic() + self.limit_s / 20)
            parts = self._kernels(done, slot)
            if time.monotonic() > end:
                part = next(parts)
            else:
                part = min(parts, key=lambda part: self.bytes(part) + self._rest(done | part))
            came[done | part] = done
            done |= part
        return self._found(came, everything, bound)

    def _found(self, came: dict[int, int], last: int, bound: int) -> Best:
        parts = list[int]()
        while last:
            parts.append(last & ~came[last])
            last = came[last]
        parts.reverse()
        moved = sum(map(self.bytes, parts))
        kept = [self.known[part] or () for part in parts]
        return Best([tuple(_members(part)) for part in parts], kept, moved, bound)

    # Costs

    def bytes(self, part: int) -> int:
        """What a set of groups moves as one kernel."""
        read, written = dict[SSAValue, int](), 0
        groups = [self.plan.groups[k] for k in _members(part)]
        inside = set(groups)
        for k in _members(part):
            for value, size in self.reads[k].items():
                if value.owner not in inside:
                    read[value] = max(read.get(value, 0), size)
        for group in groups:
            for value in group.outputs:
                if any(use.operation not in inside for use in value.uses):
                    written += bytes_of(value)
        return sum(read.values()) + written

    def _rest(self, done: int) -> int:
        """What the groups that are left must move at least."""
        read, written = dict[SSAValue, int](), 0
        for k, group in enumerate(self.plan.groups):
            if done >> k & 1:
                continue
            for value, size in self.reads[k].items():
                owner = value.owner
                if not isinstance(owner, GroupOp) or done >> self.number[owner] & 1:
                    read[value] = max(read.get(value, 0), size)
            for value in group.outputs:
                if any(not isinstance(use.operation, GroupOp) for use in value.uses):
                    written += bytes_of(value)
        return sum(read.values()) + written

    def _launches(self, part: int) -> int:
        return int(any(is_kernel(self.plan.groups[k]) for k in _members(part)))

    # Kernels

    def _kernels(self, done: int, end: float) -> Iterator[int]:
        """The sets of groups that can run next as one kernel."""
        groups = range(len(self.plan.groups))
        ready = [k for k in groups if not done >> k & 1 and not self.before[k] & ~done]
        limit = ASTRAY if len(groups) > ALL else len(groups)
        seen = {1 << k for k in ready}
        pending = [(part, 0) for part in sorted(seen)]
        while pending:
            part, astray = pending.pop()
            if self.keeps(part) is not None:
                yield part
                astray = 0
            elif astray < limit:
                astray += 1
            else:
                continue
            if time.monotonic() > end:
                self.finished = False
                return
            around = 0
            for k in _members(part):
                around |= self.near[k]
            for k in _members(around & ~part & ~done):
                grown = part | 1 << k
                if grown not in seen and not self.before[k] & ~(done | part):
                    seen.add(grown)
                    pending.append((grown, astray))

    def keeps(self, part: int) -> tuple[SSAValue, ...] | None:
        """What a set of groups keeps on chip as a kernel; None if it cannot be one."""
        if part not in self.known:
            self.known[part] = self._judge([self.plan.groups[k] for k in _members(part)])
        return self.known[part]

    def _judge(self, groups: Sequence[GroupOp]) -> tuple[SSAValue, ...] | None:
        """What groups keep on chip as one kernel; None if they cannot be one."""
        if len(groups) == 1:
            return ()
        whole = footprint_of(groups, self.memo)
        merge = Merge(whole, whole, whole, 0)
        if whole.space is not None and whole.aligned and fits(merge) and row_stays_on_chip(merge):
            return ()
        found = self.rules.whole(groups)
        if isinstance(found, Chain):
            return found.kept
        return () if self._side_by_side(groups) else None

    def _side_by_side(self, groups: Sequence[GroupOp]) -> bool:
        """Whether groups that do not need one another can share a kernel: they are pointwise, or
        what several of them read stays in cache from one to the next."""
        merged = Merged.of(list(groups))
        if merged.flows() or not merged.fits():
            return False
        if not any(map(runs_over_more, groups)):
            return True
        by_points = sorted(groups, key=lambda group: Shape.of([group]).points)
        if not all(threads_suit([a], [b]) for a, b in pairwise(by_points)):
            return False
        readers = [value for group in groups for value in dict.fromkeys(group.inputs)]
        shared = {value for value in readers if readers.count(value) > 1}
        return sum(map(bytes_of, shared)) <= self.target.cache_bytes // 4


def _reads(group: GroupOp, target: Target) -> dict[SSAValue, int]:
    """Bytes of the distinct elements that a group reads of each buffer."""
    found = dict[SSAValue, int]()
    for read in kernel_of(group, "", target).traffic.reads:
        found[read.buffer] = found.get(read.buffer, 0) + read.bytes // read.sweeps
    return found


def _bits(numbers: Iterator[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _members(part: int) -> Iterator[int]:
    while part:
        low = part & -part
        yield low.bit_length() - 1
        part ^= low
