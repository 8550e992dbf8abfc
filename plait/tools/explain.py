"""``plait explain``: the decisions of a pipeline."""

from __future__ import annotations

import argparse

from plait.passes import remarks
from plait.runtime import driver
from plait.tools.program import load_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("program", metavar="PROG", help="FILE.mlir or FILE.py[:function]")
    add("kernels", metavar="KERNEL", nargs="*", help="only decisions about all of these kernels")
    add("--pipeline", default="default", help="how to plan (default: default)")
    add("--target", help="the machine to plan for")
    add("--filter", choices=["passed", "missed", "analysis"], help="one kind only")


def run(args: argparse.Namespace) -> int:
    program = load_program(args.program)
    with remarks.collect() as found:
        driver.planned(program.module, args.pipeline, args.target)
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
