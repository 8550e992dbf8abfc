"""Disjoint sets: what shares indices belongs together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence


def connected(supports: Sequence[Collection[Hashable]]) -> list[list[int]]:
    """The positions of ``supports``, grouped so that different groups share no element.

    Positions are in order within a group, and groups in order of their first.
    """
    home: dict[Hashable, int] = {}
    parent = list(range(len(supports)))

    def find(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    for position, support in enumerate(supports):
        for element in support:
            a, b = find(home.setdefault(element, position)), find(position)
            parent[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for position in range(len(supports)):
        groups.setdefault(find(position), []).append(position)
    return list(groups.values())
