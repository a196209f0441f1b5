"""A proxy between one process and the API server, which harms its requests."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any, Self

import aiohttp
from aiohttp import web

REFUSAL = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500}
_SKIPPED = {"host", "content-length", "transfer-encoding", "connection", "content-encoding"}


class FaultyProxy:
    """Plain HTTP on the one side, a session to the server on the other; an async context manager.

    `fault` is None or one of: "errors" (each write is answered 500), "partition" (nothing is answered, and nothing
    arrives), "lost" (writes arrive, their answers do not), "late" (writes arrive, but up to three seconds later).
    """

    def __init__(self, server: aiohttp.ClientSession) -> None:
        self.url = ""
        self.fault: str | None = None
        self._server = server
        self._healed = asyncio.Event()
        self._pending: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**22)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.heal()
        for task in self._pending:
            task.cancel()
        await self._runner.cleanup()

    def harm(self, fault: str) -> None:
        self.fault = fault
        self._healed.clear()

    def heal(self) -> None:
        self.fault = None
        self._healed.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        write = request.method not in ("GET", "HEAD")
        if self.fault == "partition":
            return await self._cut(request)
        if self.fault == "errors" and write:
            return web.json_response(REFUSAL, status=500)
        if request.query.get("watch") == "true":
            return await self._stream(request)
        body = await request.read()
        if self.fault == "late" and write:
            task = asyncio.create_task(self._later(request, body))
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)
            return await self._cut(request)
        status, headers, content = await self._forward(request, body)
        if self.fault == "partition" or (self.fault == "lost" and write):
            return await self._cut(request)
        return web.Response(status=status, headers=headers, body=content)

    async def _cut(self, request: web.Request) -> web.Response:
        """Silence until the fault is healed, then the connection ends without an answer."""
        await self._healed.wait()
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _later(self, request: web.Request, body: bytes) -> None:
        await asyncio.sleep(random.uniform(0, 3))
        await self._forward(request, body)

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _SKIPPED}
        async with self._server.request(request.method, request.raw_path, data=body or None, headers=headers) as answer:
            kept = {key: value for key, value in answer.headers.items() if key.lower() not in _SKIPPED}
            return answer.status, kept, await answer.read()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """A watch. In a partition its events are held back, as TCP would."""
        async with self._server.get(request.raw_path) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
            with contextlib.suppress(ConnectionError):
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    if self.fault == "partition":
                        await self._healed.wait()
                    await response.write(chunk)
        return response
