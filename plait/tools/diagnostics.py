"""Diagnostics with a place in the source: ``file:line:col: error: message``, the line, a caret."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

_TENSOR = re.compile(r"tensor<[0-9a-z]+>")
_STRINGS = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"|(?P<broken>")')
"""Comments and strings; a quotation mark that opens neither is broken. xDSL's own expression for
strings takes time that doubles with every character of one that is not closed."""
_BROKEN = r"expected a string that is closed on its line, with no escapes but \n \t \" \\ \xx"
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


class SourceError(Exception):
    """Text that does not parse."""

    def __init__(self, diagnostic: Diagnostic):
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Source:
    """A text that starts at ``first_line`` of a file."""

    def __init__(self, text: str, file: str, first_line: int = 1):
        self.text, self.file, self.first_line = text, file, first_line
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, position: int) -> Place:
        line = bisect_right(self.starts, position)
        return Place(self.file, self.first_line + line - 1, position - self.starts[line - 1] + 1)

    def parse(self, ctx: Context, implicit_module: bool = True) -> ModuleOp:
        """The module that the text is, an empty one for no text; raises :class:`SourceError` if it
        is none."""
        broken = next((m for m in _STRINGS.finditer(self.text) if m.group("broken")), None)
        if broken is not None:
            raise SourceError(Diagnostic("error", _BROKEN, self.place(broken.start())))
        if not re.sub(r"//.*", "", self.text).strip():
            return ModuleOp([])
        try:
            return LocatingParser(ctx, self).parse_module(implicit_module)
        except ParseError as error:
            message = " ".join(error.msg.split())
            raise SourceError(Diagnostic("error", message, self.place(error.span.start))) from error


class LocatingParser(Parser):
    """xDSL's parser, which also notes where every operation starts."""

    def __init__(self, ctx: Context, source: Source):
        super().__init__(ctx, source.text, source.file)
        self.source = source
        self.text = source.text
        self.known: dict[str, Any] = {}

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
        place = self.source.place(start)
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


def failing_operation(module: ModuleOp) -> Operation | None:
    """The innermost operation that does not verify by itself."""
    for op in reversed(list(module.walk())):
        try:
            op.verify(verify_nested_ops=False)
        except Exception:
            return op
    return None
