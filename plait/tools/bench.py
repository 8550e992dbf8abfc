"""``plait bench``: plans beside those of other systems."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from plait.errors import PlaitError
from plait.tools import bench_conformance as conformance

_DATA = Path(__file__).resolve().parents[2] / "tests" / "conformance"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("suite", choices=["conformance"], help="conformance: recorded graphs of other systems")
    add("--pipeline", default="default", help="how to plan (default: default)")
    add("--data", type=Path, default=_DATA, metavar="DIR", help="where the recorded graphs are")
    add("--all", action="store_true", help="every row, not only those behind their yardstick")
    add("--json", action="store_true", help="every row, machine-readable")
    add("--check", action="store_true", help="exit with 1 if a row is behind its yardstick")
    parser.epilog = "The exit status is 0 for every comparison that was made, unless with --check."


def run(args: argparse.Namespace) -> int:
    """Prints the comparison; the status is 1 if it is to be checked and a row is behind."""
    if not (args.data / "graphs.py").exists():
        raise PlaitError(
            f"{args.data}: no recorded graphs here: run from a source tree, or give --data DIR"
        )
    rows = conformance.compare(args.data, args.pipeline)
    if args.json:
        print(json.dumps([row.as_json() for row in rows], indent=1))
    else:
        print(conformance.summary(rows))
        shown = rows if args.all else [row for row in rows if row.behind]
        print(f"\n{'all rows' if args.all else 'rows behind their yardstick'}:")
        print(conformance.table(shown) if shown else "none")
    return int(args.check and any(row.behind for row in rows))
