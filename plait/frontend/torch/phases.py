"""The order of a graph cut into plans: even phases are plait's, odd ones PyTorch's.

A node's phase is the first that comes after what it needs, so phases follow each other and a plan
never waits for itself.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

FIRST = -1
"""The phase of arguments."""


def is_item(node: Any) -> bool:
    """Whether a node takes one of several results."""
    return node.target is operator.getitem


def is_view(node: Any) -> bool:
    """Whether an operator's one result is a view of its first argument."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or len(schema.returns) != 1 or not node.all_input_nodes:
        return False
    alias = schema.returns[0].alias_info
    single = str(schema.returns[0].type) == "Tensor"
    return single and alias is not None and not alias.is_write


def has_effect(node: Any) -> bool:
    """Whether an operator must run in its place: it draws random numbers."""
    tags = [str(tag) for tag in getattr(node.target, "tags", ())]
    return any("nondeterministic_seeded" in tag for tag in tags)


def writes(node: Any) -> bool:
    """Whether an operator changes what it is given."""
    schema = getattr(node.target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


class Order:
    """Assigns phases, and keeps operators with effects in order."""

    def __init__(self) -> None:
        self.effect = FIRST
        """The phase of the last operator with an effect."""

    def computed(self, sources: Sequence[int]) -> int:
        """The phase of an operator that plait computes."""
        number = max((0, *sources))
        return number + number % 2

    def called(self, node: Any, sources: Sequence[int]) -> int:
        """The phase of an operator that PyTorch runs."""
        number = max((FIRST, *sources))
        if has_effect(node):
            number = max(number, self.effect)
        number += 1 - number % 2
        if has_effect(node):
            self.effect = number
        return number
