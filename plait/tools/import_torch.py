"""``plait import``: a PyTorch model as a tensor program."""

from __future__ import annotations

import argparse
from typing import Any, cast

from plait.errors import PlaitError
from plait.tools.output import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "model",
        metavar="FILE.py[:function]",
        help="a function (default: main) that returns a model and the tensors it is called with",
    )
    add("-o", "--output", metavar="PROG.mlir", default="-", help="where to (default: stdout)")


def run(args: argparse.Namespace) -> int:
    from plait.frontend.torch.export import to_mlir

    model, inputs = load_model(args.model)
    write_text(args.output, to_mlir(model, inputs))
    return 0


def load_model(text: str) -> tuple[Any, tuple[Any, ...]]:
    """What a function in a file makes: a model, or a function of tensors, and its arguments."""
    from plait.tools.loading import import_file, of_user_code

    path, _, name = text.partition(":")
    name = name or "main"
    module = import_file(path)
    make = getattr(module, name, None)
    if not callable(make):
        raise PlaitError(f"{path}: no function '{name}': expected one that returns a model")
    try:
        made: Any = make()
    except Exception as error:
        raise PlaitError(of_user_code(error, path)) from None
    pair = cast(tuple[Any, ...], made) if isinstance(made, tuple) else (made,)
    if len(pair) != 2 or not callable(pair[0]):
        raise PlaitError(f"{text}: expected a model and its inputs as the result, found {made!r}")
    model, inputs = pair
    return model, tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)  # pyright: ignore
