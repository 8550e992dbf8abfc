"""Which values the baseline plan keeps in memory. Everything else is computed where it is used.

The rule, in order:

1. what the function returns, up to a strided view of it; what ``materialize`` asks for; scans and
   scatters;
2. every reduce, after its epilogue: the elementwise operations through which alone its result
   leaves, up to the last point where all its paths meet again in the same number of elements;
3. an elementwise value that several kernels use, when storing moves fewer bytes than reading its
   inputs again in each of them: ``k`` kernels and inputs ``m`` times its size, ``k m > m + 1 + k``;
4. an elementwise value read through a view that repeats its elements (an expand, overlapping
   windows), when it costs more than two additions or reads more than two buffers of its size:
   recomputing would multiply that. The limits are wider where the elements are repeated only to
   meet a buffer of that many elements. Values an eighth or less of the buffers around them are
   exempt from 3 and 4, up to a limit on work: they stay in cache and a kernel would cost more;
5. a value whose kernel would otherwise read too many buffers or do too much work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from plait.dialects import lazy
from plait.passes.fusion.program import Program, Role
from plait.passes.fusion.views import Strided, apply

MAX_BUFFERS = 48
"""Buffers one kernel reads at most; a CUDA launch takes 4 KB of arguments."""
MAX_OUTPUTS = 24
"""Buffers one kernel writes at most."""
MAX_SHARED_WORK = 64
"""Work per element that is repeated in several kernels at most."""
MAX_REPEATED_WORK = 2
"""Work per element that is multiplied by a view that repeats elements for a contraction."""
MAX_REPEATED_BUFFERS = 2
MAX_SPREAD_WORK = 24
"""The same where the repeated elements are no more than those of the largest buffer around."""
MAX_SPREAD_BUFFERS = 4
SMALL = 8
"""A value is small if it is this many times smaller than the largest buffer around it."""


class Why(StrEnum):
    """Why a value is stored."""

    RESULT = "result"
    MATERIALIZE = "materialize"
    ORDERED = "ordered"
    REDUCE = "reduce"
    SHARED = "shared"
    REPEATED = "repeated"
    LIMIT = "limit"


@dataclass
class Stores:
    """The decision: the stored nodes with the reason, and views the function makes of them."""

    why: dict[int, Why] = field(default_factory=dict[int, Why])
    result_base: list[int] = field(default_factory=list[int])
    """For each result of the function, the buffer it is a view of."""


def store_required(program: Program, stores: Stores) -> None:
    """Rule 1: what has to be in memory whatever it costs."""
    _store_ordered(program, stores)
    _store_materialized(program, stores)
    _store_results(program, stores)


def _store_ordered(program: Program, stores: Stores) -> None:
    for node, role in enumerate(program.roles):
        if role is Role.SWEEP:
            stores.why[node] = Why.ORDERED


def _chain(program: Program, node: int) -> list[int]:
    """The node and what it is a view of, view by view; ends at the first that is no view or that
    has several operands."""
    chain = [node]
    while program.roles[node] is Role.VIEW and len(program.sources[node]) == 1:
        node = program.sources[node][0]
        chain.append(node)
    return chain


def _is_constant(program: Program, node: int) -> bool:
    return isinstance(program.ops[node], lazy.ConstantOp) or program.sizes[node] == 0


def _in_memory(program: Program, stores: Stores, node: int) -> bool:
    """Whether the node is a buffer, or will be for reasons of its own."""
    return (
        program.roles[node] in (Role.BUFFER, Role.REDUCE, Role.SWEEP)
        or node in stores.why
        or _is_constant(program, node)
    )


def _strided_from(program: Program, chain: list[int], start: int) -> Strided | None:
    """The first node of a chain as a view of the buffer ``chain[start]``."""
    view: Strided | None = Strided.whole(lazy.shape_of(program.values[chain[start]]))
    for node in reversed(chain[:start]):
        op = program.ops[node]
        assert op is not None
        if view is None:
            return None
        view = apply(op, view)
    return view


def _keep(program: Program, stores: Stores, node: int, why: Why) -> None:
    if program.roles[node] is not Role.BUFFER and not _is_constant(program, node):
        stores.why.setdefault(node, why)


def _store_results(program: Program, stores: Stores) -> None:
    """Stores under every result the deepest value it is a free view of.

    A slice or window is looked through only if what is under it will be in memory anyway, so those
    results come second. A result in the buffer of an argument must be all of what is stored.
    """
    chains = [_chain(program, node) for node in program.results]
    order = sorted(
        range(len(chains)),
        key=lambda position: any(_drops(program, node) for node in chains[position][:-1]),
    )
    bases = dict[int, int]()
    for position in order:
        chain = chains[position]
        start = next(
            start
            for start in _candidates(stores, chain)
            if _may_store(program, stores, chain, start, position in program.aliased)
        )
        bases[position] = chain[start]
        _keep(program, stores, chain[start], Why.RESULT)
    stores.result_base = [bases[position] for position in range(len(program.results))]


def _candidates(stores: Stores, chain: list[int]) -> list[int]:
    """Places in a chain, best first: the outermost that is stored already, then the deepest."""
    stored = [place for place, node in enumerate(chain) if node in stores.why]
    return [*stored[:1], *reversed(range(len(chain)))]


def _may_store(program: Program, stores: Stores, chain: list[int], start: int, whole: bool) -> bool:
    """Whether the first node of the chain is a free view of ``chain[start]``, worth storing."""
    if start == 0:
        return True
    view = _strided_from(program, chain, start)
    if view is None:
        return False
    if whole:
        return view.is_range and program.sizes[chain[start]] == program.sizes[chain[0]]
    dropped = any(_drops(program, node) for node in chain[:start])
    return not dropped or _in_memory(program, stores, chain[start])


def _drops(program: Program, node: int) -> bool:
    return isinstance(program.ops[node], lazy.SliceOp | lazy.WindowOp)


def _store_materialized(program: Program, stores: Stores) -> None:
    """``materialize`` of a contiguous range of something in memory is free."""
    for node, op in enumerate(program.ops):
        if not isinstance(op, lazy.MaterializeOp) or program.roles[node] is not Role.VIEW:
            continue
        chain = _chain(program, program.sources[node][0])
        for start in range(len(chain) - 1, -1, -1):
            view = _strided_from(program, chain, start)
            whole = view is not None and program.sizes[chain[start]] == program.sizes[node]
            held = _in_memory(program, stores, chain[start])
            if view is not None and view.is_range and (whole or held):
                _keep(program, stores, chain[start], Why.MATERIALIZE)
                break
