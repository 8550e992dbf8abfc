"""Writes files whole or not at all, and remarks as YAML or JSON."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from plait.errors import PlaitError
from plait.passes.remarks import Remark


def write_atomically(path: Path, text: str) -> None:
    """Writes a file through a temporary one beside it; an error leaves what was there."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w") as stream:
                stream.write(text)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PlaitError(f"{path}: cannot write: {reason}") from None


def write_remarks(remarks: Sequence[Remark], path: Path) -> None:
    """Remarks as a JSON list, or as YAML documents as LLVM writes them, by the file's suffix."""
    if path.suffix == ".json":
        records = [
            {"kind": str(r.kind), "id": r.id, "message": r.message, "facts": dict(r.facts)}
            for r in remarks
        ]
        write_atomically(path, json.dumps(records, indent=1) + "\n")
        return
    if path.suffix not in (".yaml", ".yml"):
        raise PlaitError(f"{path}: expected a file that ends in .json or .yaml")
    documents: list[str] = []
    for remark in remarks:
        lines = [f"--- !{remark.kind.capitalize()}"]
        lines += [f"id: {json.dumps(remark.id)}", f"message: {json.dumps(remark.message)}"]
        lines.append("facts:" if remark.facts else "facts: {}")
        lines += [f"  {key}: {json.dumps(value)}" for key, value in remark.facts.items()]
        documents.append("\n".join([*lines, "..."]))
    write_atomically(path, "\n".join(documents) + "\n")
