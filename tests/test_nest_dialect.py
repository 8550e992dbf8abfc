"""The syntax of the nest dialect loses nothing, and its verifiers say what is wrong."""

from __future__ import annotations

import time

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from plait.dialects.nest import Nest


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Arith, Builtin, Func, Nest):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def test_discardable_attributes_stay() -> None:
    module = parse("""
    nest.kernel @k(%x: memref<4xf32>) axes [%i = 4] attributes {a = 1 : i32} {
      %v = nest.load %x[(d0) -> (d0)](%i) {b} : memref<4xf32>
      nest.store %v, %x[(d0) -> (d0)](%i) where (d0) : (d0 - 1 >= 0) {c} : memref<4xf32>
      nest.reduce [] over [%j = 4] { nest.yield {d} } attributes {e}
      nest.sequential over [%j = 4] {} attributes {f}
      %t = nest.test (d0) : (d0 >= 0) (%i) {g}
      %p = nest.index (d0) -> (d0) (%i) {h}
    }
    func.func @main(%x: memref<4xf32>) {
      nest.launch @k(%x) {l} : memref<4xf32>
      func.return
    }""")
    module.verify()
    again = parse(str(module))
    assert again.is_structurally_equivalent(module)
    attributed = [op.name for op in again.walk() if op.attributes]
    assert len(attributed) == 9, attributed


def reduce(kind: str, value: str, type: str, extent: int = 4) -> str:
    second = f", %a : {type}, {type}" if kind.startswith("arg") else f" : {type}"
    results = "%r, %s" if kind.startswith("arg") else "%r"
    types = f"{type}, {type}" if kind.startswith("arg") else type
    return f"""nest.kernel @k(%x: memref<4x{type}>) axes [] {{
      {results} = nest.reduce [{kind}] over [%j = {extent}] {{
        %a = nest.load %x[(d0) -> (d0)](%j) : memref<4x{type}>
        nest.yield {value}{second}
      }} : {types}
    }}"""


LAUNCH = """
    nest.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) axes [%i = 4] {{}}
    func.func @main(%x: memref<4xf32>, %y: memref<5xf32>) {{
      {} func.return
    }}"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (reduce("mean", "%a", "f32"), "unknown kind 'mean': expected one of sum, prod, max"),
        (reduce("any", "%a", "f32"), "'any' combines i1, found f32"),
        (reduce("sum", "%a", "f16"), "found f16: extend narrow floats first"),
        (reduce("argmax", "%a", "f32"), "'argmax' takes an index or integer position, found f32"),
        (reduce("argmin", "%a", "i32", 0), "'argmin' over an empty axis has no result"),
        (
            "nest.kernel @k(%x: memref<4xf32>) axes [%i = 4] { nest.yield %i : index }",
            "a kernel yields nothing, found 1 values",
        ),
        (LAUNCH.format("nest.launch @q(%x) : memref<4xf32>"), "no kernel @q in the module"),
        (
            LAUNCH.format("nest.launch @k(%x, %y) : memref<4xf32>, memref<5xf32>"),
            r"the launch of @k passes \(memref<4xf32>, memref<5xf32>\), expected "
            r"\(memref<4xf32>, memref<4xf32>\)",
        ),
        (
            LAUNCH.format(
                "nest.launch @k(%x, %x) : memref<4xf32>, memref<4xf32>"
                " nest.launch @k(%x) : memref<4xf32>"
            ),
            r"the launch of @k passes \(memref<4xf32>\)",
        ),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        parse(text).verify()


def test_verifying_many_launches_is_not_quadratic() -> None:
    def seconds(count: int) -> float:
        kernels = "".join(
            f"nest.kernel @k{n}(%x: memref<4xf32>) axes [%i = 4] {{}}\n" for n in range(count)
        )
        launches = "".join(f"nest.launch @k{n}(%x) : memref<4xf32>\n" for n in range(count))
        module = parse(f"{kernels}func.func @m(%x: memref<4xf32>) {{ {launches} func.return }}")
        times: list[float] = []
        for _ in range(3):
            start = time.process_time()
            module.verify()
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(2000) < 9 * seconds(500)
