"""Operators of PyTorch's own test database that plait computes alone, by ``sweep.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("expecttest", reason="PyTorch's test database needs it")

from sweep import full_name, op_db, sweep

CLAIMED = (Path(__file__).parent / "claimed.txt").read_text().split()
OPERATORS = {full_name(op): op for op in op_db}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMED)
def test_claimed_operators_run_whole(name: str) -> None:
    if name not in OPERATORS:
        pytest.skip("not in this PyTorch")
    outcome = sweep(OPERATORS[name], 2)
    assert outcome.verdict == "whole", (outcome.wrong, outcome.errors, outcome.fallbacks)


def test_the_sweep_sees_a_wrong_number(monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.frontend.torch import table

    wrong = table.Rule(lambda x, y, alpha=1: x + y + 1, False)
    monkeypatch.setitem(table.TABLE, table.overload("add.Tensor"), wrong)
    assert sweep(OPERATORS["add"], 2).verdict == "wrong"
