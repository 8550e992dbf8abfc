"""The command ``plait``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

_COMMANDS = {
    "run": "plan a program, run it, and check it against the numpy level",
    "report": "kernels, bytes and modelled time of a plan",
    "explain": "what the passes did and declined, and why",
    "import": "a PyTorch model as a tensor program in MLIR text",
    "bench": "plans beside those of other systems, on recorded graphs",
}
_MODULES = {"import": "import_torch"}
"""Where a command is, if not in the module of its name."""


def module_of(command: str) -> Any:
    return import_module(f"plait.tools.{_MODULES.get(command, command)}")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="plait", description="See, steer and run kernel fusion.")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help in _COMMANDS.items():
        command = commands.add_parser(name, help=help, description=help.capitalize() + ".")
        module_of(name).add_arguments(command)
    return top


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    from plait.tools.guard import guarded

    given = parser().parse_args(args)
    debug = given.debug or bool(os.environ.get("PLAIT_DEBUG"))
    command = module_of(given.command)
    return guarded(lambda: int(command.run(given)), debug)


if __name__ == "__main__":
    sys.exit(main())
