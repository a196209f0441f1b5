"""Write to a SQLite store until killed, reporting every acknowledged write on standard output: for test_kill.

    python killed_server.py PATH ROUND

A line is `REVISION KEY VALUE-NUMBER`; the value is `value_of(round, number)`.
"""

from __future__ import annotations

import asyncio
import os
import sys

from steersman.store.history import History
from steersman.store.sqlite import SQLiteStore

WRITERS = 12


def value_of(name: bytes) -> bytes:
    """A value of up to 8 KB that only its name can explain."""
    return name + b":" + name * (hash_of(name) % 600)


def hash_of(name: bytes) -> int:
    return sum(position * byte for position, byte in enumerate(name, 1))


async def write(store: SQLiteStore, key: bytes, label: bytes) -> None:
    current = await store.get(key)
    revision = current.mod_revision if current else 0
    number = 0
    while True:
        number += 1
        name = b"%s-%s-%d" % (label, key, number)
        revision = await store.swap(key, revision, value_of(name))
        os.write(1, b"%d %s %s\n" % (revision, key, name))
        if number % 10 == 0:
            deleted = await store.swap(key, revision, None)
            os.write(1, b"%d %s -\n" % (deleted, key))
            revision = 0


async def main(path: str, label: str) -> None:
    store = await SQLiteStore.open(path, history=History(revisions=2000, seconds=0))
    await asyncio.gather(*(write(store, b"key-%d" % number, label.encode()) for number in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
