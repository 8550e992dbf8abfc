"""The group graph: which kernels feed which, under merges, without ever searching all of it.

Nodes are groups, edges say that one reads what another writes. The graph keeps a topological order
in the manner of Pearce and Kelly (JEA 2006), with two changes: the order is a set of sparse labels,
so that moving nodes costs nothing for the ones between, and a search runs from both ends at once,
so that it costs as much as the smaller side. Merging re-points the edges of the group with fewer
of them. Building is O(V + E).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_SPACING = 1 << 40
_ENDS = -1
"""The sentinel that closes the linked list of the order; it is the last entry of its arrays."""


@dataclass
class _Side:
    """One half of a two-sided search: what it has seen, and from where."""

    came_from: dict[int, int]
    pending: list[int]
    steps: int = 0

    @staticmethod
    def at(*starts: int) -> _Side:
        return _Side({start: start for start in starts}, list(starts))

    def trace(self, node: int) -> list[int]:
        """The nodes from ``node`` back to the start of this side."""
        path = [node]
        while self.came_from[path[-1]] != path[-1]:
            path.append(self.came_from[path[-1]])
        return path

    def reached(self) -> set[int]:
        """What was seen, without the start."""
        return {node for node, origin in self.came_from.items() if node != origin}


@dataclass
class GroupGraph:
    """A directed acyclic graph of groups that can be merged.

    A node is known by the number it was built with, also after it was merged into another:
    :meth:`find` gives the node that now stands for it.
    """

    names: list[str]
    successors: list[set[int]] = field(default_factory=list[set[int]])
    predecessors: list[set[int]] = field(default_factory=list[set[int]])
    _parent: list[int] = field(default_factory=list[int])
    _label: list[int] = field(default_factory=list[int])
    _previous: list[int] = field(default_factory=list[int])
    _next: list[int] = field(default_factory=list[int])
    _alive: set[int] = field(default_factory=set[int])

    @staticmethod
    def build(names: Sequence[str], edges: Iterable[tuple[int, int]]) -> GroupGraph:
        """A graph over ``len(names)`` groups; the numbering must be a topological order."""
        count = len(names)
        graph = GroupGraph(
            list(names),
            [set() for _ in range(count)],
            [set() for _ in range(count)],
            list(range(count)),
            [*((number + 1) * _SPACING for number in range(count)), 0],
            [*range(-1, count - 1), count - 1],
            [*range(1, count), _ENDS, 0] if count else [_ENDS],
            set(range(count)),
        )
        for source, target in edges:
            if not source < target:
                raise ValueError(f"edge {source} -> {target} is against the order of the groups")
            graph.successors[source].add(target)
            graph.predecessors[target].add(source)
        return graph

    def __len__(self) -> int:
        return len(self._alive)

    def find(self, node: int) -> int:
        """The node that stands for ``node`` after the merges so far."""
        root = node
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[node] != root:
            self._parent[node], node = root, self._parent[node]
        return root

    def order(self) -> list[int]:
        """The nodes that are left, in topological order."""
        return sorted(self._alive, key=self._label.__getitem__)

    def before(self, a: int, b: int) -> bool:
        """Whether ``a`` comes before ``b`` in the present order."""
        return self._label[self.find(a)] < self._label[self.find(b)]

    def depends(self, a: int, b: int) -> list[int] | None:
        """A path of nodes from ``a`` to ``b``, direct or not, or None."""
        return self.depends_on_any([a], b)

    def depends_on_any(self, nodes: Sequence[int], b: int) -> list[int] | None:
        """A path to ``b`` from any of ``nodes``, direct or not, or None. One search for all."""
        b = self.find(b)
        earlier = [node for node in map(self.find, nodes) if self._label[node] < self._label[b]]
        for node in earlier:
            if b in self.successors[node]:
                return [node, b]
        return self._search(earlier, b)[0] if earlier else None

    def closing_path(self, a: int, b: int) -> list[int] | None:
        """The path from one group through others to the other that merging them would close to a
        cycle, or None if they can be merged. A direct edge between them is no obstacle."""
        first, last = self._ordered(a, b)
        return self._search([first], last)[0] if first != last else None

    def can_merge(self, a: int, b: int) -> list[str] | None:
        """None if the two groups can be one; else the names along the path that forbids it."""
        path = self.closing_path(a, b)
        return None if path is None else [self.names[node] for node in path]

    def merge(self, a: int, b: int) -> int:
        """Makes the two groups one and returns its node; raises ValueError on a cycle."""
        first, last = self._ordered(a, b)
        if first == last:
            return first
        path, ahead, behind = self._search([first], last)
        if path is not None:
            names = " -> ".join(self.names[node] for node in path)
            raise ValueError(f"merging the ends of {names} makes a cycle")
        if ahead is not None:
            self._move_after(last, sorted(ahead, key=self._label.__getitem__))
            return self._join(first, last, place=last)
        assert behind is not None
        self._move_after(self._previous[first], sorted(behind, key=self._label.__getitem__))
        return self._join(first, last, place=first)

    def _ordered(self, a: int, b: int) -> tuple[int, int]:
        a, b = self.find(a), self.find(b)
        return (a, b) if self._label[a] <= self._label[b] else (b, a)

    def _search(
        self, firsts: Sequence[int], last: int
    ) -> tuple[list[int] | None, set[int] | None, set[int] | None]:
        """Searches for a path of at least two edges from ``firsts`` to ``last``, from both ends.

        Returns the path, or everything between them that ``firsts`` reach, or everything between
        them that reaches ``last``: whichever side was exhausted with fewer steps.
        """
        low, high = min(self._label[first] for first in firsts), self._label[last]
        if low >= high:
            return None, set(), None
        ahead, behind = _Side.at(*firsts), _Side.at(last)
        while ahead.pending and behind.pending:
            forward = ahead.steps <= behind.steps
            side, other = (ahead, behind) if forward else (behind, ahead)
            edges = self.successors if forward else self.predecessors
            node = side.pending.pop()
            for neighbour in edges[node]:
                side.steps += 1
                if side.came_from[node] == node and other.came_from.get(neighbour) == neighbour:
                    continue
                if neighbour in other.came_from:
                    halves = (side.trace(node)[::-1], other.trace(neighbour))
                    path = [*halves[0], *halves[1]]
                    return (path if forward else path[::-1]), None, None
                if low < self._label[neighbour] < high and neighbour not in side.came_from:
                    side.came_from[neighbour] = node
                    side.pending.append(neighbour)
        if not ahead.pending:
            return None, ahead.reached(), None
        return None, None, behind.reached()

    def _join(self, first: int, last: int, place: int) -> int:
        """Merges two nodes at the place of one of them; no path may be between them."""
        keep, drop = first, last
        if self._degree(keep) < self._degree(drop):
            keep, drop = drop, keep
        for ahead, back in (
            (self.successors, self.predecessors),
            (self.predecessors, self.successors),
        ):
            for neighbour in ahead[drop]:
                back[neighbour].discard(drop)
                if neighbour != keep:
                    back[neighbour].add(keep)
                    ahead[keep].add(neighbour)
            ahead[keep].discard(drop)
            ahead[drop] = set()
        self._parent[drop] = keep
        self._alive.discard(drop)
        if place != keep:
            self._unlink(keep)
            self._link(keep, self._previous[drop], self._label[drop])
        self._unlink(drop)
        return keep

    def _degree(self, node: int) -> int:
        return len(self.successors[node]) + len(self.predecessors[node])

    def _move_after(self, anchor: int, nodes: list[int]) -> None:
        """Moves nodes, in this order, to directly after ``anchor`` in the order (-1: the front)."""
        for node in nodes:
            self._unlink(node)
        if self._gap(anchor) <= len(nodes):
            self._relabel()
        start = self._label[anchor]
        step = self._gap(anchor) // (len(nodes) + 1)
        for number, node in enumerate(nodes, 1):
            self._link(node, anchor, start + number * step)
            anchor = node

    def _gap(self, node: int) -> int:
        """How many labels there are between a node and the one after it."""
        following = self._next[node]
        if following == _ENDS:
            return _SPACING * (len(self._alive) + 1)
        return self._label[following] - self._label[node]

    def _unlink(self, node: int) -> None:
        before, after = self._previous[node], self._next[node]
        self._next[before], self._previous[after] = after, before

    def _link(self, node: int, before: int, label: int) -> None:
        after = self._next[before]
        self._previous[node], self._next[node] = before, after
        self._next[before] = self._previous[after] = node
        self._label[node] = label

    def _relabel(self) -> None:
        """Spaces the labels evenly again."""
        node, label = self._next[_ENDS], 0
        while node != _ENDS:
            label += _SPACING
            self._label[node] = label
            node = self._next[node]
