"""Command lines: what is wrong with one is said in one line, with where to read more."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import NoReturn, TypeVar

from xdsl.utils.exceptions import ArgSpecParseError

from plait.errors import PlaitError

G = TypeVar("G")
T = TypeVar("T")


class UsageError(PlaitError):
    """A command line that cannot be understood: the exit status is 2."""


class UsageParser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        fail(self, message)


def fail(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Refuses a command line; an option that does not exist is compared with those that do."""
    known: list[str] = list(vars(parser)["_option_string_actions"])
    wrong = re.match(r"unrecognized arguments: (--[^\s=]+)", message)
    near = suggestion(wrong.group(1), known) if wrong else ""
    raise UsageError(f"{parser.prog}: error: {message}{near}; see '{parser.prog} --help'")


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def known_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The name, if it is known; else an error with the nearest one."""
    if name not in known:
        raise UsageError(f"unknown {kind} '{name}'{suggestion(name, known)}")
    return name


def pattern(option: str, text: str) -> re.Pattern[str]:
    """A regular expression that an option gives."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option}: '{text}' is no regular expression: {error}") from None


def parsed_spec(option: str, parse: Callable[[G], T], given: G) -> T:
    """What xDSL's parser of passes and targets makes of what was given, its errors as one line."""
    try:
        return parse(given)
    except ArgSpecParseError as error:
        # Its lines: a title, file:line:column, the text, a caret, what was expected.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        column = lines[1].rpartition(":")[2]
        raise UsageError(f"{option} '{lines[2]}', column {column}: {lines[-1]}") from None


def versions() -> str:
    """The versions of plait and of xDSL below it."""
    return f"plait {version('plait')} (xDSL {version('xdsl')})"
