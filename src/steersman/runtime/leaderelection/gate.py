"""A transport that sends nothing of a leader's that has ceased to be one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from steersman.client.transport import Headers, RawResponse, RawStream, Transport
from steersman.runtime.leaderelection.leadership import Leadership

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class LeaderTransport:
    """Writes only while this process certainly leads; reads pass. For a client of the work's own:

        client = Client(config, transport=LeaderTransport(HttpTransport(config), elector.check))

    `check` gives the term under way, or raises LeadershipLost, which the client's methods then raise in place of
    sending. A write is not waited for longer than until another process may lead. The elector's own client must not use
    it.
    """

    def __init__(self, transport: Transport, check: Callable[[], Leadership]) -> None:
        self._transport = transport
        self._check = check

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> RawResponse:
        """See `Transport.request`. Raises LeadershipLost."""
        if method not in _READING:
            left = self._check().expires - asyncio.get_running_loop().time()
            timeout = left if timeout is None else min(timeout, left)
        return await self._transport.request(method, path, query, headers, body, timeout)

    def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[RawStream]:
        """See `Transport.stream`. Raises LeadershipLost."""
        if method not in _READING:
            self._check()
        return self._transport.stream(method, path, query, headers, body, timeout)

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._transport.close()
