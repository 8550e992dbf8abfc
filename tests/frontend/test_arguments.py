"""Wrong arguments at every public function and method: one line of a documented type, no more."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait
from plait import PlaitError, Tensor, optim
from plait.nn import functional as F

DOCUMENTED = (PlaitError, TypeError, ValueError)
"""TypeErrors are those of Python itself: missing and unknown arguments."""

TENSORS: list[Tensor] = [
    plait.empty(4, 6, name="x"),
    plait.empty(),
    plait.empty(0, 3),
    plait.empty(2, 3, 5, 7),
    plait.empty(3, dtype="int64"),
    plait.empty(2, dtype="bool"),
]
WRONG: list[Any] = [
    *TENSORS,
    *(None, True, 0, 1, -1, 7, 2**70, 0.5, math.nan, math.inf, -math.inf),
    *("", "axis", b"x", [], (), [0], [-1], [0, 0], [1, 2], [7], [None], ["a"], [[1], [2]], {}),
    *(object(), int, len, slice(None), ..., {"a": 1}, {1, 2}, 1j, range(3), np.float32(2)),
    *(np.zeros((4, 6), np.float32), np.zeros(3), np.array("text"), np.int64(1)),
    *([TENSORS[0]], [TENSORS[0], TENSORS[3]]),
]


def functions() -> dict[str, Callable[..., Any]]:
    """Every public function by its name: of the package, its modules, and methods of tensors."""
    found: dict[str, Callable[..., Any]] = {}
    for module in (plait, F, optim):
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name)
            if inspect.isfunction(value) and not name.startswith("_"):
                found[f"{module.__name__}.{name}"] = value
    for name in dir(Tensor):
        value = inspect.getattr_static(Tensor, name)
        operator = name.startswith("__") and name not in dir(object)
        if inspect.isfunction(value) and (operator or not name.startswith("_")):
            found[f"Tensor.{name}"] = value
    return found


FUNCTIONS = functions()
RUNS = {"numpy", "item", "tolist", "__array__"}
"""What computes, and is tested elsewhere."""


def attempt(function: Callable[..., Any], *args: Any, **named: Any) -> None:
    """Calls a function; an error must be of a documented type and one line."""
    try:
        function(*args, **named)
    except DOCUMENTED as error:
        text = str(error)
        assert text and "\n" not in text, (type(error), text)
        assert "NoneType" not in text and "subscriptable" not in text, text
        assert "object is not" not in text and "not supported between" not in text, text


def calls(function: Callable[..., Any]) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments for a function: every wrong value at every place, the others as good as may be."""
    parameters = list(inspect.signature(function).parameters.values())
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    made: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((), {})]
    needed = [fitting(p) for p in plain if p.default is p.empty]
    for position in range(int(function.__name__.startswith("__")), len(plain)):
        for value in WRONG:
            if position < len(needed):
                made.append(((*needed[:position], value, *needed[position + 1 :]), {}))
            else:
                made.append((tuple(needed), {plain[position].name: value}))
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY:
            made += [((*needed,), {parameter.name: value}) for value in WRONG]
        if parameter.kind is parameter.VAR_POSITIONAL:
            made += [((*needed, value), {}) for value in WRONG]
            made += [((*needed, value, 2), {}) for value in WRONG]
    return made


def fitting(parameter: inspect.Parameter) -> Any:
    """A value of the annotated type."""
    text = str(parameter.annotation)
    if parameter.name == "self" or "Tensor" in text or "Self" in text or "Node" in text:
        return [TENSORS[0]] if text.startswith("Sequence") else TENSORS[0]
    return [1, 1] if text.startswith("Sequence") else "ij->i" if text == "str" else 1


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.split(".")[-1] not in RUNS])
def test_wrong_arguments(name: str) -> None:
    for args, named in calls(FUNCTIONS[name]):
        try:
            attempt(FUNCTIONS[name], *args, **named)
        except BaseException as error:
            shown = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in named.items())])
            raise AssertionError(f"{name}({shown}): {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("key", WRONG, ids=lambda key: type(key).__name__)
def test_wrong_indices(key: Any) -> None:
    for x in TENSORS:
        for whole in (key, (key, key), slice(key, None), slice(None, key), slice(None, None, key)):
            attempt(x.__getitem__, whole)
