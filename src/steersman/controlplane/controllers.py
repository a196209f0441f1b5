"""The controllers that a control plane owes its users, each a client of the API in the same process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.server import APIServer

log = logging.getLogger("steersman.controlplane")
CONTROLLERS = ("namespace-controller",)
RESTART_WAIT = 1.0


class Controller(Protocol):
    name: str

    async def run(self) -> None: ...


class Controllers:
    """Runs the controllers of the given names (None: all); one that fails is started again."""

    def __init__(self, server: APIServer, names: Sequence[str] | None = None) -> None:
        self._server = server
        self._names = CONTROLLERS if names is None else tuple(names)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="controllers")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        # The client half is loaded once the server serves: it takes longer to import than the server to start.
        from steersman.client.client import Client
        from steersman.controlplane.namespaces import NamespaceController
        from steersman.controlplane.transport import InProcessTransport

        user = UserInfo("system:kube-controller-manager", "", ("system:masters", "system:authenticated"))
        transport = InProcessTransport(self._server, user)
        async with Client(transport=transport, field_manager="kube-controller-manager") as client:
            controllers: list[Controller] = [NamespaceController(client, self._server.core)]
            wanted = [controller for controller in controllers if controller.name in self._names]
            await asyncio.gather(*(self._keep(controller) for controller in wanted))

    @staticmethod
    async def _keep(controller: Controller) -> None:
        while True:
            try:
                await controller.run()
            except Exception:
                log.exception("a controller failed and is started again", extra={"controller": controller.name})
            await asyncio.sleep(RESTART_WAIT)
