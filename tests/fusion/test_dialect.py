"""Every error of the ``fuse`` dialect, and what its parser says."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from plait.dialects.fuse import Fuse
from plait.dialects.lazy import Lazy


def check(body: str) -> None:
    context = Context()
    for dialect in (Builtin, Func, Lazy, Fuse):
        context.load_dialect(dialect)
    Parser(context, body).parse_module().verify()


def generic(inputs: str, arguments: str, body: str, signature: str) -> str:
    return f"""func.func @f(%x: tensor<4xf32>, %s: f32) {{
      %0 = "fuse.group"({inputs}) ({{
      ^bb0({arguments}):
        {body}
      }}) : {signature}
      func.return
    }}"""


INVALID = {
    "input 0 must be a tensor, found f32": generic(
        "%s",
        "%a: f32",
        '%c = lazy.iota axis = 0 : tensor<4xi32>\n"fuse.yield"(%c) : (tensor<4xi32>) -> ()',
        "(f32) -> tensor<4xi32>",
    ),
    "output 0 must be a tensor, found f32": generic(
        "%x",
        "%a: tensor<4xf32>",
        '"fuse.yield"(%a) : (tensor<4xf32>) -> ()',
        "(tensor<4xf32>) -> f32",
    ),
    "one argument per input: expected 1, found 0": generic(
        "%x",
        "",
        '%c = lazy.iota axis = 0 : tensor<4xi32>\n"fuse.yield"(%c) : (tensor<4xi32>) -> ()',
        "(tensor<4xf32>) -> tensor<4xi32>",
    ),
    "argument 0 of the body must have the type of input 0: expected tensor<4xf32>, "
    "found tensor<4xi32>": generic(
        "%x",
        "%a: tensor<4xi32>",
        '"fuse.yield"(%a) : (tensor<4xi32>) -> ()',
        "(tensor<4xf32>) -> tensor<4xi32>",
    ),
    "a group holds operations of 'lazy', found 'builtin.unrealized_conversion_cast'": generic(
        "%x",
        "%a: tensor<4xf32>",
        "%c = builtin.unrealized_conversion_cast %a : tensor<4xf32> to tensor<4xf32>\n"
        '"fuse.yield"(%c) : (tensor<4xf32>) -> ()',
        "(tensor<4xf32>) -> tensor<4xf32>",
    ),
    "one operand per result: expected 1, found 2": generic(
        "%x",
        "%a: tensor<4xf32>",
        '"fuse.yield"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> ()',
        "(tensor<4xf32>) -> tensor<4xf32>",
    ),
    "operand 0 of the yield must have the type of result 0: expected tensor<4xi32>, "
    "found tensor<4xf32>": generic(
        "%x",
        "%a: tensor<4xf32>",
        '"fuse.yield"(%a) : (tensor<4xf32>) -> ()',
        "(tensor<4xf32>) -> tensor<4xi32>",
    ),
    "a group without results computes nothing": """func.func @f(%x: tensor<4xf32>) {
      "fuse.group"(%x) ({
      ^bb0(%a: tensor<4xf32>):
        "fuse.yield"() : () -> ()
      }) : (tensor<4xf32>) -> ()
      func.return
    }""",
    "operand 0 of 'fuse.group' is defined after its use": """func.func @f() {
      %0 = fuse.group (%a = %1 : tensor<4xf32>) -> tensor<4xf32> {
        fuse.yield %a : tensor<4xf32>
      }
      %1 = fuse.group (%a = %0 : tensor<4xf32>) -> tensor<4xf32> {
        fuse.yield %a : tensor<4xf32>
      }
      func.return
    }""",
}


@pytest.mark.parametrize("message", INVALID)
def test_verifier(message: str) -> None:
    with pytest.raises(VerifyException) as error:
        check(INVALID[message])
    assert message in str(error.value)


def test_a_group_sees_only_its_arguments() -> None:
    with pytest.raises(ParseError, match="a group sees only its own arguments: %x"):
        check(
            """func.func @f(%x: tensor<4xf32>) {
              %0 = fuse.group () -> tensor<4xf32> {
                fuse.yield %x : tensor<4xf32>
              }
              func.return
            }"""
        )
