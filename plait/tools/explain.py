"""``plait explain``: the decisions of a pipeline."""

from __future__ import annotations

import argparse

from plait.passes import remarks
from plait.passes.fusion.why import explained
from plait.runtime import driver
from plait.tools.program import load_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("program", metavar="PROG", help="FILE.mlir or FILE.py[:function]")
    add(
        "kernels",
        metavar="KERNEL",
        nargs="*",
        help="one: what was decided about it; two: why they are not one kernel",
    )
    add("--pipeline", default="default", help="how to plan (default: default)")
    add("--target", default="cuda:sm_80", help="the machine to plan for (default: cuda:sm_80)")
    add("--filter", choices=["passed", "missed", "analysis"], help="one kind only")


def run(args: argparse.Namespace) -> int:
    program = load_program(args.program)
    with remarks.collect() as found:
        plan = driver.planned(program.module, args.pipeline, args.target)
    lines = explained(plan, found, args.kernels, args.filter)
    about = f" about '{args.kernels[0]}'" if args.kernels else ""
    print("\n".join(lines) or f"no decision is on record{about}")
    return 0
