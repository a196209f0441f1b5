"""Requests as bytes, and what came back: for what no HTTP library would send."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any, NamedTuple

TIMEOUT = 20.0


class Raw(NamedTuple):
    """An answer: `body` is decoded JSON, or text. Status 0: the connection ended without one."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def gist(self) -> list[Any]:
        """What an answer says, without what differs from run to run and server to server."""
        if not isinstance(self.body, dict):
            return [self.status, "", self.body if self.status < 400 or self.status == 404 else ""]
        meta = self.body.get("metadata") or {}
        return [self.status, self.body.get("kind", ""), self.body.get("message") or meta.get("name", "")]


async def exchange(host: str, port: int, tls: ssl.SSLContext | None, sent: bytes) -> Raw:
    """Send bytes on a connection of their own, and read the first answer."""
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=1 << 24)
    try:
        async with asyncio.timeout(TIMEOUT):
            sending = asyncio.ensure_future(_send(writer, sent))
            try:
                return await _read(reader)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
    finally:
        writer.transport.abort()


async def _send(writer: asyncio.StreamWriter, sent: bytes) -> None:
    writer.write(sent)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Raw:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return Raw(0, {}, "")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    status = int(first.split()[1])
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join([part async for part in _chunks(reader)])
    elif "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body = await reader.read()
    text = body.decode("utf-8", "replace")
    try:
        return Raw(status, headers, json.loads(text))
    except ValueError:
        return Raw(status, headers, text)


async def _chunks(reader: asyncio.StreamReader) -> Any:
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
