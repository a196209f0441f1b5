"""A control plane on an event loop of its own, in a thread of its own: for code that blocks, and for other clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from steersman.apiserver.server import ServerConfig
from steersman.controlplane.kubeconfig import kubeconfig, write_kubeconfig
from steersman.controlplane.plane import ControlPlane
from steersman.net.loop import new_event_loop
from steersman.store.interface import Store


@dataclass(frozen=True, slots=True)
class ThreadedControlPlane:
    """A running control plane, as other threads and processes see it."""

    url: str

    @property
    def kubeconfig(self) -> dict[str, object]:
        """A kubeconfig for a server that takes everyone for an administrator."""
        return kubeconfig(self.url, None, "")

    def write_kubeconfig(self, path: Path) -> None:
        """Write the kubeconfig to a file (mode 0600)."""
        write_kubeconfig(path, self.url, None, "")


@contextmanager
def control_plane(
    store: str | Store = "memory://",
    config: ServerConfig | None = None,
    *,
    controllers: Sequence[str] | None = None,
    grace: float = 1.0,
) -> Iterator[ThreadedControlPlane]:
    """Run a control plane in a thread until the block ends, then stop it within `grace` seconds.

    By default it listens on a free loopback port, over plain HTTP, and takes every request for an administrator's:
    made for tests. Raises StoreError, ListenError.
    """
    started = threading.Event()
    loop = new_event_loop()
    stopping = asyncio.Event()
    outcome: list[ControlPlane | BaseException] = []

    async def serve() -> None:
        try:
            plane = await ControlPlane.start(store, config or ServerConfig(insecure=True), controllers=controllers)
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
                if not outcome or isinstance(outcome[0], ControlPlane):
                    raise

    thread = threading.Thread(target=run, name="steersman", daemon=True)
    thread.start()
    started.wait()
    if isinstance(outcome[0], BaseException):
        thread.join()
        raise outcome[0]
    try:
        yield ThreadedControlPlane(outcome[0].url)
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
