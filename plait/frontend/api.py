"""What every public function does with its arguments: names as in PyTorch, types as annotated.

Wrong arguments are refused where they are given, by the name they have there, and not where
something deep inside stumbles over them.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Self, SupportsFloat, SupportsIndex, TypeVar, cast

import numpy as np

from plait.errors import PlaitError

F = TypeVar("F", bound=Callable[..., Any])
Test = Callable[[Any], bool]

ALIASES = {
    "dim": ("axis", "axes", "order"),
    "dims": ("axes", "axis", "order"),
    "keepdims": ("keepdim",),
    "dim0": ("first",),
    "dim1": ("second",),
    "start_dim": ("start",),
    "end_dim": ("end",),
    "end": ("stop",),
    "steps": ("count",),
    "chunks": ("count",),
    "repeats": ("times",),
    "shifts": ("shift",),
    "fill_value": ("value",),
    "num_classes": ("classes",),
    "negative_slope": ("slope",),
    "min": ("low",),
    "max": ("high",),
    "src": ("source",),
    "split_size": ("sizes",),
    "input": ("x", "logits", "self"),
    "size": ("shape",),
}
"""PyTorch's names of parameters, and what they are here, where a function has no other use for
them."""


def public(function: F) -> F:
    """The function with its arguments checked against its annotations when it is called.

    Raises :class:`PlaitError` with one line that names the parameter. Sequences are checked element
    by element; what is annotated ``Any`` is left to the function.
    """
    tests: list[tuple[str, Test | None]] = []
    known: dict[str, Test | None] = {}
    rest: list[Test | None] = [None]
    renamed: dict[str, str] = {}
    variadic = ""

    def prepare() -> None:
        nonlocal variadic
        parameters = signature(function).parameters
        hints = typing.get_type_hints(function)
        for name, parameter in parameters.items():
            test = test_of(hints.get(name, _self_type() if name == "self" else Any))
            if parameter.kind is Parameter.VAR_POSITIONAL:
                rest[0], variadic = test, name
            elif parameter.kind is not Parameter.VAR_KEYWORD:
                known[name] = test
                if parameter.kind is not Parameter.KEYWORD_ONLY:
                    tests.append((name, test))
        for name, homes in ALIASES.items():
            home = next((each for each in homes if each in parameters), None)
            if home is not None and name not in parameters:
                renamed[name] = home

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if not known and not variadic:
            prepare()
        args = tuple(map(_plain, args))
        if named:
            named = {
                renamed.get(name, name) if renamed.get(name) not in named else name: _plain(value)
                for name, value in named.items()
            }
            if variadic in named and len(args) <= len(tests):
                value = named.pop(variadic)
                args = (*args, *(cast(Any, value) if isinstance(value, Sequence) else (value,)))
            for name, value in named.items():
                test = known.get(name)
                if test is not None and not test(value):
                    named[name] = _converted(function, name, test, value)
        count = len(tests)
        for position, value in enumerate(args):
            name, test = tests[position] if position < count else (variadic, rest[0])
            if test is not None and not test(value):
                made = _converted(function, name, test, value)
                args = (*args[:position], made, *args[position + 1 :])
        return function(*args, **named)

    return cast(F, call)


def make_public(namespace: Mapping[str, Any] | type) -> None:
    """Makes the functions that a module (its ``globals()``) or a class defines public ones."""
    is_class = isinstance(namespace, type)
    home = cast(Any, vars(namespace) if is_class else namespace)
    owner = namespace.__module__ if is_class else home["__name__"]
    done: dict[Any, Any] = {}
    for name, value in list(home.items()):
        ours = isinstance(value, types.FunctionType) and value.__module__ == owner
        if ours and (not name.startswith("_") or name in _OPERATORS):
            wrapped = done.setdefault(value, public(value))
            if isinstance(namespace, type):
                setattr(namespace, name, wrapped)
            else:
                home[name] = wrapped


_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift", "lt", "le", "gt", "ge"),
)
_OPERATORS = {f"__{prefix}{name}__" for prefix in ("", "r") for name in _BINARY}


def test_of(hint: Any) -> Test | None:
    """Whether a value is of an annotated type; None where everything is."""
    if hint is Any:
        return None
    simple = _SIMPLE.get(hint)
    if simple is not None:
        return simple
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        tests = [test_of(each) for each in inner]
        return None if None in tests else lambda value: any(cast(Test, t)(value) for t in tests)
    if hint is cast(Any, Self):
        return test_of(_self_type())
    if origin in (Sequence, list, tuple):
        several = inner if origin is tuple and Ellipsis not in inner else inner[:1]
        tests = [test_of(each) for each in several]
        return lambda value: _is_sequence(value, tests)
    if isinstance(hint, type):
        return lambda value: isinstance(value, hint)
    return callable if origin is Callable else None


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python, alone and in lists."""
    if isinstance(value, np.generic):
        return cast(Any, value).item()
    if isinstance(value, list | tuple):
        values = cast(Sequence[Any], value)
        if any(isinstance(each, np.generic) for each in values):
            return [_plain(each) for each in values]
    return cast(Any, value)


def _is_sequence(value: Any, tests: Sequence[Test | None]) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    values = cast(Sequence[Any], value)
    if len(tests) == 1:
        return all(tests[0] is None or tests[0](each) for each in values)
    return len(values) == len(tests) and all(
        test is None or test(each) for test, each in zip(tests, values, strict=True)
    )


def is_integer(value: object) -> bool:
    """Whether a value is an integer of Python, numpy (not an array of one) or PyTorch."""
    return isinstance(value, int) or (
        isinstance(value, SupportsIndex) and not isinstance(value, np.ndarray | type)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, SupportsFloat) and not isinstance(value, np.ndarray | type | _self_type())
    )


_SIMPLE: dict[Any, Test] = {
    int: is_integer,
    float: _is_number,
    bool: lambda value: isinstance(value, int) or type(value).__name__ == "bool_",
    type(None): lambda value: value is None,
}


def _self_type() -> type:
    return cast(type, sys.modules["plait.frontend.node"].__dict__["Node"])


_WORDS = {
    "Self": "a tensor",
    "Tensor": "a tensor",
    "Node": "a tensor",
    "Scalar": "a number",
    "Array": "an array",
    "Axes": "an axis, a sequence of axes or None",
    "Sizes": "a positive integer or one for each axis",
    "int": "an integer",
    "float": "a number",
    "bool": "True or False",
    "str": "a string",
    "None": "None",
    "Sequence[int]": "a sequence of integers",
    "Sequence[Self]": "a sequence of tensors",
    "Sequence[Tensor]": "a sequence of tensors",
}


def _converted(function: Callable[..., Any], name: str, test: Test, value: Any) -> Any:
    """An array where a tensor is expected as a tensor with data; anything else is refused."""
    if isinstance(value, np.ndarray) and name != "self":
        from plait.frontend.creation import tensor

        made = tensor(cast(Any, value))
        if test(made):
            return made
    words = str(function.__annotations__.get(name, "Self")).split(" | ")
    wanted = " or ".join(_WORDS.get(word, word) for word in words)
    where = function.__name__.strip("_")
    what = "the tensor" if name == "self" else f"'{name}'"
    raise PlaitError(f"{where}: {what} must be {wanted}, found {shown(value)}")


def shown(value: Any) -> str:
    """A value in a message: its text where that is short, else its type."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"
