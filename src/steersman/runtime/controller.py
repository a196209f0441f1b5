"""A controller: events become requests, requests become reconciles, one at a time for each.

Source: controller-runtime `pkg/internal/controller/controller.go`, `pkg/builder/controller.go`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Self, TypeVar, get_args

from steersman._util.tasks import end
from steersman.client.resources import Kind, Resource
from steersman.runtime.cache.events import Event, Origin
from steersman.runtime.cluster import Cluster
from steersman.runtime.execution import Environment, Execution, Outcome, Reconciler, is_unexpected
from steersman.runtime.predicates import Predicate
from steersman.runtime.rate_limiter import ExponentialBackoff
from steersman.runtime.recorder import EventRecorder
from steersman.runtime.requests import CONFLICT, EXTERNAL, REQUEUED, RETRY, Reason
from steersman.runtime.sources import Source, object_mapper, owner_mapper, priority_of, reason_of, same_object
from steersman.runtime.status import StatusMode
from steersman.runtime.workqueue import Item, ShutDown, WorkQueue

T = TypeVar("T")

logger = logging.getLogger("steersman.runtime")

DEFAULT_CONCURRENCY = 10


class Watched(NamedTuple):
    """A kind that is listened to, in a cluster, as a whole or for its metadata only."""

    kind: Kind[Any]
    cluster: Cluster
    metadata_only: bool


class Controller(Generic[T]):
    """Made by `Manager.controller`; the methods below say what else it listens to, and give the controller itself.

    manager.controller(MyApp, reconcile).owns(DEPLOYMENT).watches(SECRET, apps_that_use)
    """

    def __init__(
        self,
        name: str,
        kind: Kind[T] | None,
        reconcile: Reconciler,
        *,
        predicates: Iterable[Predicate] = (),
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: float | None = None,
        status: StatusMode = "patch",
        rate_limiter: ExponentialBackoff[Any] | None = None,
        needs_leader: bool = True,
        cluster: Cluster,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"the concurrency of {name} must be at least 1, not {concurrency}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"the timeout of {name} must be None, or seconds greater than zero, not {timeout}")
        if status not in get_args(StatusMode):
            raise ValueError(f"the status of {name} is written by one of {get_args(StatusMode)}, not {status!r}")
        _check_reconciler(name, reconcile)
        self.name = name
        self.needs_leader = needs_leader
        self.cluster = cluster
        self.status: StatusMode = status
        """How the status of what is reconciled is written."""
        self.reconciler = reconcile
        """What is called for each request."""
        self._kind = kind
        self._concurrency = concurrency
        self._limiter = rate_limiter
        self._sources: list[Source] = [] if kind is None else [Source(kind, same_object, tuple(predicates))]
        self._owned: list[tuple[Kind[Any], bool, tuple[Predicate, ...], bool]] = []
        self._execution = Execution(
            name,
            kind,
            reconcile,
            blocking=not _is_async(reconcile),
            timeout=timeout,
            status=status,
            concurrency=concurrency,
        )
        self._conflicts: dict[Any, int] = {}
        self._queue: WorkQueue[Any] | None = None
        self._early: list[tuple[Hashable, float, int, Reason]] = []
        self._workers: list[asyncio.Task[None]] = []

    @property
    def kind(self) -> Kind[T] | None:
        """What is reconciled; None if that is whatever is put into the queue."""
        return self._kind

    @property
    def owned(self) -> Sequence[Kind[Any]]:
        """What `owns` was told."""
        return tuple(kind for kind, *_ in self._owned)

    @property
    def watched(self) -> Sequence[Watched]:
        """All that is listened to: the kind that is reconciled, owned ones, and others."""
        sources = [Watched(each.kind, each.cluster or self.cluster, each.metadata_only) for each in self._sources]
        owned = [Watched(kind, self.cluster, metadata_only) for kind, _, _, metadata_only in self._owned]
        return (*sources, *owned)

    @property
    def at_work(self) -> int:
        """How many reconciles run now."""
        return 0 if self._queue is None else len(self._queue.working())

    def owns(
        self,
        kind: Kind[Any],
        *predicates: Predicate,
        every_owner: bool = False,
        metadata_only: bool = False,
    ) -> Self:
        """Reconcile an object when one that it controls changes, or with `every_owner`, one that it owns.

        `metadata_only` watches no more than metadata: it saves memory where nothing else is needed.
        """
        resource = api_kind_of(kind)
        if self._kind is None:
            raise ValueError(f"{self.name} has no kind of its own that could own {resource.kind}")
        self._owned.append((kind, every_owner, predicates, metadata_only))
        return self

    def watches(
        self,
        kind: Kind[Any],
        to_requests: Callable[[Any], Iterable[Hashable]],
        *predicates: Predicate,
        metadata_only: bool = False,
        cluster: Cluster | None = None,
    ) -> Self:
        """Reconcile what `to_requests` gives for an object that has changed (for its state before the change, too).

        It is called on the event loop and must not block; it may read from the cache. With `metadata_only` it gets
        dicts that hold apiVersion, kind and metadata. The kind is that of another `cluster`, if given (see
        `Manager.add_cluster`).
        """
        resource = api_kind_of(kind)
        self._sources.append(
            Source(
                kind,
                object_mapper(resource if metadata_only else kind, to_requests),
                predicates,
                metadata_only,
                cluster,
            )
        )
        return self

    def enqueue(self, request: Hashable, *, after: float = 0.0, priority: int = 0, detail: str = "") -> None:
        """Have something reconciled because of what happened outside of the cluster. On the manager's event loop only;
        from another thread use `loop.call_soon_threadsafe`."""
        reason = Reason(EXTERNAL, detail)
        if self._queue is None:
            self._early.append((request, after, priority, reason))
        else:
            self._queue.add(request, after=after, priority=priority, reason=reason)

    async def listen(self, environment: Environment) -> None:
        """Begin to listen; requests wait until `start`."""
        self._environment = environment
        self._recorder = EventRecorder(environment.client, self.name)
        environment.metrics.begin(self.name, self._concurrency)
        self._queue = WorkQueue(self.name, rate_limiter=self._limiter, metrics=environment.metrics.queues)
        for request, after, priority, reason in self._early:
            self._queue.add(request, after=after, priority=priority, reason=reason)
        for source in [*self._sources, *self._owner_sources(environment)]:
            cache = (source.cluster or self.cluster).cache
            cache.kind(source.kind, metadata_only=source.metadata_only).listen(partial(self._on_event, source))

    def _owner_sources(self, environment: Environment) -> list[Source]:
        if self._kind is None or not self._owned:
            return []
        owner: Resource = self._kind.api_kind()
        mapper = environment.client.mapper
        return [
            Source(kind, owner_mapper(owner, mapper, every=every), predicates, metadata_only)
            for kind, every, predicates, metadata_only in self._owned
        ]

    def _on_event(self, source: Source, event: Event) -> None:
        queue = self._queue
        if queue is None:
            return
        for request in source.requests(event):

            def add(request: Hashable = request) -> None:
                queue.add(request, priority=priority_of(event), reason=reason_of(event))

            event.told_to(Origin(self.name, request), add)

    def start(self) -> list[asyncio.Task[None]]:
        """Begin to reconcile; gives the tasks that do, which end with `stop` or an error of ours."""
        self._workers = [
            asyncio.create_task(self._work(), name=f"{self.name} worker {number}")
            for number in range(self._concurrency)
        ]
        return self._workers

    async def stop(self, grace: float) -> None:
        """Begin nothing more, let what runs end within `grace` seconds, and cancel what does not."""
        if self._queue is None:
            return
        self._queue.shut_down()
        try:
            async with asyncio.timeout(None if math.isinf(grace) else grace):
                await self._queue.drained()
        except TimeoutError:
            logger.warning("%s: what still runs after %g s is cancelled", self.name, grace)
        await end(self._workers)
        self._execution.close()
        await self._recorder.stop()

    def cancel(self) -> None:
        """Cancel what runs; `stop` waits for its end."""
        for worker in self._workers:
            worker.cancel()

    async def _work(self) -> None:
        queue, environment = self._queue, self._environment
        assert queue is not None
        active = environment.metrics.active.cell((self.name,))
        clock = asyncio.get_running_loop().time
        while True:
            try:
                item = await queue.get()
            except ShutDown:
                return
            active[0] += 1
            began = clock()
            try:
                outcome = await self._execution.run(item, queue.failures(item.key), environment, self._recorder)
                self._count(outcome, clock() - began)
                self._follow_up(queue, item, outcome)
            finally:
                active[0] -= 1
                queue.done(item.key)
            # A reconcile that waits for nothing must not keep the event loop from everything else.
            await asyncio.sleep(0)

    def _follow_up(self, queue: WorkQueue[Any], item: Item[Any], outcome: Outcome) -> None:
        """What is to happen with the request now."""
        key, error = item.key, outcome.error
        if outcome.kind == "conflict":
            # Once is routine: at once, with a fresh read. Again and again needs room for the others.
            lost = self._conflicts[key] = self._conflicts.get(key, 0) + 1
            reason = Reason(CONFLICT, str(error))
            if lost == 1:
                queue.add(key, priority=item.priority, reason=reason)
            else:
                queue.add_rate_limited(key, priority=item.priority, reason=reason)
            return
        self._conflicts.pop(key, None)
        if outcome.kind == "error" and not outcome.is_terminal:
            detail = f"attempt {queue.failures(key) + 1} failed: {type(error).__name__}: {error}"
            queue.add_rate_limited(key, priority=item.priority, reason=Reason(RETRY, detail))
            return
        queue.forget(key)
        delay = outcome.result.delay
        if delay is not None:
            priority = item.priority if outcome.result.priority is None else outcome.result.priority
            queue.add(key, after=delay, priority=priority, reason=Reason(REQUEUED, f"after {delay:g} s"))

    def _count(self, outcome: Outcome, seconds: float) -> None:
        metrics, name = self._environment.metrics, self.name
        metrics.seconds.observe(seconds, (name,))
        metrics.reconciles.inc(name, outcome.kind)
        if outcome.kind != "error":
            return
        metrics.errors.inc(name)
        if outcome.is_terminal:
            metrics.terminal_errors.inc(name)
        if isinstance(outcome.error, TimeoutError):
            metrics.timeouts.inc(name)
        if is_unexpected(outcome.error):
            metrics.panics.inc(name)


def api_kind_of(kind: Any) -> Resource:
    """What a kind is called. Raises TypeError for what is none."""
    api_kind = getattr(kind, "api_kind", None)
    if api_kind is None:
        raise TypeError(
            f"{kind!r} is no kind: give a class made with @custom_resource, or a Resource as in "
            'Resource("apps/v1", "Deployment")'
        )
    resource: Resource = api_kind()
    return resource


def _check_reconciler(name: str, reconcile: Any) -> None:
    if not callable(reconcile):
        raise TypeError(f"the reconciler of {name} must be a function of (ctx, obj), not {reconcile!r}")
    try:
        signature = inspect.signature(reconcile)
    except ValueError:
        return  # of a function in C
    try:
        signature.bind(None, None)
    except TypeError:
        raise TypeError(f"the reconciler of {name} is called with (ctx, obj), but takes {signature}") from None


def _is_async(func: Any) -> bool:
    call = getattr(func, "__call__", None)  # noqa: B004 -- its own __call__ may be async
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(call)
