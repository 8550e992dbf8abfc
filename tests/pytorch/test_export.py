"""Models as MLIR text, and what is said about how much of them plait computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from plait.errors import PlaitError
from plait.frontend.torch import coverage, program, to_mlir
from plait.runtime import driver
from plait.tools.cli import main

MODEL = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1)), torch.ones(2, 8)

def sorts():
    return torch.sort, torch.ones(3)

def nothing():
    return 3
"""


def test_a_program_takes_parameters_and_inputs() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval()
    x = torch.randn(2, 2, 5, 5)
    made, names = program(model, (x,))
    assert names[-1] == "input" and len(names) == 8
    state = {"p_" + n.replace(".", "_"): t for n, t in model.named_parameters()}
    state |= {"b_" + n.replace(".", "_"): t for n, t in model.named_buffers()}
    arrays = [x.numpy() if n == "input" else state[n].detach().numpy() for n in names]
    [result] = driver.compiled(driver.planned(made, "default"), "cpu").run(*arrays)
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_operators_without_a_meaning_are_named() -> None:
    with pytest.raises(PlaitError, match=r"aten\.sort"):
        to_mlir(lambda x: torch.sort(x)[0], (torch.ones(3),))


def test_coverage_counts_operators_and_gives_reasons() -> None:
    found = coverage(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), (torch.ones(2, 4),), True)
    assert found.graphs == 2 and found.plans >= 2 and found.kernels >= 2
    assert found.called.total() == 1 and "bernoulli" in str(found)
    assert 0.5 < found.fraction < 1


def test_the_command_writes_a_program_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "model.py", tmp_path / "model.mlir"
    file.write_text(MODEL)
    assert main(["import", f"{file}:make", "-o", str(out)]) == 0
    assert main(["run", str(out), "--check"]) == 0
    assert "check passed" in capsys.readouterr().out
    for name, message in (
        ("nothing", "expected a model and its inputs"),
        ("absent", "no function 'absent'"),
        ("sorts", "aten.sort"),
    ):
        assert main(["import", f"{file}:{name}"]) != 0
        assert message in capsys.readouterr().err
