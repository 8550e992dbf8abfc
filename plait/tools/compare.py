"""``plait compare``: plans beside those of another system, for the same program."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

from plait.errors import PlaitError
from plait.frontend.tinygrad import TinygradProgram, check_version, from_tinygrad
from plait.runtime import driver
from plait.tools import tables
from plait.tools.program import returned
from plait.tools.tinygrad_kernels import Schedule, schedule_of, scheduled, to_compute


@dataclass(frozen=True)
class Comparison:
    """One graph, planned by both."""

    program: TinygradProgram
    report: dict[str, Any]
    """The keys of ``plait report --json``."""
    schedule: Schedule
    import_seconds: float
    """Processor seconds, as all of these."""
    plan_seconds: float
    schedule_seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("system", choices=("tinygrad",), help="the other system")
    add(
        "program",
        metavar="FILE.py[:function]",
        help="a function (default: main) that returns tensors of that system, not realized",
    )
    add("--pipeline", default="default", help="how plait plans (default: default)")
    add("--target", default="cuda:sm_80", help="the machine to plan for (default: cuda:sm_80)")
    add("--json", action="store_true", help="machine-readable")


def run(args: argparse.Namespace) -> int:
    from plait.passes.analysis.targets import get

    get(args.target)
    driver.pipeline_passes(args.pipeline)
    check_version()
    found = compared(returned(args.program), args.pipeline, args.target)
    print(json.dumps(as_json(found), indent=1) if args.json else text(found))
    return 0


def compared(
    tensors: list[Any], pipeline: str = "default", target: str = "cuda:sm_80"
) -> Comparison:
    """Plans the tensors with plait, then with tinygrad, which takes them as realized after it."""
    from plait.passes.analysis.counts import report

    started = time.process_time()
    program = from_tinygrad(*tensors)
    wanted = to_compute(tensors)
    if not wanted:
        raise PlaitError("nothing to compare: tinygrad holds these tensors already")
    if len(wanted) < len(tensors):
        started = time.process_time()
        program = from_tinygrad(*wanted)
    imported = time.process_time()
    plan = program.plan(pipeline, target)
    planned = time.process_time()
    linear, seconds = scheduled(wanted)
    return Comparison(
        program,
        report(plan, target),
        schedule_of(linear),
        imported - started,
        planned - imported,
        seconds,
    )


def as_json(found: Comparison) -> dict[str, Any]:
    keys = ("kernels", "bytes_read", "bytes_written", "bytes")
    schedule = found.schedule
    return {
        "plait": {key: found.report[key] for key in keys},
        "tinygrad": {
            "kernels": len(schedule.kernels),
            "bytes_read": schedule.read,
            "bytes_written": schedule.written,
            "bytes": schedule.read + schedule.written,
            "exact": schedule.exact,
            "copies": schedule.copies,
        },
        "lower_bound_bytes": found.report["lower_bound_bytes"],
    }


def text(found: Comparison) -> str:
    ours, theirs = found.report, found.schedule
    figures = {
        "plait": (ours["kernels"], ours["bytes_read"], ours["bytes_written"]),
        "tinygrad": (len(theirs.kernels), theirs.read, theirs.written),
    }
    rows = [["", "kernels", "read", "written", "bytes"]]
    for name, (kernels, read, written) in figures.items():
        sizes = (tables.size(count) for count in (read, written, read + written))
        rows.append([name, str(kernels), *sizes])
    lines = [tables.aligned(rows)]
    lines.append(f"lower bound: {tables.size(ours['lower_bound_bytes'])}")
    if not theirs.exact:
        lines.append("tinygrad's bytes are at most these: data or a mask decides what is read")
    if theirs.copies:
        lines.append(f"not counted: {theirs.copies} transfers between devices (inputs of plait)")
    return "\n".join(lines)
