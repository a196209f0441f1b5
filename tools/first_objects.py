"""Writes src/steersman/apiserver/data/first_objects.txt: what a server creates in an empty store.

    python tools/first_objects.py

To be run when default roles, namespaces or priority levels change, or how objects are stored.
"""

from __future__ import annotations

import asyncio
import re
import sys

from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.first_objects import DATA, TIME, UID
from steersman.apiserver.server import APIServer, ServerConfig
from steersman.store.memory import MemoryStore

_TIME = re.compile(rb'(?<=")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(?=")')
_UID = re.compile(rb'(?<="uid":")[0-9a-f-]{36}(?=")')


class Onlooker:
    """A plugin of one's own: for the sake of it, a server creates its first objects by all rules."""

    name = "Onlooker"

    async def admit(self, attributes: Attributes) -> None:
        """Sees all, changes nothing."""


async def created() -> dict[bytes, bytes]:
    """What is stored at each key, with TIME and UID."""
    store = MemoryStore()
    server = await APIServer.start(store, ServerConfig(admission_plugins=[Onlooker()]), listen=False)
    await server.stop(0)
    found = await store.range(b"/", b"0")
    await store.close()
    return {item.key: _UID.sub(UID, _TIME.sub(TIME, item.value)) for item in found.items}


def main() -> None:
    objects = asyncio.run(created())
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_bytes(b"".join(b"%b %b\n" % item for item in sorted(objects.items())))
    sys.stdout.write(f"{DATA}: {len(objects)} objects\n")


if __name__ == "__main__":
    main()
