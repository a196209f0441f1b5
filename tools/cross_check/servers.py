"""Plain HTTP to one server."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any

    @property
    def version(self) -> int:
        """The resourceVersion of an answered object."""
        return int(self.body["metadata"]["resourceVersion"])


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url = url
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        headers = {"Authorization": f"Bearer {token}"}
        self._session = aiohttp.ClientSession(url, connector=connector, headers=headers, read_bufsize=1 << 22)

    async def request(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Answer:
        data = None if body is None else json.dumps(body)
        headers = {} if data is None else {"Content-Type": media}
        async with self._session.request(method, path, data=data, headers=headers) as response:
            is_json = response.content_type == "application/json"
            return Answer(response.status, await response.json() if is_json else {"message": await response.text()})

    async def events(self, path: str) -> AsyncIterator[Object]:
        """The events of a watch; ends with it."""
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, timeout=timeout) as response:
            async for line in response.content:
                yield json.loads(line)

    async def close(self) -> None:
        await self._session.close()
