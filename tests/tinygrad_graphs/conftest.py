"""Tests of the tinygrad front end; without tinygrad none of them is collected."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("tinygrad") else ["*.py"]
os.environ.setdefault("DEV", "CPU" if shutil.which("clang") else "PYTHON")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.tinygrad)
