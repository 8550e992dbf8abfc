"""Compiled code kept on disk: entries by content hash, written whole, rebuilt when damaged."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_DIGEST = 32


def cache_folder(kind: str) -> Path:
    """Where compiled code of a kind is kept: in ``PLAIT_CACHE_DIR``, else the user's cache."""
    base = os.environ.get("PLAIT_CACHE_DIR")
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        base = str(Path(home) / "plait")
    return Path(base) / kind


def kept(kind: str, key: bytes, build: Callable[[], bytes]) -> bytes:
    """The entry of a key, built if there is none.

    An entry starts with the digest of its content; one that does not match is built again. Any
    number of processes may ask at once. A folder that cannot be written costs a build each time.
    """
    path = cache_folder(kind) / hashlib.sha256(key).hexdigest()
    try:
        stored = path.read_bytes()
    except OSError:
        stored = b""
    content = stored[_DIGEST:]
    if stored and hashlib.sha256(content).digest() == stored[:_DIGEST]:
        return content
    content = build()
    with suppress(OSError):
        write_whole(path, hashlib.sha256(content).digest() + content)
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
