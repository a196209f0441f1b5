"""A control plane on an event loop of its own, in a thread of its own: for code that blocks, and for other clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from steersman._util import clock
from steersman.apiserver.server import ServerConfig
from steersman.controlplane.kubeconfig import kubeconfig, write_kubeconfig
from steersman.controlplane.plane import ControlPlane
from steersman.net.listen import reserve
from steersman.net.loop import new_event_loop
from steersman.store.interface import Store
from steersman.store.memory import MemoryStore
from steersman.testing.clock import advance, check_seconds


class ThreadedControlPlane:
    """A running control plane, as other threads and processes see it."""

    def __init__(self, plane: ControlPlane, config: ServerConfig, controllers: Sequence[str] | None) -> None:
        self._plane = plane
        self._controllers = controllers
        self._config = replace(config, port=plane.port)
        self._loop = asyncio.get_running_loop()
        self._moved = 0.0
        self.url = plane.url

    @property
    def kubeconfig(self) -> dict[str, object]:
        """A kubeconfig for a server that takes everyone for an administrator."""
        return kubeconfig(self.url, None, "")

    def write_kubeconfig(self, path: Path) -> None:
        """Write the kubeconfig to a file (mode 0600)."""
        write_kubeconfig(path, self.url, None, "")

    def compact(self) -> None:
        """Forget old revisions: see `Fault.compact`. Blocks until it is done."""
        self._call(self._plane.server.core.forget_history())

    def restart(self, down: float = 0.0) -> None:
        """Stop the server, cutting off all connections, and start it again at the same address after `down` seconds.

        What is stored in memory is kept. Blocks until it serves again: from async code whose clients share its event
        loop, call it by `asyncio.to_thread`. Raises ListenError, StoreError, and
        TypeError or ValueError for what is no time.
        """
        check_seconds("restart", down)
        self._call(self._restart(down))

    def advance(self, seconds: float) -> None:
        """Let time pass for the server, and for the wall clock of this process, until the server stops.

        See `steersman.testing.advance`. Blocks until what was due has been done. Raises RuntimeError for uvloop.
        """
        check_seconds("advance", seconds)
        self._call(self._advance(seconds))

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _restart(self, down: float) -> None:
        family, address = self._plane.server.address
        await self._plane.stop(0)
        store = self._plane.store
        if not isinstance(store, MemoryStore):
            raise TypeError("only a server with a store in memory can be started again")
        held = await reserve(family, address)
        try:
            await asyncio.sleep(down)
            config = replace(self._config, listener=held)
            self._plane = await ControlPlane.start(store.copy(), config, controllers=self._controllers)
        except BaseException:
            held.close()
            raise

    async def _advance(self, seconds: float) -> None:
        self._moved += seconds
        await advance(seconds, wall=True)

    async def stop(self, grace: float) -> None:
        """Stop it, and set the wall clock back to what it was; called on its event loop."""
        await self._plane.stop(grace)
        clock.move(-self._moved)


@contextmanager
def control_plane(
    store: str | Store = "memory://",
    config: ServerConfig | None = None,
    *,
    controllers: Sequence[str] | None = None,
    grace: float = 1.0,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = new_event_loop,
) -> Iterator[ThreadedControlPlane]:
    """Run a control plane in a thread until the block ends, then stop it within `grace` seconds.

    By default it listens on a free loopback port, over plain HTTP, and takes every request for an administrator's:
    made for tests. Raises StoreError, ListenError.
    """
    started = threading.Event()
    loop = new_loop()
    stopping = asyncio.Event()
    outcome: list[ThreadedControlPlane | BaseException] = []

    async def serve() -> None:
        chosen = config or ServerConfig(insecure=True)
        try:
            plane = ThreadedControlPlane(
                await ControlPlane.start(store, chosen, controllers=controllers), chosen, controllers
            )
        except BaseException as error:
            outcome.append(error)
            started.set()
            raise
        outcome.append(plane)
        started.set()
        try:
            await stopping.wait()
        finally:
            await plane.stop(grace)

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(serve())
            except BaseException:
                if not outcome or isinstance(outcome[0], ThreadedControlPlane):
                    raise

    thread = threading.Thread(target=run, name="steersman", daemon=True)
    thread.start()
    started.wait()
    if isinstance(outcome[0], BaseException):
        thread.join()
        raise outcome[0]
    try:
        yield outcome[0]
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
