"""Remarks as YAML or JSON files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from plait.errors import PlaitError
from plait.passes.remarks import Remark
from plait.tools.output import write_text


def write_remarks(remarks: Sequence[Remark], path: Path) -> None:
    """Remarks as a JSON list, or as YAML documents as LLVM writes them, by the file's suffix."""
    if path.suffix == ".json":
        records = [
            {
                "kind": str(r.kind),
                "pass": r.pass_name,
                "id": r.id,
                "message": r.message,
                "facts": dict(r.facts),
            }
            for r in remarks
        ]
        write_text(path, json.dumps(records, indent=1) + "\n")
        return
    if path.suffix not in (".yaml", ".yml"):
        raise PlaitError(f"{path}: expected a file that ends in .json or .yaml")
    documents: list[str] = []
    for remark in remarks:
        lines = [f"--- !{remark.kind.capitalize()}"]
        lines += [f"pass: {json.dumps(remark.pass_name)}"]
        lines += [f"id: {json.dumps(remark.id)}", f"message: {json.dumps(remark.message)}"]
        lines.append("facts:" if remark.facts else "facts: {}")
        lines += [f"  {key}: {json.dumps(value)}" for key, value in remark.facts.items()]
        documents.append("\n".join([*lines, "..."]))
    write_text(path, "\n".join(documents) + "\n")
