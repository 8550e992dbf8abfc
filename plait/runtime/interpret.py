"""The ``numpy`` backend: programs of level 1 to 3 run by xDSL's interpreter. Slow, and the meaning
that everything else is checked against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter
from xdsl.interpreters.func import FuncFunctions
from xdsl.ir import Attribute

from plait.dialects.lazy_numpy import Numbers
from plait.dtypes import Array, is_float, name_of_type, numpy_dtype
from plait.errors import PlaitError
from plait.runtime.interpret_lazy import FuseFunctions, LazyFunctions


def run_module(
    module: ModuleOp, arrays: Sequence[Array], *, name: str = "main", float64: bool = False
) -> list[Array]:
    """Runs the function ``name`` of a module of ``lazy``, ``fuse`` or ``nest`` operations.

    ``arrays`` have the shapes and dtypes of the function's arguments (bfloat16 as ``uint16`` bit
    patterns). With ``float64`` every float is computed in float64, whatever its type: arguments may
    then be float64 arrays, and so are the results. Raises :class:`PlaitError` for arguments that do
    not fit.
    """
    function = find_function(module, name)
    numbers = Numbers(float64)
    types = [argument.type for argument in function.args]
    check_arguments(types, arrays, name, any_float=float64)
    values = [
        numbers.taken(np.array(array), element_of(type))
        for array, type in zip(arrays, types, strict=True)
    ]
    interpreter = Interpreter(module)
    interpreter.register_implementations(FuncFunctions())
    interpreter.register_implementations(LazyFunctions(numbers))
    interpreter.register_implementations(FuseFunctions())
    _register_nest(interpreter, numbers, [*types, *function.function_type.outputs])
    with np.errstate(all="ignore"):
        results = interpreter.call_op(name, tuple(values))
    outputs = function.function_type.outputs
    given = [
        numbers.given(np.asarray(result), element_of(type))
        for result, type in zip(results, outputs, strict=True)
    ]
    return [
        array if element is None else array.view(numpy_dtype(element))
        for array, element in zip(given, stated_elements(function), strict=True)
    ]


def _register_nest(interpreter: Interpreter, numbers: Numbers, types: Sequence[Attribute]) -> None:
    if any(isinstance(type, MemRefType) for type in types):
        from plait.runtime.interpret_nest import register

        register(interpreter, numbers)


def stated_elements(function: FuncOp) -> list[Attribute | None]:
    """For each result the element type that its buffer does not tell, if there is one."""
    attrs: Any = function.res_attrs
    if attrs is None:
        return [None] * len(function.function_type.outputs)
    return [entry.data.get("plait.element") for entry in attrs.data]


def find_function(module: ModuleOp, name: str) -> FuncOp:
    """The function called ``name``; raises :class:`PlaitError` with the names there are."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    if name not in functions:
        raise PlaitError(
            f"no function @{name} in the module: found "
            f"{', '.join('@' + each for each in functions) or 'none'}"
        )
    return functions[name]


def element_of(type: Attribute) -> Attribute:
    """The element type of a tensor or buffer type."""
    if not isinstance(type, TensorType | MemRefType):
        raise PlaitError(f"expected a tensor or a buffer, found {type}")
    return cast(TensorType[Attribute], type).element_type


def check_arguments(
    types: Sequence[Attribute], arrays: Sequence[Any], name: str, *, any_float: bool = False
) -> None:
    """Raises :class:`PlaitError` unless the arrays have the shapes and dtypes of ``types``.

    Unsigned arrays fit signless integers of their width; with ``any_float``, any float array fits
    a float type.
    """
    if len(types) != len(arrays):
        raise PlaitError(f"@{name} takes {len(types)} arguments, found {len(arrays)}")
    for number, (type, array) in enumerate(zip(types, arrays, strict=True)):
        element = element_of(type)
        shape: tuple[int, ...] = type.get_shape()  # pyright: ignore
        array = np.asarray(array)
        if array.shape != shape:
            raise PlaitError(
                f"argument {number} of @{name}: expected shape {shape}, found {array.shape}"
            )
        want = numpy_dtype(element)
        same_width = array.dtype.kind in "iu" and want.kind in "iu" and array.dtype.isnative
        fits = array.dtype == want or (same_width and array.dtype.itemsize == want.itemsize)
        as_float = any_float and is_float(element) and array.dtype.kind == "f"
        if not fits and not as_float:
            given = "uint16 bit patterns" if isinstance(element, BFloat16Type) else str(want)
            raise PlaitError(
                f"argument {number} of @{name}: expected {given} for {name_of_type(element)}, "
                f"found {array.dtype}"
            )
