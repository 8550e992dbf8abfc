"""``plait explain``: the decisions of a pipeline."""

from __future__ import annotations

import argparse

from plait.errors import PlaitError
from plait.passes import remarks
from plait.passes.fusion.why import why
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
    add("--target", help="the machine to plan for")
    add("--filter", choices=["passed", "missed", "analysis"], help="one kind only")


def run(args: argparse.Namespace) -> int:
    program = load_program(args.program)
    with remarks.collect() as found:
        plan = driver.planned(program.module, args.pipeline, args.target)
    if len(args.kernels) == 2:
        print(why(plan, found, (args.kernels[0], args.kernels[1])))
        return 0
    if len(args.kernels) > 2:
        raise PlaitError(f"expected at most two kernels, found {len(args.kernels)}")
    shown = [
        remark
        for remark in found
        if args.filter in (None, remark.kind) and all(name in str(remark) for name in args.kernels)
    ]
    for remark in shown:
        print(remark)
    if not shown:
        print("no decision is on record" + (" about these kernels" if args.kernels else ""))
    return 0
