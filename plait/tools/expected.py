"""``--verify-diagnostics``: the diagnostics a source produces are those its comments expect.

A comment ``// expected-error {{text}}`` expects an error on its line whose message contains the
text; ``@+2``, ``@-1`` after the kind move the line, ``@below`` and ``@above`` are ``@+1`` and
``@-1``. ``expected-remark`` and ``expected-warning`` work alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from plait.tools.diagnostics import Diagnostic

_COMMENT = re.compile(
    r"expected-(error|warning|remark|note)\s*(@[+-]\d+|@below|@above|@unknown)?\s*\{\{(.*?)\}\}"
)


@dataclass(frozen=True)
class Expected:
    """An expected diagnostic; ``line`` None is one without a place."""

    severity: str
    text: str
    line: int | None
    stands_at: int


def expectations(source: str, first_line: int) -> list[Expected]:
    """The expectations in the comments of a source."""
    found: list[Expected] = []
    for number, text in enumerate(source.split("\n"), start=first_line):
        for severity, where, message in _COMMENT.findall(text):
            offset = {"": 0, "@below": 1, "@above": -1}.get(where)
            line = (
                None
                if where == "@unknown"
                else number + (int(where[1:]) if offset is None else offset)
            )
            found.append(Expected(severity, message, line, number))
    return found


def mismatches(
    expected: Sequence[Expected], produced: Sequence[Diagnostic], file: str
) -> list[str]:
    """What was expected and not produced, and the other way round; remarks need not be expected."""
    left = list(produced)
    complaints: list[str] = []
    for each in expected:
        match = next((d for d in left if _fits(each, d)), None)
        if match is None:
            complaints.append(
                f'{file}:{each.stands_at}: error: expected {each.severity} "{each.text}" was not '
                "produced"
            )
        else:
            left.remove(match)
    for diagnostic in left:
        if diagnostic.severity != "remark":
            line = diagnostic.place.line if diagnostic.place else "?"
            complaints.append(
                f"{file}:{line}: error: unexpected {diagnostic.severity}: {diagnostic.message}"
            )
    return complaints


def _fits(expected: Expected, produced: Diagnostic) -> bool:
    line = produced.place.line if produced.place else None
    return (
        expected.severity == produced.severity
        and expected.text in produced.message
        and expected.line == line
    )
