"""``--check-semantics``: no pass may change what a program computes.

Every function of levels 1 to 3 runs at the numpy level, in float64, on random data before and after
each pass; the first pass that changes a result is named with the result.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import DiagnosticException

from plait.dtypes import Array, is_float
from plait.runtime.interpret import element_of, run_module

TOLERANCE = 1e-6
"""Largest change that passes, over the largest element: sums may be taken in another order."""
_LEVELS = ("builtin.", "func.", "lazy.", "fuse.", "nest.", "arith.", "math.", "memref.")


class Semantics:
    """What the functions of a module computed before the next pass."""

    def __init__(self) -> None:
        self.arguments: dict[str, list[Array]] = {}
        self.results: dict[str, list[Array]] = {}

    def check(self, module: ModuleOp, name: str | None) -> None:
        """Runs every function; raises a diagnostic if the pass ``name`` changed a result."""
        if any(not op.name.startswith(_LEVELS) for op in module.walk()):
            self.results.clear()  # level 4 has no meaning at the numpy level
            return
        for function in module.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                self.check_function(module, function, name)

    def check_function(self, module: ModuleOp, function: FuncOp, name: str | None) -> None:
        symbol = function.sym_name.data
        types = list(function.function_type.inputs)
        if not all(isinstance(type, TensorType | MemRefType) for type in types):
            return
        if symbol not in self.arguments:
            random = np.random.default_rng(len(self.arguments))
            self.arguments[symbol] = [random_array(type, random) for type in types]
        results = run_module(module, self.arguments[symbol], name=symbol, float64=True)
        before = self.results.get(symbol)
        self.results[symbol] = results
        if before is None or name is None:
            return
        if len(before) != len(results):
            raise DiagnosticException(
                f"pass '{name}' changed the number of results of @{symbol} from {len(before)} to "
                f"{len(results)}"
            )
        for number, (old, new) in enumerate(zip(before, results, strict=True)):
            complaint = difference(old, new)
            if complaint is not None:
                raise DiagnosticException(
                    f"pass '{name}' changed result {number} of @{symbol}: {complaint}"
                )


def random_array(type: Attribute, random: np.random.Generator) -> Array:
    """Random elements of a tensor or buffer type."""
    from plait.tools.program import random_array as of_tensor

    element = element_of(type)
    shape = cast(TensorType[Attribute], type).get_shape()
    array = of_tensor(TensorType(element, shape), random)
    exact = is_float(element) and array.dtype.kind == "f"
    return array.astype(np.float64) if exact else array


def difference(old: Array, new: Array) -> str | None:
    """How two results differ, in words; None if they are equal up to the order of sums."""
    if old.shape != new.shape:
        return f"its shape was {old.shape}, is {new.shape}"
    if old.dtype.kind != "f":
        count = int((old != new.astype(old.dtype)).sum())
        return f"{count} of {old.size} elements differ" if count else None
    finite = np.isfinite(old)
    if not np.array_equal(finite, np.isfinite(new)):
        return "NaN or infinity appeared or went away"
    if not finite.any():
        return None
    scale = max(float(np.abs(old[finite]).max()), 1e-30)
    worst = float(np.abs(old[finite] - new[finite]).max()) / scale
    return f"relative error {worst:.3g}" if worst > TOLERANCE else None
