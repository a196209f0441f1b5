"""The control plane: an API server, its store, its certificates, and the controllers that work on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from steersman.apiserver.server import APIServer, ServerConfig
from steersman.controlplane.controllers import Controllers
from steersman.store.history import History
from steersman.store.interface import Store
from steersman.store.urls import open_store

log = logging.getLogger("steersman.controlplane")


class ControlPlane:
    """A running control plane. Made by `await ControlPlane.start(...)`; also an async context manager."""

    def __init__(self, store: Store, server: APIServer, controllers: Controllers) -> None:
        self.store = store
        self.server = server
        self.controllers = controllers

    @classmethod
    async def start(
        cls,
        store: str | Store = "memory://",
        config: ServerConfig | None = None,
        *,
        history: History | None = None,
        controllers: Sequence[str] | None = None,
        root_ca: bytes | None = None,
        hollow_workloads: bool = False,
    ) -> ControlPlane:
        """Open the store, serve, and start the controllers (None: all). Raises StoreError, ListenError.

        A store that is open already is closed with the control plane, or when it cannot start.

        `root_ca` (PEM) is what every namespace's kube-root-ca.crt holds; without it there are none. With
        `hollow_workloads` Deployments, Jobs, Pods and the like progress although nothing runs.
        """
        async with AsyncExitStack() as stack:
            opened = await open_store(store, history=history) if isinstance(store, str) else store
            stack.push_async_callback(opened.close)
            server = await APIServer.start(opened, config or ServerConfig())
            stack.push_async_callback(server.stop, 0)
            started = Controllers(server, controllers, root_ca, hollow_workloads=hollow_workloads)
            if not opened.read_only:
                started.start()
            stack.pop_all()
            return cls(opened, server, started)

    @property
    def url(self) -> str:
        """Where it is reached from this machine."""
        return self.server.url

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self.server.port

    async def retire(self, seconds: float, enough: asyncio.Event) -> None:
        """Go on serving for some seconds, or until it is enough, while /readyz says that this is going to end.

        Source: kube-apiserver's `--shutdown-delay-duration`.
        """
        self.server.core.ready = False
        with suppress(TimeoutError):
            await asyncio.wait_for(enough.wait(), seconds)

    async def stop(self, grace: float = 10.0) -> None:
        """End watches, finish running writes within `grace` seconds, stop the controllers, close the store."""
        await self.controllers.stop()
        await self.server.stop(grace)
        await self.store.close()

    async def __aenter__(self) -> ControlPlane:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.shield(self.stop(0.5))
