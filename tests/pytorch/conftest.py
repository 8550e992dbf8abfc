"""Tests of the PyTorch front end; without PyTorch none of them is collected."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore_glob = [] if find_spec("torch") else ["*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.torch)
