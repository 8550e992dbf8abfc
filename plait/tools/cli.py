"""The command ``plait``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

_COMMANDS = {
    "run": "plan a program, run it, and check it against the numpy level",
    "report": "kernels, bytes and modelled time of a plan",
    "explain": "what the passes did and declined, and why",
    "bench": "plans beside those of other systems, on recorded graphs",
}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="plait", description="See, steer and run kernel fusion.")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help in _COMMANDS.items():
        command = commands.add_parser(name, help=help, description=help.capitalize() + ".")
        import_module(f"plait.tools.{name}").add_arguments(command)
    return top


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    from plait.tools.opt import guarded

    given = parser().parse_args(args)
    debug = given.debug or bool(os.environ.get("PLAIT_DEBUG"))
    command = import_module(f"plait.tools.{given.command}")
    return guarded(lambda: int(command.run(given)), debug)


if __name__ == "__main__":
    sys.exit(main())
