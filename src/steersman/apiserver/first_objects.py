"""What a server with an empty store creates, as it is stored: made once, by `tools/first_objects.py`.

`bootstrap` and the upkeep of priority levels would create the same objects, one after the other, by all rules; a test
holds this to them. `data/first_objects.txt` has a line for each: its key, a blank, its canonical JSON, with TIME and
UID where the object has its own.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from pathlib import Path

from steersman.store.interface import CompareFailed, Store

TIME = b"2006-01-02T15:04:05Z"
UID = b"00000000-0000-0000-0000-000000000000"
DATA = Path(__file__).with_name("data") / "first_objects.txt"
_RBAC = (b"/registry/clusterrolebindings/", b"/registry/clusterroles/", b"/registry/rolebindings/", b"/registry/roles/")
_FAIRNESS = (b"/registry/flowschemas/", b"/registry/prioritylevelconfigurations/")


async def write_first_objects(store: Store, now: str, *, rbac: bool, fairness: bool) -> None:
    """Write them into an empty store, without roles or priority levels if nobody asks these.

    What another server has written meanwhile stays. Raises what the store raises.
    """
    unwanted = (() if rbac else _RBAC) + (() if fairness else _FAIRNESS)
    time = now.encode()
    lines = [line for line in DATA.read_bytes().splitlines() if not line.startswith(unwanted or b"#")]
    await asyncio.gather(*(_write(store, line, time) for line in lines))


async def _write(store: Store, line: bytes, time: bytes) -> None:
    key, _, value = line.partition(b" ")
    with suppress(CompareFailed):
        await store.swap(key, 0, value.replace(TIME, time).replace(UID, str(uuid.uuid4()).encode()))
