"""`steersman` with a store that acknowledges writes before they are durable: what a campaign must find out.

It keeps everything in memory, and writes all of it to the file after every hundredth write.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Self

import steersman.store.urls
from steersman import cli
from steersman.store.interface import Premises, StoreEvent
from steersman.store.memory import MemoryStore

EVERY = 100


class EarlyStore(MemoryStore):
    """A store that lies about durability."""

    path: Path

    @classmethod
    async def open(cls, path: str, **options: Any) -> Self:
        store = cls()
        store.path = Path(path)
        if store.path.exists():
            revision, items = json.loads(store.path.read_text())
            events = [StoreEvent(key.encode(), value.encode(), at, created, 0) for key, value, at, created in items]
            store.fill(events, revision)
        return store

    async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        revision = await super().swap(key, expected, value, premises)
        if revision % EVERY == 0:
            found = await self.range(b"", b"\xff")
            items = sorted(found.items, key=lambda item: item.mod_revision)
            rows = [(item.key.decode(), item.value.decode(), item.mod_revision, item.create_revision) for item in items]
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps([found.revision, rows]))
            os.replace(new, self.path)
        return revision


if __name__ == "__main__":
    steersman.store.urls.SQLiteStore = EarlyStore  # type: ignore[misc,assignment]
    sys.exit(cli.main())
