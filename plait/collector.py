"""Python's collector of cycles, while IR is built."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def paused() -> Generator[None]:
    """Does not look for garbage in cycles: every look walks over all of the IR, which is in cycles
    and in use, and that is a fifth of the time to plan a large program."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
