"""The group graph against a plain recomputation, and its growth."""

import random
import time
from itertools import pairwise

import pytest

from plait.passes.fusion.graph import GroupGraph


def reachable(edges: set[tuple[int, int]], start: int) -> set[int]:
    seen, pending = set[int](), [start]
    while pending:
        node = pending.pop()
        for a, b in edges:
            if a == node and b not in seen:
                seen.add(b)
                pending.append(b)
    return seen


def contracted(graph: GroupGraph, edges: list[tuple[int, int]]) -> set[tuple[int, int]]:
    found = {(graph.find(a), graph.find(b)) for a, b in edges}
    return {(a, b) for a, b in found if a != b}


def makes_cycle(edges: set[tuple[int, int]], a: int, b: int) -> bool:
    without = edges - {(a, b), (b, a)}
    return b in reachable(without, a) or a in reachable(without, b)


@pytest.mark.parametrize("seed", range(25))
def test_random_merges_match_recomputation(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 24)
    edges = [
        (a, b)
        for a in range(count)
        for b in range(a + 1, count)
        if rng.random() < rng.choice((0.05, 0.2))
    ]
    graph = GroupGraph.build([f"n{i}" for i in range(count)], edges)
    for _ in range(60):
        a, b = graph.find(rng.randrange(count)), graph.find(rng.randrange(count))
        now = contracted(graph, edges)
        path = graph.closing_path(a, b)
        assert (path is not None) == (a != b and makes_cycle(now, a, b))
        assert (graph.depends(a, b) is not None) == (b in reachable(now, a))
        if path is not None:
            assert len(path) > 2
            assert {path[0], path[-1]} == {a, b}
            assert all(edge in now for edge in pairwise(path))
            with pytest.raises(ValueError, match="makes a cycle"):
                graph.merge(a, b)
        else:
            graph.merge(a, b)
        after = contracted(graph, edges)
        place = {node: number for number, node in enumerate(graph.order())}
        assert all(place[x] < place[y] for x, y in after)
        assert {(x, y) for x in place for y in graph.successors[x]} == after
        assert {(y, x) for x in place for y in graph.predecessors[x]} == after


def test_witness_names_the_path() -> None:
    graph = GroupGraph.build(["a", "b", "c"], [(0, 1), (1, 2), (0, 2)])
    assert graph.can_merge(0, 2) == ["a", "b", "c"]
    assert graph.can_merge(0, 1) is None
    graph.merge(1, 2)
    assert graph.can_merge(0, 2) is None


def test_edges_must_follow_the_numbering() -> None:
    with pytest.raises(ValueError, match="against the order"):
        GroupGraph.build(["a", "b"], [(1, 0)])


def merge_many(count: int) -> float:
    rng = random.Random(0)
    edges = [(rng.randrange(max(0, i - 50), i), i) for i in range(1, count) for _ in range(3)]
    for _ in range(count // 10):
        a, b = sorted(rng.sample(range(count), 2))
        edges.append((a, b))
    graph = GroupGraph.build(["g"] * count, edges)
    start = time.perf_counter()
    for _ in range(count):
        a = rng.randrange(count - 100)
        b = a + rng.randrange(1, 100)
        if graph.closing_path(a, b) is None:
            graph.merge(a, b)
    return time.perf_counter() - start


def test_growth_is_close_to_linear() -> None:
    small = min(merge_many(5_000) for _ in range(2))
    assert merge_many(50_000) < 10 * small * 4 + 1
