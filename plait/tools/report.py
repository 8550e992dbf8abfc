"""``plait report``: what a plan costs."""

from __future__ import annotations

import argparse
import json
from typing import TypedDict

from xdsl.dialects.builtin import ModuleOp

from plait.passes.analysis.counts import report
from plait.passes.analysis.targets import get
from plait.passes.fusion.optimal import LIMIT_S, Search
from plait.passes.fusion.plan import Plan, functions_with_groups
from plait.runtime import driver
from plait.tools import tables
from plait.tools.program import load_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("program", metavar="PROG", help="FILE.mlir or FILE.py[:function]")
    add("--pipeline", default="default", help="how to plan (default: default)")
    add("--target", default="cuda:sm_80", help="the machine to model (default: cuda:sm_80)")
    add(
        "--optimal",
        nargs="?",
        type=float,
        const=LIMIT_S,
        metavar="SECONDS",
        help="also search for the plan of fewest bytes, at most this long, and print the gap to it",
    )
    add("--json", action="store_true", help="machine-readable, for this pipeline alone")
    add("--kernels", action="store_true", help="also list the kernels")


class Optimum(TypedDict):
    """What the search for the plan of fewest bytes found."""

    bytes: int
    """Of the best plan, the one that was asked for included."""
    bound: int
    """What no plan goes below."""
    gap: float
    """Bytes of the plan that was asked for, over the bound."""


def _best(module: ModuleOp, args: argparse.Namespace, moved: int) -> Optimum:
    """Searches in the groups that the pipelines start from."""
    groups = module.clone()
    driver.apply(groups, ("lazy-simplify", "fuse-form-groups"))
    other = report(driver.planned(module, "fewest-bytes", args.target), args.target)["bytes"]
    found = [
        Search(Plan.read(function), get(args.target), args.optimal).run()
        for function in functions_with_groups(groups)
    ]
    best = min(moved, other, sum(each.bytes for each in found))
    bound = min(best, sum(each.bound for each in found))
    return {"bytes": best, "bound": bound, "gap": moved / bound if bound else 1.0}


def _gap(pipeline: str, best: Optimum) -> str:
    """The line about the distance to the optimum."""
    bound, bytes = (tables.size(best[key]) for key in ("bound", "bytes"))
    if best["bytes"] > best["bound"]:
        return (
            f"optimum: between {bound} and {bytes}, not settled in the time given; "
            f"{pipeline} moves at most {best['gap']:.2f} times the least"
        )
    return f"optimum: {bytes}, proven; {pipeline} moves {best['gap']:.2f} times that"


def run(args: argparse.Namespace) -> int:
    get(args.target)
    driver.pipeline_passes(args.pipeline)
    program = load_program(args.program)
    names = (args.pipeline,) if args.json else tuple(dict.fromkeys(("none", args.pipeline)))
    reports = {
        name: report(driver.planned(program.module, name, args.target), args.target)
        for name in names
    }
    found = reports[args.pipeline]
    best = None if args.optimal is None else _best(program.module, args, found["bytes"])
    if args.json:
        shown: dict[str, object] = {**found} if best is None else {**found, "optimal": best}
        print(json.dumps(shown, indent=1))
        return 0
    print(tables.plans(reports))
    if best is not None:
        print(_gap(args.pipeline, best))
    if args.kernels:
        print()
        print(tables.kernels(reports[args.pipeline]))
    return 0
