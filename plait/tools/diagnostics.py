"""Diagnostics with a place in the source: ``file:line:col: error: message``, the line, a caret."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

_TENSOR = re.compile(r"tensor<[0-9a-z]+>")
_SPLAT = re.compile(r"dense<[^<>\[\]\"]*> : tensor<[0-9a-z]+>")


@dataclass(frozen=True)
class Place:
    """A position in a source; lines and columns count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Diagnostic:
    """One message about a source."""

    severity: str
    message: str
    place: Place | None = None

    def show(self, source: str, first_line: int, file: str) -> str:
        """As compilers print it; ``source`` starts at ``first_line`` of the file."""
        if self.place is None:
            return f"{file}: {self.severity}: {self.message}"
        place = self.place
        text = f"{place.file}:{place.line}:{place.column}: {self.severity}: {self.message}"
        lines = source.split("\n")
        number = place.line - first_line
        if 0 <= number < len(lines):
            text += f"\n{lines[number]}\n{' ' * (place.column - 1)}^"
        return text


class LocatingParser(Parser):
    """xDSL's parser, which also notes where every operation starts."""

    def __init__(self, ctx: Context, text: str, file: str, first_line: int):
        super().__init__(ctx, text, file)
        self.file = file
        self.text = text
        self.known: dict[str, Any] = {}
        self.starts = [0]
        self.first_line = first_line
        for position, character in enumerate(text):
            if character == "\n":
                self.starts.append(position + 1)

    def place(self, position: int) -> Place:
        from bisect import bisect_right

        line = bisect_right(self.starts, position)
        return Place(self.file, self.first_line + line - 1, position - self.starts[line - 1] + 1)

    def parse_optional_type(self) -> TypeAttribute | None:
        """Types are met again and again: each text is parsed once."""
        return self._remembered(_TENSOR, super().parse_optional_type)

    def parse_optional_attribute(self) -> Attribute | None:
        """So are constants of one number."""
        return self._remembered(_SPLAT, super().parse_optional_attribute)

    def _remembered(self, pattern: re.Pattern[str], parse: Callable[[], Any]) -> Any:
        match = pattern.match(self.text, self._current_token.span.start)
        if match is None:
            return parse()
        if match.group() not in self.known:
            self.known[match.group()] = parse()
        else:
            self._resume_from(match.end())
        return self.known[match.group()]

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        place = self.place(start)
        op.location = FileLineColLoc(
            StringAttr(place.file), IntAttr(place.line), IntAttr(place.column)
        )
        return op


def place_of(op: Operation | None) -> Place | None:
    """Where an operation, or the nearest one around it, stands in its source."""
    while op is not None:
        location = op.location
        if isinstance(location, FileLineColLoc):
            file, line, column = cast(tuple[Any, ...], location.parameters)
            return Place(file.data, line.data, column.data)
        op = op.parent_op()
    return None


def of_parse_error(error: ParseError, parser: LocatingParser) -> Diagnostic:
    """The diagnostic of a parse error."""
    message = " ".join(error.msg.split())
    return Diagnostic("error", message, parser.place(error.span.start))


def failing_operation(module: ModuleOp) -> Operation | None:
    """The innermost operation that does not verify by itself."""
    for op in reversed(list(module.walk())):
        try:
            op.verify(verify_nested_ops=False)
        except Exception:
            return op
    return None
