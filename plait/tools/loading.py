"""``--load FILE.py``: passes, dialects and targets from a file, without packaging it."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from plait.errors import PlaitError


def load(paths: Sequence[str]) -> list[Universe]:
    """What each file defines; raises :class:`PlaitError` for one that cannot be loaded."""
    return [_universe(path) for path in paths]


def import_file(path: str) -> Any:
    """The module of a Python file; an error in it is one line that says where."""
    file = Path(path)
    if not file.is_file():
        raise PlaitError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"plait_loaded_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PlaitError(f"{path}: expected a Python file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise PlaitError(f"{path}:{error.lineno}: error: {error.msg}") from None
    except Exception as error:
        raise PlaitError(of_user_code(error, path)) from None
    return module


def of_user_code(error: Exception, path: str) -> str:
    """An error in a user's file as one line that says where in the file."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(Path(path))]
    place = f"{path}:{frames[-1].lineno}" if frames else path
    if isinstance(error, PlaitError):
        return f"{place}: error: {error}"
    text = str(error).split("\n")[0]
    return f"{place}: error: {type(error).__name__}: {text}"


def _universe(path: str) -> Universe:
    module = import_file(path)
    values: list[Any] = [getattr(module, name) for name in dir(module)]
    found = [value for value in values if isinstance(value, Universe)]
    if found:
        return found[0]

    def own(base: type[Any]) -> list[Any]:
        return [
            value
            for value in values
            if isinstance(value, type)
            and issubclass(value, base)
            and value.__module__ == module.__name__
        ]

    passes = own(ModulePass)
    dialects = [value for value in values if isinstance(value, Dialect)]
    targets = own(Target)
    if not (passes or dialects or targets):
        raise PlaitError(f"{path}: defines no pass, dialect, target or Universe")
    return Universe(
        all_passes={cls.name: (lambda cls=cls: cls) for cls in passes},
        all_dialects={d.name: (lambda d=d: d) for d in dialects},
        all_targets={cls.name: (lambda cls=cls: cls) for cls in targets},
    )
