"""Programs named on the command line: ``FILE.mlir`` or ``FILE.py[:function]``."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from plait import collector
from plait.dtypes import Array, f32_to_bf16, is_bool, is_float, numpy_dtype
from plait.errors import PlaitError
from plait.tools.diagnostics import (
    Diagnostic,
    Source,
    SourceError,
    failing_operation,
    place_of,
)


@dataclass
class Program:
    """A tensor program and the data it brings along."""

    name: str
    module: ModuleOp
    data: list[Array | None]
    """For each argument its data, or None."""

    def arguments(self, seed: int) -> list[Array]:
        """An array for each argument: its data, or random numbers that the seed decides."""
        from plait.runtime.interpret import find_function

        random = np.random.default_rng(seed)
        types = [argument.type for argument in find_function(self.module, "main").args]
        data = self.data or [None] * len(types)
        return [
            random_array(type, random) if array is None else array
            for type, array in zip(types, data, strict=True)
        ]


def random_array(type: Attribute, random: np.random.Generator) -> Array:
    """Random elements of a tensor type: positive and near 1 so that logs, roots and variances are
    defined, small counts for integers."""
    if not isinstance(type, TensorType):
        raise PlaitError(f"expected a tensor argument, found {type}")
    tensor = cast(TensorType[Attribute], type)
    element, shape = tensor.element_type, tensor.get_shape()
    if is_float(element):
        values: Any = random.uniform(0.1, 1.1, shape).astype(np.float32)
        if isinstance(element, BFloat16Type):
            return f32_to_bf16(values).reshape(shape)
        return np.asarray(values).astype(numpy_dtype(element))
    high = 2 if is_bool(element) else 4
    return random.integers(0, high, shape).astype(numpy_dtype(element))


def load_program(text: str) -> Program:
    """Loads a program; every mistake in it is one line that says where.

    Of a file of IR it is the function @main, or the only one; others are left out.
    """
    path, _, function = text.partition(":")
    if path.endswith(".py"):
        return _from_python(path, function or "main")
    if function:
        raise PlaitError(f"{text}: only a .py file can be followed by :function")
    if not path.endswith(".mlir") and path != "-":
        raise PlaitError(f"{path}: expected a file that ends in .mlir or .py")
    return _from_ir(path)


def _from_ir(path: str) -> Program:
    from plait.tools.opt import PlaitOptMain, read_text

    text = read_text(path)
    context: Context = PlaitOptMain(args=[]).ctx
    module: ModuleOp | None = None
    try:
        with collector.paused():
            module = Source(text, path).parse(context)
            module.verify()
    except SourceError as error:
        raise PlaitError(error.diagnostic.show(text, 1, path)) from None
    except VerifyException as error:
        culprit = failing_operation(module) if module is not None else None
        message = f"{culprit.name}: {error}" if culprit is not None else str(error)
        shown = Diagnostic("error", message.split("\n")[0], place_of(culprit))
        raise PlaitError(shown.show(text, 1, path)) from None
    _select(module, path)
    return Program(path, module, [])


def _select(module: ModuleOp, path: str) -> None:
    """Leaves one function in a module, called @main: @main itself, or the only one there is."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    names = [op.sym_name.data for op in functions]
    if not functions or (len(functions) > 1 and "main" not in names):
        found = ", ".join(f"@{name}" for name in names) or "none"
        raise PlaitError(f"{path}: expected a function @main, or a single one, found {found}")
    chosen = functions[names.index("main")] if "main" in names else functions[0]
    calls = [op for op in chosen.walk() if isinstance(op, CallOp)]
    if calls:
        shown = Diagnostic("error", "expected a function without calls", place_of(calls[0]))
        raise PlaitError(shown.show("", 1, path))
    for function in functions:
        if function is not chosen:
            function.detach()
            function.erase()
    chosen.sym_name = StringAttr("main")


def returned(text: str) -> list[Any]:
    """What a function in a file, ``FILE.py[:function]`` (default: ``main``), returns, as a list."""
    from plait.tools.loading import import_file, of_user_code

    path, _, function = text.partition(":")
    function = function or "main"
    module = import_file(path)
    make = getattr(module, function, None)
    if not callable(make):
        raise PlaitError(f"{path}: no function '{function}': expected one that returns tensors")
    if any(p.default is p.empty and p.kind <= 1 for p in signature(make).parameters.values()):
        raise PlaitError(f"{path}:{function}: expected a function without arguments")
    try:
        made: Any = make()
    except Exception as error:
        raise PlaitError(of_user_code(error, path)) from None
    return list(made) if isinstance(made, list | tuple) else [made]  # pyright: ignore


def _from_python(path: str, function: str) -> Program:
    from plait.frontend.tensor import Tensor
    from plait.frontend.trace import build_module

    outputs = returned(f"{path}:{function}")
    if not outputs or any(not isinstance(output, Tensor) for output in outputs):
        found = outputs[0] if len(outputs) == 1 else outputs
        raise PlaitError(f"{path}:{function}: expected tensors as its result, found {found!r}")
    program, inputs = build_module(outputs)
    program.verify()
    return Program(f"{path}:{function}", program, [tensor.array for tensor in inputs])
