"""The manager: starts everything in order, watches over it, and stops it in order.

Source: controller-runtime `pkg/manager/{manager,internal,runnable_group}.go`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from steersman._util.tasks import end
from steersman.client.client import Client
from steersman.client.config import Config
from steersman.client.resources import Kind, Resource
from steersman.runtime.cache.cache import SYNC_TIMEOUT, CacheScope
from steersman.runtime.cache.indexer import IndexFunc
from steersman.runtime.cluster import Cluster
from steersman.runtime.controller import DEFAULT_CONCURRENCY, Controller, api_kind_of
from steersman.runtime.ending import stop_all, until_done, until_first
from steersman.runtime.endpoints import Check, Endpoints
from steersman.runtime.execution import Environment, Reconciler
from steersman.runtime.hot_loop import HotLoopDetector
from steersman.runtime.idempotent import Settled
from steersman.runtime.metrics import RuntimeMetrics
from steersman.runtime.permission import Permission
from steersman.runtime.predicates import Predicate
from steersman.runtime.rate_limiter import ExponentialBackoff
from steersman.runtime.status import StatusMode

if TYPE_CHECKING:
    # Loaded when they are used: an operator without them starts sooner.
    from steersman.runtime.election import Election
    from steersman.runtime.leaderelection import LeaderElector, Leadership
    from steersman.runtime.webhook.hooks import Convert
    from steersman.runtime.webhook.reviews import AdmissionRequest, Operation
    from steersman.runtime.webhook.setup import Webhooks, WebhookSetup

T = TypeVar("T")
Runnable = Callable[["Manager"], Awaitable[None]]
"""Runs until it is cancelled; if it ends with an error, so does the manager."""

logger = logging.getLogger("steersman.runtime")

GRACE = 30.0
LAST_SECONDS = 10.0
"""What a process may take beyond the grace: for what was cancelled, for Events, and to give up the lock at a server
that does not answer."""


class Manager:
    """An operator: controllers, the caches that they share, leader election, health and metrics.

        manager = Manager(leader_election="my-operator")
        manager.controller(MyApp, reconcile).owns(DEPLOYMENT)
        manager.run()

    `name` is the field manager of all writes and part of log lines; by default the election's name, or the program's.
    `config` says how to reach the cluster; it is found by `load()` by default, when the manager starts. `watch` and
    `watch_default` say what is watched: namespaces, selectors, what is kept. `leader_election` is the name of a Lease,
    or an `Election` with all settings; without it, this process works alone. `health` and `metrics` are addresses such
    as "127.0.0.1:8081" (":8081" for all interfaces) of /healthz and /readyz, and of /metrics; without them nothing is
    served. `webhooks` says where webhooks are served, and how the API server is told. `grace` is how many seconds
    running reconciles have to end when the manager stops (`math.inf`: all that they need); when leadership is lost,
    they are cancelled at once. `sync_timeout` is within which time the caches must be complete at the start.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        client: Client | None = None,
        name: str | None = None,
        watch: Mapping[Resource, CacheScope] | None = None,
        watch_default: CacheScope | None = None,
        leader_election: str | Election | None = None,
        health: str | None = None,
        metrics: str | None = None,
        webhooks: Webhooks | None = None,
        grace: float = GRACE,
        sync_timeout: float = SYNC_TIMEOUT,
    ) -> None:
        if not grace >= 0:
            raise ValueError(f"grace must be 0 or more seconds, not {grace}")
        election = _election(leader_election)
        self.name = name or (election.name if election is not None else None)
        self.election = election
        self.cluster = Cluster(config, client=client, default=watch_default, watch=watch, field_manager=self.name)
        self.metrics = RuntimeMetrics()
        self._health = health
        self._metrics_address = metrics
        self._webhook_options = webhooks
        self._webhooks: WebhookSetup | None = None
        self._grace = grace
        self._sync_timeout = sync_timeout
        self._clusters = [self.cluster]
        self._controllers: list[Controller[Any]] = []
        self._permissions: list[Permission] = []
        self._runnables: list[tuple[Runnable, bool]] = []
        self._servers: list[Runnable] = []
        self._checks: dict[str, dict[str, Check]] = {"live": {"ping": lambda: None}, "ready": {"caches": self._stale}}
        self._stopping = asyncio.Event()
        self._leadership: Leadership | None = None
        self.ready = asyncio.Event()
        """Set once the caches are complete and all that needs no leader has started."""
        self.leading = asyncio.Event()
        """Set while the controllers that need a leader work."""
        self.addresses: dict[str, int] = {}
        """The ports of "health" and "metrics", once they are served."""

    @property
    def client(self) -> Any:
        """The client of the main cluster, reading from its cache. Raises RuntimeError before the start."""
        return self.cluster.client

    @property
    def controllers(self) -> Sequence[Controller[Any]]:
        """The controllers, in the order in which they were made."""
        return tuple(self._controllers)

    @property
    def permitted(self) -> Sequence[Permission]:
        """What `permissions` was told."""
        return tuple(self._permissions)

    @property
    def grace(self) -> float:
        """Seconds that running reconciles have to end when the manager stops."""
        return self._grace

    @property
    def listens(self) -> Mapping[Literal["health", "metrics"], str]:
        """The addresses of probes and metrics, as far as they are served."""
        given: dict[Literal["health", "metrics"], str | None] = {
            "health": self._health,
            "metrics": self._metrics_address,
        }
        return {name: address for name, address in given.items() if address is not None}

    def permissions(
        self,
        kind: Kind[Any],
        *verbs: str,
        subresource: str = "",
        names: Sequence[str] = (),
        namespace: str | None = None,
    ) -> None:
        """Say what the operator does beyond reading what its controllers watch, for `steersman generate rbac`.

        `manager.permissions(CONFIG_MAP, "create", "update")`, as for `create_or_update`; `ctx.apply` needs "create" and
        "patch". `names` and `namespace` narrow it. Raises ValueError without a verb. It changes nothing of what the
        manager does.
        """
        if not verbs:
            raise ValueError(f"a permission for {kind.api_kind().kind} needs verbs, such as 'create'")
        self._permissions.append(Permission(kind.api_kind(), verbs, subresource, tuple(names), namespace))

    def configure(
        self,
        *,
        config: Config | None = None,
        health: str | None = None,
        metrics: str | None = None,
        webhooks: str | None = None,
        webhook_service: str | None = None,
    ) -> None:
        """Put something in the place of what the manager was made with, before it starts; None leaves it.

        `webhooks` is the address where they are served, `webhook_service` NAMESPACE/NAME of the Service by which the
        API server reaches them. Raises ValueError for what is no such thing.
        """
        if config is not None:
            self.cluster.config = config
        self._health = health or self._health
        self._metrics_address = metrics or self._metrics_address
        if webhooks or webhook_service:
            from steersman.runtime.webhook.setup import Webhooks

            options = (self._webhook_options or Webhooks()).placed(webhooks, webhook_service)
            self._webhook_options = options
            if self._webhooks is not None:
                self._webhooks.options = options

    def controller(
        self,
        kind: Kind[T] | None,
        reconcile: Reconciler,
        *predicates: Predicate,
        name: str | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: float | None = None,
        status: StatusMode = "patch",
        rate_limiter: ExponentialBackoff[Any] | None = None,
        needs_leader: bool = True,
        cluster: Cluster | None = None,
    ) -> Controller[T]:
        """Have `reconcile(ctx, obj)` called for the objects of a kind, whenever something about them has changed.

        It is an async function, or a plain one, which runs in a thread. It gets the object as it is now, and makes the
        world fit its spec; it gives None, or a Result that says when to look again. What it raises is logged, and it
        runs again after a growing wait; a Conflict is no error: it runs again at once on a fresh read. It does not run
        for an object that is gone (see `Context.finalizing`). A status that it has changed in the object is written,
        once, and only if it differs: `status` says how.

        With kind None, `reconcile(ctx, request)` gets what `Controller.watches` and `enqueue` put in.

        At most `concurrency` run at a time, never two for one object. `timeout` is in seconds for one run. `name` is in
        logs and metrics, by default the kind in lower case; it must be unique: ValueError. `predicates` say which
        events of the kind count. `needs_leader`: work only while this process leads.
        """
        chosen = name or (api_kind_of(kind).kind.lower() if kind is not None else None)
        if not chosen:
            raise ValueError("a controller without a kind needs a name")
        if any(known.name == chosen for known in self._controllers):
            raise ValueError(f"there is a controller {chosen!r} already: give this one another name")
        controller = Controller(
            chosen,
            kind,
            reconcile,
            predicates=predicates,
            concurrency=concurrency,
            timeout=timeout,
            status=status,
            rate_limiter=rate_limiter,
            needs_leader=needs_leader,
            cluster=cluster or self.cluster,
        )
        self._controllers.append(controller)
        return controller

    @property
    def webhooks(self) -> WebhookSetup:
        """What is asked of this manager by the API server, and the server for that."""
        from steersman.runtime.webhook.setup import Webhooks, WebhookSetup

        if self._webhooks is None:
            setup = self._webhooks = WebhookSetup(self._webhook_options or Webhooks())
            self.add_ready_check("webhooks", lambda: None if setup.server.is_serving else "they are not served yet")
        return self._webhooks

    def webhook(
        self,
        kind: Kind[T],
        *,
        validate: Callable[[T, AdmissionRequest], Any] | None = None,
        default: Callable[[T, AdmissionRequest], Any] | None = None,
        operations: Sequence[Operation] = ("CREATE", "UPDATE"),
        failure_policy: Literal["Fail", "Ignore"] = "Fail",
        timeout: int = 10,
        match_conditions: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Have the API server ask before it stores objects of a kind.

        `default(obj, request)` changes the new object, in place or by its result; `validate(obj, request)` raises
        Denied to refuse it (for DELETE it gets the object that is to go), and may `request.warn`. Both may be async.
        `failure_policy` says what happens when this process cannot be asked within `timeout` seconds;
        `match_conditions` are CEL expressions (name, expression) that must hold for it to be asked.
        """
        from steersman.runtime.webhook.setup import declare

        self.webhooks.admission(
            declare(
                kind,
                validate,
                default,
                operations,
                failure_policy=failure_policy,
                timeout=timeout,
                match_conditions=match_conditions,
            )
        )

    def without_webhooks(self) -> None:
        """Forget all webhooks and conversions: nothing is served, and the API server is not told of any.

        For a development machine that the API server does not reach. To be called before the start.
        """
        self._webhooks = None
        self._checks["ready"].pop("webhooks", None)

    def conversion(self, crd: str, conversions: Mapping[tuple[str, str], Convert]) -> None:
        """Have the API server ask for objects in other versions: `crd` is the definition's name, `conversions` are
        functions by (version, version), as in {("v1", "v2"): up, ("v2", "v1"): down}. They get and give dicts."""
        self.webhooks.conversion(crd, conversions)

    def add_cluster(self, cluster: Cluster) -> Cluster:
        """Open another cluster with the manager: its kinds may be watched, and its client used."""
        self._clusters.append(cluster)
        return cluster

    def index(self, kind: Kind[Any], name: str, func: IndexFunc) -> None:
        """See `Cluster.index`."""
        self.cluster.index(kind, name, func)

    def add(self, runnable: Runnable, *, needs_leader: bool = True) -> None:
        """Have `await runnable(manager)` run along with the controllers, until it is cancelled."""
        self._runnables.append((runnable, needs_leader))

    def add_server(self, runnable: Runnable) -> None:
        """Have something run from before the caches fill to the very end: a webhook server."""
        self._servers.append(runnable)

    def add_health_check(self, name: str, check: Check) -> None:
        """A check of /healthz: gives what is wrong, or None."""
        self._checks["live"][name] = check

    def add_ready_check(self, name: str, check: Check) -> None:
        """A check of /readyz: gives what is wrong, or None."""
        self._checks["ready"][name] = check

    def run(self) -> None:
        """Run until SIGTERM or SIGINT. Raises what `start` raises.

        A second signal ends the process at once, with status 1; so does what has not ended some seconds after the
        grace: a thread, or what lets its cancellation pass.
        """
        from steersman.net.loop import new_event_loop
        from steersman.runtime.signals import ended_by_signals

        async def main() -> None:
            with ended_by_signals(self.stop, self._grace + LAST_SECONDS, self._running):
                await self.start()

        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(main())

    def _running(self) -> str:
        busy = {controller.name: controller.at_work for controller in self._controllers if controller.at_work}
        return ", ".join(f"{count} of {name}" for name, count in busy.items()) or "no reconcile, but something else"

    def stop(self) -> None:
        """Have `start` end, in order; one that has not begun yet ends at once."""
        self._stopping.set()

    async def start(self) -> None:
        """Run until `stop`. Raises ConfigError, CacheSyncError, LeadershipLost, ListenError, or what a runnable raises.

        The order: health and metrics; servers (webhooks); caches; what needs no leader; the election; what needs the
        leader. It ends in the opposite order.
        """
        running = asyncio.ensure_future(self._start())
        try:
            await asyncio.wait([running])
        finally:
            running.cancel()
            await until_done(running)
            self._stopping = asyncio.Event()
        running.result()

    async def _start(self) -> None:
        async with AsyncExitStack() as stack:
            await self._serve(stack)
            for cluster in self._clusters:
                stack.push_async_callback(cluster.close)
                await cluster.open()
                cluster.client.rest.on_attempt = self.metrics.requests_to(cluster.client.server)
            if self._webhooks is not None:
                stack.push_async_callback(self._webhooks.stop)
                await self._webhooks.start(self.cluster.client, self.name or "steersman")
            servers = [asyncio.ensure_future(server(self)) for server in self._servers]
            stack.push_async_callback(end, servers)
            for cluster in self._clusters:
                stack.push_async_callback(cluster.cache.stop)
            await self._listen()
            stack.push_async_callback(self._close_controllers)
            work = asyncio.ensure_future(self._work())
            stack.push_async_callback(end, [work])
            await until_first([work, *servers])

    async def _serve(self, stack: AsyncExitStack) -> None:
        endpoints = Endpoints(self._checks["live"], self._checks["ready"], self.metrics.text)
        stack.push_async_callback(endpoints.stop)
        both = self._health == self._metrics_address
        if self._health is not None:
            server = await endpoints.serve(self._health, health=True, metrics=both)
            self.addresses["health"] = server.port
        if self._metrics_address is not None and not both:
            server = await endpoints.serve(self._metrics_address, health=False, metrics=True)
            self.addresses["metrics"] = server.port

    async def _listen(self) -> None:
        clock = asyncio.get_running_loop().time
        detector = HotLoopDetector(clock, lambda found: self.metrics.hot_loops.inc(found.controller))
        settled, field_manager = Settled(), self.name or "steersman"
        for cluster in self._clusters:
            cluster.client.on_write = cluster.client.live.on_write = detector.wrote
        for controller in self._controllers:
            client, may_write = controller.cluster.client, self._may_write if controller.needs_leader else None
            environment = Environment(client, self.metrics, settled, field_manager, self._fencing_token, may_write)
            await controller.listen(environment)
        for cluster in self._clusters:
            await cluster.cache.start()

    async def _close_controllers(self) -> None:
        for controller in self._controllers:
            await controller.stop(0)

    async def _work(self) -> None:
        """From complete caches until `stop`."""
        if not await self._synced():
            return
        self.ready.set()
        if self.election is None:
            await self._run_group([True, False], self._stopping.wait())
        else:
            elector = self.election.elector(self.cluster.client.live, self.metrics)
            await self._run_group([False], self._compete(elector))

    async def _synced(self) -> bool:
        """Wait until the caches are complete; False if `stop` came first."""

        async def synced() -> None:
            await asyncio.gather(*(cluster.cache.wait_synced(self._sync_timeout) for cluster in self._clusters))

        complete, stop = asyncio.ensure_future(synced()), asyncio.ensure_future(self._stopping.wait())
        try:
            await until_first([complete, stop])
        finally:
            await end([complete, stop])
        return not stop.done() or stop.cancelled()

    async def _compete(self, elector: LeaderElector) -> None:
        """Work as the leader, once this process is that; ends with `stop`."""
        lead = asyncio.ensure_future(elector.run(self._lead))
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([lead, stop], return_when=asyncio.FIRST_COMPLETED)
            if lead.done() or self._leadership is not None:
                await lead
        finally:
            stop.cancel()
            # Once: a second cancellation would cut short the release of the lock.
            lead.cancel()
            await until_done(lead)

    async def _lead(self, leadership: Leadership) -> None:
        self._leadership = leadership
        try:
            await self._run_group([True], self._stopping.wait())
        finally:
            self._leadership = None

    async def _run_group(self, needs_leader: Collection[bool], until: Awaitable[object]) -> None:
        """Run the controllers and runnables that do, or do not, need a leader, until something is done or fails."""
        controllers = [controller for controller in self._controllers if controller.needs_leader in needs_leader]
        runnables = [runnable for runnable, needs in self._runnables if needs in needs_leader]
        tasks = [asyncio.ensure_future(runnable(self)) for runnable in runnables]
        workers = [worker for controller in controllers for worker in controller.start()]
        if True in needs_leader:
            self.leading.set()
        grace = self._grace
        waiting = asyncio.ensure_future(until)
        try:
            await self._until(waiting, [*tasks, *workers])
        except asyncio.CancelledError:
            grace = 0.0  # not the leader any more: another one may begin
            raise
        finally:
            self.leading.clear()
            await stop_all(controllers, [waiting, *tasks], grace)

    async def _until(self, waiting: asyncio.Future[object], tasks: Collection[asyncio.Future[Any]]) -> None:
        """Returns when `waiting` is done. Raises what one of the tasks raises, once the rest has begun to stop."""
        try:
            await until_first([waiting, *tasks], ends=waiting)
        except Exception:
            self._stopping.set()  # what leads may end in order, too
            await asyncio.wait([waiting])
            raise

    def _fencing_token(self) -> int | None:
        return self._leadership.fencing_token if self._leadership is not None else None

    def _may_write(self) -> None:
        """After a stop (SIGSTOP, a frozen machine) the loop may not have told yet that the lease is over."""
        if self._leadership is not None:
            self._leadership.check()

    def _stale(self) -> str | None:
        """What is wrong with the caches."""
        if not self.ready.is_set():
            return "not all objects have been read yet"
        stale = [str(i) for cluster in self._clusters for i in cluster.cache.informers if not i.is_current]
        return f"not connected: {', '.join(stale)}" if stale else None


def _election(given: str | Election | None) -> Election | None:
    if not isinstance(given, str):
        return given
    from steersman.runtime.election import Election

    return Election(given)
