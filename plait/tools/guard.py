"""Runs commands so that mistakes of the user end in one line and an exit status."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from traceback import extract_tb

from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from plait.errors import PlaitError
from plait.tools.output import drop_output, hold_streams, reason
from plait.tools.usage import UsageError


def guarded(run: Callable[[], int], debug: bool) -> int:
    """Runs a command; a mistake is one line on standard error, with a traceback for ``debug``."""
    hold_streams()
    collecting = gc.isenabled()
    gc.disable()  # a third of the time on large programs, and the process ends soon
    try:
        try:
            return run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, OSError):
            drop_output()
        if debug:
            raise
        print(one_line(error), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    finally:
        if collecting:
            gc.enable()


def one_line(error: Exception) -> str:
    """An error as ``error: ...``, or as it is where it says its place itself."""
    if isinstance(error, PlaitError):
        placed = ": error: " in str(error).split("\n")[0]
        return str(error) if placed else f"error: {error}"
    if isinstance(error, OSError):
        return f"error: {error.filename or 'output'}: {reason(error)}"
    if isinstance(error, DiagnosticException | VerifyException | ParseError):
        return f"error: {first_line(error)}"
    return f"error: {unforeseen(error)}"


def first_line(error: Exception) -> str:
    """The first line of an error that says something."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def unforeseen(error: Exception) -> str:
    """A failure that nobody wrote a message for: what it is and where it arose."""
    frames = extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    kind = type(error).__name__
    text = first_line(error)
    said = kind if text == kind else f"{kind}: {text}"
    return f"{said}{place}; --debug shows the traceback"
