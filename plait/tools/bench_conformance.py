"""Plans of recorded graphs beside what other systems do with them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plait.frontend.trace import build_module
from plait.frontend.uop_graph import import_graph
from plait.passes.analysis.counts import report
from plait.runtime import driver
from plait.tools import tables
from plait.tools.loading import import_file

_TARGET = "cuda:sm_80"
_LARGE_KERNELS, _LARGE_BYTES = 0.5, 0.6
"""What a plan of a large graph may take of tinygrad's kernels and bytes."""


@dataclass(frozen=True)
class Row:
    """One graph: a measure of its plan, and the most it may be."""

    suite: str
    graph: str
    measure: str
    """``kernels``, ``bytes`` or ``elements``."""
    found: int
    recorded: int
    """The figure of the other system."""
    limit: int
    """The most that is accepted: the recorded figure, its authors' target, or a share of it."""

    @property
    def behind(self) -> bool:
        return self.found > self.limit

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "behind": self.behind}


def compare(data: Path, pipeline: str) -> list[Row]:
    """Plans every graph under ``data`` for ``cuda:sm_80``."""
    sys.path.insert(0, str(data))
    try:
        return [*_recorded(data, pipeline), *_written(data, pipeline)]
    finally:
        sys.path.remove(str(data))


def _recorded(data: Path, pipeline: str) -> Iterator[Row]:
    graphs = import_file(str(data / "graphs.py"))
    large = {graph.id for graph in graphs.large()}
    for graph in (*graphs.cases(), *graphs.large()):
        module = import_graph(graph.nodes, graph.outputs).module
        costs = report(driver.planned(module, pipeline, _TARGET), _TARGET)
        name = graph.id.rsplit("::", 1)[-1]
        kernels, moved = int(costs["kernels"]), int(costs["bytes"])
        if graph.id in large:
            most = int(graph.kernels * _LARGE_KERNELS)
            yield Row("tinygrad large", name, "kernels", kernels, graph.kernels, most)
            if graph.bytes is not None:
                most = int(graph.bytes * _LARGE_BYTES)
                yield Row("tinygrad large", name, "bytes", moved, graph.bytes, most)
            continue
        yield Row("tinygrad", name, "kernels", kernels, graph.kernels, graph.kernels)
        if graph.target is not None:
            yield Row("tinygrad targets", name, "kernels", kernels, graph.kernels, graph.target)
        if graph.bytes is not None:
            yield Row("tinygrad", name, "bytes", moved, graph.bytes, graph.bytes)


def _written(data: Path, pipeline: str) -> Iterator[Row]:
    """Graphs that are written with the front end."""
    for row in import_file(str(data / "inductor.py")).ROWS:
        costs = _costs(row.make(), pipeline)
        found = sum(_elements(kernel) for kernel in costs["detail"])
        yield Row(
            "inductor", f"{row.id}: {row.graph}", "elements", found, row.elements, row.elements
        )
    for row in import_file(str(data / "others.py")).ROWS:
        found = int(_costs(row.make(), pipeline)["kernels"])
        name = f"{row.id} ({row.system})"
        yield Row("others", name, "kernels", found, row.kernels, row.kernels)


def _costs(outputs: Sequence[Any], pipeline: str) -> dict[str, Any]:
    module, _ = build_module(list(outputs))
    return report(driver.planned(module, pipeline, _TARGET), _TARGET)


def _elements(kernel: dict[str, Any]) -> int:
    read = sum(read["elements"] * read["sweeps"] for read in kernel["reads"])
    return read + sum(write["elements"] for write in kernel["writes"])


def table(rows: Iterable[Row]) -> str:
    """The rows, one a line."""
    lines = [["suite", "graph", "of", "found", "recorded", "at most", ""]]
    for row in rows:
        figures = [str(row.found), str(row.recorded), str(row.limit)]
        verdict = "behind" if row.behind else ""
        lines.append([row.suite, row.graph, row.measure, *figures, verdict])
    return tables.aligned(lines, left=3)


def summary(rows: Sequence[Row]) -> str:
    """A line for every suite and measure: totals, and how many rows are behind."""
    lines = [["suite", "of", "graphs", "found", "recorded", "behind"]]
    for suite, measure in dict.fromkeys((row.suite, row.measure) for row in rows):
        each = [row for row in rows if (row.suite, row.measure) == (suite, measure)]
        totals = [str(sum(getattr(row, key) for row in each)) for key in ("found", "recorded")]
        behind = sum(row.behind for row in each)
        lines.append([suite, measure, str(len(each)), *totals, str(behind)])
    return tables.aligned(lines, left=2)
