"""The cuda backend: real PyCUDA on a simulated driver, each case in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cuda_driver.build import HERE, environment, pycuda_folder

from plait.errors import PlaitError

pytestmark = pytest.mark.pycuda

CASES = re.findall(r"^def case_(\w+)", (HERE / "cases.py").read_text(), re.MULTILINE)


@cache
def surroundings() -> dict[str, str] | str:
    """The environment of a process with PyCUDA, or why there is none."""
    if not pycuda_folder().exists():
        return "PyCUDA is not built: make pycuda"
    if shutil.which("g++") is None:
        return "no C++ compiler"
    try:
        return environment()
    except PlaitError as error:
        return f"the simulated driver cannot be built: {error}"


def run(command: list[str], cache_folder: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with PyCUDA and an empty cache of compiled kernels."""
    found = surroundings()
    if isinstance(found, str):
        pytest.skip(found)
    environment = {**found, "PLAIT_CACHE_DIR": str(cache_folder), **changes}
    command = [sys.executable, *command]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=250
    )


def succeeds(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    assert "PyCUDA" not in done.stderr


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, tmp_path: Path) -> None:
    done = run([str(HERE / "cases.py"), name], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "PyCUDA WARNING" not in done.stderr or name == "lost_context", done.stderr


def test_without_graphs(tmp_path: Path) -> None:
    succeeds(run([str(HERE / "cases.py"), "graphs"], tmp_path, PLAIT_DRIVER_NO_GRAPHS="1"))


def test_the_example(tmp_path: Path) -> None:
    done = run([str(HERE.parent.parent / "examples" / "pycuda_roundtrip.py")], tmp_path)
    succeeds(done)
    found = re.fullmatch(r"1 kernel, largest error (\S+)\n", done.stdout)
    assert found and float(found[1]) < 1e-6


PROGRAM = """
import plait
plan = plait.schedule(plait.empty(4, name="x").exp())
try:
    plan.run([0, 0, 0, 0], backend="cuda")
except plait.errors.PlaitError as error:
    print(error)
"""


def test_no_driver(tmp_path: Path) -> None:
    done = run(["-c", PROGRAM], tmp_path, LD_LIBRARY_PATH="")
    assert "needs NVIDIA's driver (libcuda.so.1): install it" in done.stdout
    assert done.stdout.count("\n") == 1


def test_no_pycuda(tmp_path: Path) -> None:
    done = run(["-c", PROGRAM], tmp_path, PYTHONPATH="")
    assert "needs PyCUDA: pip install 'plait[cuda]'" in done.stdout


def test_several_processes_fill_one_cache(tmp_path: Path) -> None:
    found = surroundings()
    if isinstance(found, str):
        pytest.skip(found)
    environment = {**found, "PLAIT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(HERE / "cases.py"), "host_arrays"]
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    for process in started:
        _, errors = process.communicate(timeout=250)
        assert process.returncode == 0, errors
    assert len(os.listdir(tmp_path / "cuda")) == 1
