"""The conformance graphs: what they are, and how to load them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Graph:
    """One recorded graph, with what another scheduler makes of it."""

    id: str
    nodes: list[dict[str, Any]]
    outputs: list[int]
    kernels: int
    target: int | None
    bytes: int | None
    floor_bytes: int | None = None

    @property
    def largest(self) -> int:
        """Elements of the largest value, as written."""
        return max((prod(node["sh"]) for node in self.nodes), default=0)


def _graph(record: dict[str, Any]) -> Graph:
    return Graph(
        record["id"],
        record["nodes"],
        record["outputs"],
        record["tinygrad"],
        record.get("target"),
        record.get("tinygrad_bytes"),
        record.get("floor_bytes"),
    )


@cache
def cases() -> tuple[Graph, ...]:
    """The small graphs, from a scheduler's own tests."""
    lines = (DATA / "tinygrad_cases.jsonl").read_text().splitlines()
    return tuple(_graph(json.loads(line)) for line in lines)


@cache
def large() -> tuple[Graph, ...]:
    """The large ones, up to a training step of ResNet-50."""
    with gzip.open(DATA / "tinygrad_large.jsonl.gz", "rt") as lines:
        return tuple(_graph(json.loads(line)) for line in lines)
