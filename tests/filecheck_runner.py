"""Runs the RUN lines of FileCheck tests in this process: plait's tools, ``filecheck`` and ``not``.

A RUN line is a pipe of commands; ``%s`` is the test file, ``%t`` a temporary one, ``2>&1`` joins
the streams. Each command starts in milliseconds, as nothing is spawned.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

RUN = re.compile(r"//\s*RUN:\s*(.*)")


@dataclass
class Result:
    """How a command ended."""

    status: int
    out: str
    err: str


def run_lines(path: Path) -> list[str]:
    """The RUN lines of a test; a line that ends in a backslash goes on in the next."""
    lines = [
        match.group(1).strip() for match in map(RUN.match, path.read_text().splitlines()) if match
    ]
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] = joined[-1][:-1] + line
        else:
            joined.append(line)
    return joined


def run(line: str, path: Path, source: str | None = None) -> Result:
    """Runs a RUN line for a test file, whose text may be replaced by ``source``."""
    with tempfile.TemporaryDirectory() as folder:
        file = path
        if source is not None:
            file = Path(folder) / path.name
            file.write_text(source)
        text = line.replace("%s", str(file)).replace("%t", str(Path(folder) / "t"))
        piped = ""
        result = Result(0, "", "")
        for command in _split_pipe(text):
            result = _run_command(command, piped)
            if result.status:
                return result
            piped = result.out
        return result


def _split_pipe(text: str) -> list[list[str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for token in lexer:
        if token == "|":
            commands.append([])
        else:
            commands[-1].append(token)
    return commands


def _run_command(words: list[str], piped: str) -> Result:
    negated = words[0] == "not"
    words = words[1:] if negated else words
    joined = "2>&1" in words
    words = [word for word in words if word != "2>&1"]
    result = _call(words, piped)
    if joined:
        result = Result(result.status, result.err + result.out, "")
    if negated:
        result.status = 0 if result.status else 1
    return result


def _call(words: list[str], piped: str) -> Result:
    tool, args = words[0], words[1:]
    if tool == "filecheck":
        return _filecheck(args, piped)
    if tool == "cat":
        return Result(0, "".join(Path(name).read_text() for name in args) or piped, "")
    if tool == "plait-opt":
        from plait.tools.opt import main
    elif tool == "plait":
        from plait.tools.cli import main
    else:
        raise AssertionError(f"a RUN line cannot run '{tool}'")
    out, err = io.StringIO(), io.StringIO()
    stdin = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(piped.encode()))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                status = main(args)
            except SystemExit as stop:
                status = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdin = stdin
    return Result(status, out.getvalue(), err.getvalue())


def _filecheck(args: list[str], piped: str) -> Result:
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    options = parse_argv_options(["filecheck", *args])
    matcher = Matcher(options, FInput(options.match_filename, piped), Parser.from_opts(options))
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        status = matcher.run()
    return Result(status, "", out.getvalue())
