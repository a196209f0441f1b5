"""What a kube-apiserver has said of objects of the kinds in `kinds.py`: `recorded.json`, an entry a line.

It is written by `python -m tools.fuzz.models --reference URL --objects 600 --record tests/crdgen/recorded.json`, which
compares at the same time; do so when kinds were added or changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("recorded.json")


def told(code: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """What counts of an answer: the object with its defaults, or all that is wrong with it, in no order."""
    if code == 201:
        return {"code": code, "object": {key: value for key, value in body.items() if key != "metadata"}}
    causes = (body.get("details") or {}).get("causes")
    if causes is None:
        return {"code": code, "message": body["message"]}
    return {"code": code, "causes": sorted([each["field"], each["message"]] for each in causes)}


def load() -> list[dict[str, Any]]:
    """The objects, and what was told of each."""
    with FILE.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def save(file: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write entries, each once, in an order of their own."""
    lines = {json.dumps(entry, ensure_ascii=False, sort_keys=True) for entry in entries}
    file.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
