"""Plain tables of what plans cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows as columns: the first ``left`` to the left, the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    rule = "-" * max(map(len, lines))
    return "\n".join([lines[0], rule, *lines[1:]])


def size(count: float) -> str:
    """Bytes in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def plans(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Plans side by side, one a line."""
    head = ["plan", "kernels", "read", "written", "bytes", "of bound", "large passes", "modelled"]
    rows = [head]
    bound = 0
    for name, report in reports.items():
        bound = report["lower_bound_bytes"]
        ratio = f"{report['bytes'] / bound:.2f}x" if bound else "-"
        rows.append(
            [
                name,
                str(report["kernels"]),
                size(report["bytes_read"]),
                size(report["bytes_written"]),
                size(report["bytes"]),
                ratio,
                str(report["large_passes"]),
                f"{report['modelled_us']:.1f} us",
            ]
        )
    machines = ", ".join(dict.fromkeys(report["target"] for report in reports.values()))
    lines = [
        f"lower bound: {size(bound)} (each used input once, each output once)",
        f"times are modelled for {machines}",
    ]
    return "\n".join([aligned(rows), *lines])


def kernels(report: Mapping[str, Any]) -> str:
    """The kernels of a plan, one a line."""
    rows = [["kernel", "kind", "space", "reads", "writes", "bytes"]]
    for kernel in report["detail"]:
        rows.append(
            [
                kernel["name"],
                kernel["kind"],
                "x".join(map(str, kernel["space"])) or "1",
                str(len(kernel["reads"])),
                str(len(kernel["writes"])),
                size(kernel["bytes"]),
            ]
        )
    return aligned(rows, left=2)
