"""Planning time beside tinygrad's scheduling time, for one graph in one run.

    python benchmarks/schedule_time.py [FILE.py[:function]] [--runs N] [--json]

The graph is what a function returns (default: a training step of ResNet-50 written in tinygrad).
Each run builds it anew; plait imports it and plans it with `default`, then tinygrad schedules it
without its cache. Both have planned a small graph before, so that neither pays for what is done
once per process. Prints the processor seconds of every run, the medians and their ratio; both work
in one thread, and other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from plait.errors import PlaitError
from plait.tools import compare, tables
from plait.tools.program import returned

EXAMPLES = Path(__file__).parent.parent / "examples"


def measured(program: str, runs: int) -> list[compare.Comparison]:
    compare.compared(returned(f"{EXAMPLES / 'tinygrad_block.py'}:softmax"))
    return [compare.compared(returned(program)) for _ in range(runs)]


def as_json(found: list[compare.Comparison]) -> dict[str, Any]:
    plan, schedule = [c.plan_seconds for c in found], [c.schedule_seconds for c in found]
    return {
        "import_seconds": [c.import_seconds for c in found],
        "plan_seconds": plan,
        "schedule_seconds": schedule,
        "ratio": median(plan) / median(schedule),
        "kernels": {
            "plait": found[-1].report["kernels"],
            "tinygrad": len(found[-1].schedule.kernels),
        },
    }


def text(result: dict[str, Any]) -> str:
    rows = [["seconds", "plait import", "plait plan", "tinygrad schedule"]]
    columns = [result[f"{name}_seconds"] for name in ("import", "plan", "schedule")]
    for number, times in enumerate(zip(*columns, strict=True), start=1):
        rows.append([f"run {number}", *(f"{seconds:.2f}" for seconds in times)])
    if len(columns[0]) > 1:
        rows.append(["median", *(f"{median(column):.2f}" for column in columns)])
    kernels = result["kernels"]
    return (
        f"{tables.aligned(rows)}\n"
        f"kernels: plait {kernels['plait']}, tinygrad {kernels['tinygrad']}\n"
        f"plait's planning takes {result['ratio']:.2f} times tinygrad's scheduling"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Planning time beside tinygrad's.")
    parser.add_argument("program", nargs="?", default=str(EXAMPLES / "tinygrad_resnet.py"))
    parser.add_argument("--runs", type=int, default=1, help="how often (default: 1)")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs: expected at least 1, found {args.runs}")
    try:
        result = as_json(measured(args.program, args.runs))
    except PlaitError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result, indent=1) if args.json else text(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
