"""The HTTP/1.1 server: an asyncio protocol on httptools, made for uvloop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any

from steersman._util.tasks import end

from .connection import Connection
from .context import Limits, ServerContext
from .eager import EagerRunner
from .http import AnyHandler
from .listen import ListenError, listen, reserve
from .loop import new_event_loop
from .sockets import BACKLOG
from .wire import date_line

__all__ = ["Limits", "ListenError", "Server", "serve_in_thread"]

_GOODBYE = 0.25  # seconds that stop() gives clients to end TLS once all is sent


class Server:
    """A running server. Made by `await Server.start(...)` on the running event loop; also an async context manager."""

    def __init__(
        self, context: ServerContext, listener: asyncio.Server, host: str, port: int, secured: SSLContext | None
    ) -> None:
        self._context = context
        self._listener = listener
        self._secured = secured
        self._outage: asyncio.Task[None] | None = None
        self._address = (listener.sockets[0].family, listener.sockets[0].getsockname())
        self._sweeper = context.loop.call_later(context.limits.sweep_interval(), self._sweep)
        self._stopped: asyncio.Task[None] | None = None
        self.port = port
        named = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host)  # noqa: S104 - it is read, not bound
        self.url = f"{'https' if secured else 'http'}://{named or (f'[{host}]' if ':' in host else host)}:{port}"

    @classmethod
    async def start(
        cls,
        handler: AnyHandler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl: SSLContext | None = None,
        limits: Limits | None = None,
        listener: socket.socket | None = None,
    ) -> Server:
        """Listens and serves. Port 0 takes a free port: see `.port` and `.url`; `ssl` makes it HTTPS. A `listener` that
        listens there already is taken over; those who have connected meanwhile are served now.

        The handler is called once per request, on the loop. An async one runs at once up to its first wait, without
        a task of its own. What it raises is logged and answered with 500. Raises ListenError.
        """
        loop = asyncio.get_running_loop()
        context = ServerContext(loop, handler, limits or Limits(), EagerRunner(loop), tick=loop.time())
        bound = listener or await listen(host, port)
        serving = await _serve(context, bound, ssl)
        return cls(context, serving, host, bound.getsockname()[1], ssl)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._context.connections)

    @property
    def address(self) -> tuple[int, tuple[Any, ...]]:
        """The family of the listening socket, and where it is bound."""
        return self._address

    def interrupt(self, seconds: float) -> None:
        """Cut all connections off and refuse new ones for some seconds: what clients see of a restart. For tests."""
        if self._outage is None or self._outage.done():
            self._outage = self._context.loop.create_task(self._interrupted(seconds))

    async def _interrupted(self, seconds: float) -> None:
        self._listener.close()
        for connection in tuple(self._context.connections):
            connection.abort()
        held = await reserve(*self._address)
        try:
            await asyncio.sleep(seconds)
        except BaseException:
            held.close()
            raise
        self._listener = await _serve(self._context, held, self._secured)

    async def stop(self, grace: float = 10.0) -> None:
        """Stops accepting, ends idle connections and streams, waits up to `grace` seconds for running requests.

        What still runs then is cancelled, its connections are dropped. May be called more than once.
        """
        if self._stopped is None:
            self._stopped = asyncio.ensure_future(self._stop(grace))
        await asyncio.shield(self._stopped)

    async def _stop(self, grace: float) -> None:
        context = self._context
        context.stopping = True
        if self._outage is not None:
            await end([self._outage])
        self._listener.close()
        for connection in tuple(context.connections):
            connection.shut_down()
        await self._wait(lambda: bool(context.tasks) or not all(c.is_flushed() for c in context.connections), grace)
        await self._wait(lambda: bool(context.connections), 0 if context.tasks else _GOODBYE)
        for connection in tuple(context.connections):
            connection.abort()
        for task in tuple(context.tasks):
            task.cancel()
        await self._wait(lambda: bool(context.tasks or context.connections), 1.0)
        context.runner.close()
        self._sweeper.cancel()

    async def _wait(self, unfinished: Callable[[], bool], seconds: float) -> None:
        """Waits until nothing is unfinished, at most so long."""
        changed = self._context.changed
        try:
            async with asyncio.timeout(seconds):
                while unfinished():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return

    def _sweep(self) -> None:
        context = self._context
        context.tick = context.loop.time()
        context.date = date_line()
        self._sweeper = context.loop.call_later(context.limits.sweep_interval(), self._sweep)
        for connection in tuple(context.connections):
            connection.sweep(context.tick)

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()


async def _serve(context: ServerContext, bound: socket.socket, ssl: SSLContext | None) -> asyncio.Server:
    timeouts: dict[str, Any] = {} if ssl is None else {"ssl_handshake_timeout": context.limits.head_timeout}
    try:
        return await context.loop.create_server(
            lambda: Connection(context), sock=bound, ssl=ssl, backlog=BACKLOG, **timeouts
        )
    except BaseException:
        bound.close()
        raise


@contextmanager
def serve_in_thread(handler: AnyHandler, *, grace: float = 10.0, **options: Any) -> Iterator[Server]:
    """Serves on an event loop in a thread of its own while the context lasts; `options` are those of Server.start().

    Only `.port` and `.url` of the yielded server may be used from outside. Raises ListenError.
    """
    started: list[Server | BaseException] = []
    ready = threading.Event()
    stop: list[Callable[[], None]] = []

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        server = await Server.start(handler, **options)
        stop.append(lambda: _call_threadsafe(loop, ended.set))
        started.append(server)
        ready.set()
        await ended.wait()
        await server.stop(grace)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(serve())
        except BaseException as error:
            started.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="steersman-http", daemon=True)
    thread.start()
    ready.wait()
    server = started[0]
    if isinstance(server, BaseException):
        thread.join()
        raise server
    try:
        yield server
    finally:
        stop[0]()
        thread.join()


def _call_threadsafe(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)
