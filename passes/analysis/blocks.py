"""The straight-line functions that planning works on."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.utils.exceptions import DiagnosticException


def only_block(function: FuncOp) -> Block:
    """The block of a function; raises a diagnostic if it has control flow."""
    blocks = list(function.body.blocks)
    if len(blocks) != 1:
        raise DiagnosticException(
            f"planning takes functions of one block: '@{function.sym_name.data}' has "
            f"{len(blocks)}; unroll or outline its control flow first"
        )
    return blocks[0]
