"""``plait report``: what a plan costs."""

from __future__ import annotations

import argparse
import json

from plait.runtime import driver
from plait.tools import tables
from plait.tools.program import load_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("program", metavar="PROG", help="FILE.mlir or FILE.py[:function]")
    add("--pipeline", default="default", help="how to plan (default: default)")
    add("--target", default="cuda:sm_80", help="the machine to model (default: cuda:sm_80)")
    add("--json", action="store_true", help="machine-readable, for this pipeline alone")
    add("--kernels", action="store_true", help="also list the kernels")


def run(args: argparse.Namespace) -> int:
    from plait.passes.analysis.counts import report
    from plait.passes.analysis.targets import get

    get(args.target)
    driver.pipeline_passes(args.pipeline)
    program = load_program(args.program)
    names = (args.pipeline,) if args.json else tuple(dict.fromkeys(("none", args.pipeline)))
    reports = {
        name: report(driver.planned(program.module, name, args.target), args.target)
        for name in names
    }
    if args.json:
        print(json.dumps(reports[args.pipeline], indent=1))
        return 0
    print(tables.plans(reports))
    if args.kernels:
        print()
        print(tables.kernels(reports[args.pipeline]))
    return 0
