"""The baseline plan: which values are stored, by the rule of :mod:`plait.passes.fusion.stores`."""

from __future__ import annotations

from plait.passes.fusion.epilogues import store_reduces
from plait.passes.fusion.program import Program
from plait.passes.fusion.sharing import store_shared
from plait.passes.fusion.stores import Stores, store_required


def choose_stores(program: Program) -> Stores:
    """Applies the rule, from what must be stored to what is cheaper stored."""
    stores = Stores()
    store_required(program, stores)
    store_reduces(program, stores)
    store_shared(program, stores)
    return stores
