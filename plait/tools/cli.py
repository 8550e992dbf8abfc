"""The command ``plait``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from plait.tools.usage import UsageParser, fail, versions

_COMMANDS = {
    "run": "plan a program, run it, and check it against the numpy level",
    "report": "kernels, bytes and modelled time of a plan",
    "explain": "what the passes did and declined, and why",
    "import": "a PyTorch model as a tensor program in MLIR text",
    "compare": "a tinygrad program, planned by plait and by tinygrad",
    "bench": "plans beside those of other systems, on recorded graphs",
}
_MODULES = {"import": "import_torch"}
"""Where a command is, if not in the module of its name."""


def module_of(command: str) -> Any:
    return import_module(f"plait.tools.{_MODULES.get(command, command)}")


def parsed(args: Sequence[str] | None) -> argparse.Namespace:
    """The command and its options; raises :class:`UsageError` if they cannot be understood."""
    common = UsageParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    top = UsageParser(
        prog="plait", description="See, steer and run kernel fusion.", parents=[common]
    )
    top.add_argument("-v", "--version", action="version", version=versions())
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers: dict[str, UsageParser] = {}
    for name, text in _COMMANDS.items():
        parsers[name] = commands.add_parser(
            name, parents=[common], help=text, description=text.capitalize() + "."
        )
        module_of(name).add_arguments(parsers[name])
    given, unknown = top.parse_known_args(args)
    if unknown:
        fail(parsers[given.command], f"unrecognized arguments: {' '.join(unknown)}")
    return given


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    from plait.tools.guard import guarded

    words = list(sys.argv[1:] if args is None else args)

    def run() -> int:
        given = parsed(words)
        return int(module_of(given.command).run(given))

    return guarded(run, "--debug" in words or bool(os.environ.get("PLAIT_DEBUG")))


if __name__ == "__main__":
    sys.exit(main())
