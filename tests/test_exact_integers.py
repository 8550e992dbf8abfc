"""Integers of 64 bits that no float holds, in every place a program may state them."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from test_edge_cases import module_of

from plait.runtime import driver
from plait.runtime.interpret import run_module

VALUES = [
    ("ui64", 2**64 - 1),
    ("ui64", 2**63 + 5),
    ("i64", 2**53 + 1),
    ("i64", 2**63 - 1),
    ("i64", -(2**63) + 1),
]
FORMS = {
    "splat": "%y = lazy.constant dense<{v}> : tensor<3x{t}>",
    "listed": "%y = lazy.constant dense<[{v}, 1, {v}]> : tensor<3x{t}>",
    "padded": "%y = lazy.pad %x low = [1] high = [1] interior = [0] value = {v} : {t} "
    ": tensor<1x{t}> -> tensor<3x{t}>",
    "computed": "%c = lazy.constant dense<{v}> : tensor<1x{t}>\n"
    "%b = lazy.bitcast %c : tensor<1x{t}> -> tensor<1x{o}>\n"
    "%d = lazy.cast %b : tensor<1x{o}> -> tensor<1x{t}>\n"
    "%y = lazy.concat %d, %x, %d axis = 0 : tensor<1x{t}>, tensor<1x{t}>, tensor<1x{t}> "
    "-> tensor<3x{t}>",
}


@pytest.mark.parametrize(("element", "value"), VALUES)
@pytest.mark.parametrize("form", FORMS)
def test_every_level(form: str, element: str, value: int) -> None:
    other = "i64" if element == "ui64" else "ui64"
    text = f"""
    func.func @main(%x: tensor<1x{element}>) -> tensor<3x{element}> {{
      {FORMS[form].format(v=value, t=element, o=other)}
      return %y : tensor<3x{element}>
    }}"""
    dtype = np.dtype("uint64" if element == "ui64" else "int64")
    x = np.array([1], dtype)
    want = np.array([value] * 3 if form == "splat" else [value, 1, value], dtype)
    module = module_of(text)
    results = [run_module(module, [x], float64=wide)[0] for wide in (False, True)]
    for pipeline in ("none", "default"):
        plan = driver.planned(module_of(text), pipeline)
        results.append(run_module(plan, [x])[0])
        results.append(run_module(driver.lowered(plan, "nest"), [x])[0])
        results.append(driver.compiled(plan, "cpu").run(x)[0])
        if shutil.which("g++"):
            results.append(driver.compiled(plan, "cuda-sim").run(x)[0])
    for have in results:
        assert have.dtype == dtype
        np.testing.assert_array_equal(have, want)
