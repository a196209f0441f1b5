"""The controllers that a control plane owes its users, each a client of the API in the same process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from steersman._util.tasks import end
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.server import APIServer
from steersman.controlplane.controller_names import CONTROLLERS, chosen
from steersman.controlplane.events import EventExpiry

if TYPE_CHECKING:
    from steersman.client.client import Client
    from steersman.client.rest import RestClient
    from steersman.controlplane.transport import InProcessTransport

log = logging.getLogger("steersman.controlplane")
RESTART_WAIT = 1.0
_MANAGER = "kube-controller-manager"
LOCK = ("kube-system", "steersman-controllers")
"""The Lease, by namespace and name."""


class Controller(Protocol):
    name: str

    async def run(self) -> None: ...


class Controllers:
    """Runs the controllers of the given names (None: all; `*` and `-name` count); one that fails is started again.

    Of several servers that share a store, one has them at a time.

    `root_ca` is the certificate (PEM) that clients verify the server with; without it, none is published. With
    `hollow_workloads` Deployments, Jobs, Pods and the like progress, too, although nothing runs.
    """

    def __init__(
        self,
        server: APIServer,
        names: Sequence[str] | None = None,
        root_ca: bytes | None = None,
        *,
        hollow_workloads: bool = False,
    ) -> None:
        self._server = server
        self._hollow_workloads = hollow_workloads
        self._root_ca = root_ca
        self._names = CONTROLLERS if names is None else chosen(",".join(names))
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="controllers")

    async def stop(self) -> None:
        if self._task is not None:
            await end([self._task])

    async def _run(self) -> None:
        if not self._names and not self._hollow_workloads:
            return
        if self._server.core.settle is not None:
            await self._take_turns()
        else:
            await self._work()

    async def _take_turns(self) -> None:
        """Work whenever this server is the leader."""
        from steersman.client.client import Client
        from steersman.controlplane.quotas import ChargeReturns, QuotaController
        from steersman.runtime.leaderelection import LeaderElector, Leadership, LeadershipLost, LeaseLock

        async def work(leadership: Leadership) -> None:
            log.info("this server has the controllers")
            await self._work()

        async with (
            Client(transport=self._transport(), field_manager=_MANAGER, user_agent=_MANAGER) as client,
            asyncio.TaskGroup() as tasks,
        ):
            if QuotaController.name in self._names:
                tasks.create_task(self._keep(ChargeReturns(client, self._server.core)))
            while True:
                elector = LeaderElector(client, LeaseLock(*LOCK), exit_on_overrun=False)
                try:
                    await elector.run(work)
                except LeadershipLost as error:
                    log.warning("another server may have the controllers now: %s", error)
                except Exception:
                    log.exception("the election of who has the controllers failed")
                await asyncio.sleep(RESTART_WAIT)

    async def _work(self) -> None:
        if self._names == [EventExpiry.name] and not self._hollow_workloads:
            await self._keep(EventExpiry(self._connect, self._server.core))
        else:
            await self._run_clients()

    def _connect(self) -> RestClient:
        from steersman.client.rest import RestClient

        return RestClient(self._transport(), user_agent=_MANAGER)

    def _transport(self) -> InProcessTransport:
        from steersman.controlplane.transport import InProcessTransport

        user = UserInfo("system:kube-controller-manager", "", ("system:masters", "system:authenticated"))
        return InProcessTransport(self._server, user)

    async def _run_clients(self) -> None:
        # The client half is loaded once the server serves, and not before there is work for it.
        from steersman.client.client import Client

        async with Client(transport=self._transport(), field_manager=_MANAGER, user_agent=_MANAGER) as client:
            wanted = [controller for controller in self._all(client) if controller.name in self._names]
            if self._hollow_workloads:
                from steersman.controlplane.hollow import hollow_controllers

                wanted += hollow_controllers(client, self._server.core)
            await asyncio.gather(*(self._keep(controller) for controller in wanted))

    def _all(self, client: Client) -> list[Controller]:
        from steersman.controlplane.aggregation import RoleAggregation
        from steersman.controlplane.garbage import GarbageCollector
        from steersman.controlplane.namespace_contents import DefaultServiceAccounts, RootCertificates
        from steersman.controlplane.namespaces import NamespaceController
        from steersman.controlplane.policies import PolicyStatus
        from steersman.controlplane.quotas import QuotaController

        core = self._server.core
        found: list[Controller] = [
            NamespaceController(client, core),
            GarbageCollector(client, core),
            DefaultServiceAccounts(client, core),
            EventExpiry(lambda: client.rest, core),
            RoleAggregation(client, core),
            PolicyStatus(client, core),
            QuotaController(client, core),
        ]
        if self._root_ca is not None:
            found.append(RootCertificates(client, core, self._root_ca))
        return found

    @staticmethod
    async def _keep(controller: Controller) -> None:
        while True:
            try:
                await controller.run()
            except Exception:
                log.exception("a controller failed and is started again", extra={"controller": controller.name})
            await asyncio.sleep(RESTART_WAIT)
