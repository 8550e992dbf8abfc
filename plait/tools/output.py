"""Where tools write: files whole or not at all, and streams that may be closed or full."""

from __future__ import annotations

import io
import os
import secrets
import sys
from pathlib import Path

from plait.errors import PlaitError


def write_text(name: str | Path, text: str) -> None:
    """Writes a file, or standard output for ``-``; an error leaves a file as it was.

    A link stays and what it points to is written. A new file has the mode that the umask allows, an
    old one keeps its own. What is no regular file (a pipe, a terminal) is written into.
    Raises :class:`PlaitError` with the reason.
    """
    if str(name) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        stream = _standard_stream(name)
        if stream is not None:
            sys.stdout.flush()
            with open(stream, "w", encoding="utf-8", closefd=False) as opened:
                opened.write(text)
        elif os.path.exists(name) and not os.path.isfile(name):
            Path(name).write_text(text, encoding="utf-8")
        else:
            _replace(Path(os.path.realpath(name)), text)
    except OSError as error:
        raise PlaitError(f"{name}: cannot write: {reason(error)}") from None


def reason(error: OSError) -> str:
    """What the system says about a failure, in lower case: ``no space left on device``."""
    return (error.strerror or str(error)).lower()


def _standard_stream(name: str | Path) -> int | None:
    """The descriptor of standard output or error if ``name`` is the file it goes to."""
    for descriptor in (1, 2):
        try:
            if os.path.samestat(os.stat(name), os.fstat(descriptor)):
                return descriptor
        except OSError:
            continue
    return None


def _replace(path: Path, text: str) -> None:
    """Writes beside a file, then takes its place."""
    mode: int | None = None
    if path.exists():
        os.close(os.open(path, os.O_WRONLY))  # a file that may not be written is not replaced
        mode = path.stat().st_mode & 0o7777
    beside = path.parent / f".plait-{secrets.token_hex(6)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(beside, flags, 0o666), "w", encoding="utf-8") as opened:
            opened.write(text)
            if mode is not None:
                os.fchmod(opened.fileno(), mode)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


class _Closed(io.TextIOBase):
    """Standard output that was closed before the tool started."""

    def write(self, s: str, /) -> int:
        raise OSError("standard output is closed")


def hold_streams() -> None:
    """Stands in for standard streams that are closed: writing output fails, messages get lost.
    Their descriptors are taken, or the next file to be opened would be standard output.

    An unbuffered output becomes line-buffered: Python loses what a disk that fills up did not take.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        os.open(os.devnull, os.O_WRONLY)
        sys.stdout = _Closed()
    elif isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - to the end
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - to the end of the process


def drop_output() -> None:
    """Lets go of what standard output still holds: it cannot be written."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - to the end of the process
