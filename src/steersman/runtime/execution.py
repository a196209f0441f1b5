"""One reconcile: the object is read, the reconciler runs, the status is written, and what has come of it is told.

Source: controller-runtime `pkg/internal/controller/controller.go` (reconcileHandler), `pkg/reconcile/reconcile.go`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from steersman.apimachinery.errors import ApiError, Conflict, NotFound
from steersman.client.errors import ClientError, DecodeError
from steersman.client.models import KubernetesObject
from steersman.client.options import identity_of
from steersman.client.resources import Kind, Object, Resource
from steersman.runtime import tracing
from steersman.runtime.blocking import BlockingContext
from steersman.runtime.cache.cache import identity
from steersman.runtime.cache.events import CURRENT, Origin, Run
from steersman.runtime.client import CachedClient
from steersman.runtime.context import Context
from steersman.runtime.idempotent import Settled, is_of_fields
from steersman.runtime.metrics import RuntimeMetrics
from steersman.runtime.owners import AlreadyOwned
from steersman.runtime.recorder import EventRecorder
from steersman.runtime.requests import LeadershipLost, Request, Result, TerminalError
from steersman.runtime.status import StatusMode, StatusWriter
from steersman.runtime.workqueue import Item

T = TypeVar("T")

logger = logging.getLogger("steersman.runtime")

Reconciler = Callable[[Any, Any], Any]
"""`(ctx, obj) -> Result | None`, async, or a plain function that runs in a thread."""

OutcomeKind = Literal["success", "requeue_after", "conflict", "error"]
_EXPECTED = (ApiError, ClientError, OSError, TimeoutError, TerminalError, AlreadyOwned, LeadershipLost)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has come of a reconcile. `error` is what it has raised."""

    kind: OutcomeKind
    result: Result = field(default_factory=Result)
    error: BaseException | None = None

    @property
    def is_terminal(self) -> bool:
        return isinstance(self.error, TerminalError)


@dataclass(frozen=True, slots=True)
class Environment:
    """What the controllers of a manager share. `fencing_token` gives the leader's, None without an election;
    `may_write` raises LeadershipLost in a process that does not certainly lead, where only a leader may write."""

    client: CachedClient
    metrics: RuntimeMetrics
    settled: Settled
    field_manager: str
    fencing_token: Callable[[], int | None]
    may_write: Callable[[], None] | None = None


class Execution(Generic[T]):
    """How the requests of one controller are carried out."""

    def __init__(
        self,
        name: str,
        kind: Kind[T] | None,
        reconcile: Reconciler,
        *,
        blocking: bool,
        timeout: float | None,
        status: StatusMode,
        concurrency: int,
    ) -> None:
        self._name = name
        self._kind = kind
        self._reconcile = reconcile
        self._timeout = timeout
        self._status = status
        self._threads = ThreadPoolExecutor(concurrency, f"reconcile-{name}") if blocking else None

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, item: Item[Any], attempt: int, environment: Environment, recorder: EventRecorder) -> Outcome:
        """Carry out a request. Raises nothing but CancelledError, when this is cancelled, and what ends the process."""
        run = Run(Origin(self._name, item.key), environment.may_write)
        token = CURRENT.set(run)
        context = Context(
            environment.client,
            item.key,
            controller=self._name,
            reasons=tuple(item.reasons),
            reconcile_id=uuid.uuid4().hex[:16],
            attempt=attempt,
            recorder=recorder,
            settled=environment.settled,
            field_manager=environment.field_manager,
            fencing_token=environment.fencing_token(),
        )
        try:
            with tracing.span(
                f"reconcile {self._name}", {"key": str(item.key), "reasons": "; ".join(map(str, item.reasons))}
            ):
                result = await self._run(context, run)
        except (SystemExit, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # Some libraries' errors are no Exceptions; they are no reason to stop the other reconciles either.
            return self._failed(context, error)
        finally:
            run.ended = True
            CURRENT.reset(token)
        if context.log.isEnabledFor(logging.DEBUG):
            context.log.debug("reconciled (it ran because of: %s)", "; ".join(map(str, context.reasons)))
        return Outcome("success" if result.delay is None else "requeue_after", result)

    def _failed(self, context: Context, error: BaseException) -> Outcome:
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise error
            error = RuntimeError("the reconciler has waited for something that was cancelled")
        if is_lost_race(error):
            context.log.debug("lost a race, trying again: %s", error)
            return Outcome("conflict", error=error)
        self._report(context, error)
        return Outcome("error", error=error)

    async def _run(self, context: Context, run: Run) -> Result:
        if run.may_write is not None:
            run.may_write()  # whatever a reconciler does, within the cluster or without: only a leader may begin it
        if self._kind is None:
            run.begun = True
            return _result(await self._call(context, context.request))
        request: Request = context.request
        try:
            obj: Any = await context.client.get(self._kind, request.name, namespace=request.namespace or None)
        except NotFound:
            return Result()
        except DecodeError as error:
            raise TerminalError(f"the object does not fit the model: {error}") from error
        context.object, run.begun = obj, True
        status = StatusWriter(self._kind, obj, self._status)
        try:
            result = _result(await self._call(context, obj))
        except Exception as error:
            if not is_lost_race(error):
                await self._write_last_words(context, run, status)
            raise
        await self._write(context, run, status)
        return result

    async def _write(self, context: Context, run: Run, status: StatusWriter) -> None:
        assert self._kind is not None and context.object is not None
        request: Request = context.request
        which = (*identity(self._kind.api_kind()), (request.namespace, request.name))
        try:
            await status.write(context.client, run.versions.get(which))
        except NotFound as error:
            # The server says the same of an object that is gone, and of a kind that has no /status.
            if await _exists(context.client, self._kind.api_kind(), context.object):
                raise NoStatus(f"{self._kind.api_kind().kind} has no status subresource: use status='off'") from error
            context.log.debug("the object is gone, its status is not written")

    async def _write_last_words(self, context: Context, run: Run, status: StatusWriter) -> None:
        """A reconciler that fails may have said so in the status; what hinders that is not the failure to report."""
        try:
            await self._write(context, run, status)
        except (ApiError, ClientError, NoStatus) as error:
            context.log.debug("the status could not be written: %s", error)

    async def _call(self, context: Context, subject: Any) -> Any:
        if self._threads is not None:
            return await self._call_in_thread(self._threads, context, subject)
        if self._timeout is None:
            return await self._reconcile(context, subject)
        async with asyncio.timeout(self._timeout):
            return await self._reconcile(context, subject)

    async def _call_in_thread(self, threads: ThreadPoolExecutor, context: Context, subject: Any) -> Any:
        loop = asyncio.get_running_loop()
        run = contextvars.copy_context().run
        blocking = BlockingContext(context, loop)
        future = loop.run_in_executor(threads, run, _guarded_call, self._reconcile, blocking, subject)
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.wait([future])
        except (TimeoutError, asyncio.CancelledError) as error:
            # A thread cannot be ended: until it has, the request counts as being worked on.
            timed_out = isinstance(error, TimeoutError)
            why = f"the reconcile took longer than {self._timeout:g} s" if timed_out else "the reconcile is cancelled"
            blocking.refuse(why)
            context.log.error("%s, but its thread still runs; its end is waited for", why)
            await _until_done(future)
            raise TimeoutError(why) if timed_out else error from None
        return future.result()

    def _report(self, context: Context, error: BaseException) -> None:
        reasons = "; ".join(map(str, context.reasons))
        unexpected = is_unexpected(error)
        context.log.error(
            "reconcile failed: %s: %s (it ran because of: %s)",
            type(error).__name__,
            error,
            reasons,
            exc_info=error if unexpected else None,
        )


async def _exists(client: CachedClient, resource: Resource, obj: KubernetesObject | Object) -> bool:
    who = identity_of(obj)
    try:
        found = await client.live.get(resource, who.name, namespace=who.namespace or None)
    except NotFound:
        return False
    return identity_of(found).uid == who.uid


class NoStatus(Exception):
    """A status is to be written, but the kind has no place for it."""


def is_unexpected(error: BaseException | None) -> bool:
    """Whether an error is none of those that a cluster is expected to lead to: a bug, most likely."""
    return error is not None and not all(isinstance(leaf, _EXPECTED) for leaf in _leaves(error))


def is_lost_race(error: BaseException) -> bool:
    """Whether another try on a fresh read may do better: not for what another field manager owns."""
    return all(isinstance(leaf, Conflict) and not is_of_fields(leaf) for leaf in _leaves(error))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group (a TaskGroup's), or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


def _guarded_call(func: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return func(*arguments)
    except StopIteration as error:
        # No Future can hold it (PEP 479 says the same of coroutines).
        raise RuntimeError("the reconciler has raised StopIteration") from error


async def _until_done(future: asyncio.Future[Any]) -> None:
    """Waits whatever happens: being cancelled again does not end a thread either."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    future.exception()  # nobody else will look at it


def _result(answer: Any) -> Result:
    if answer is None:
        return Result()
    if not isinstance(answer, Result):
        raise TypeError(f"a reconciler gives a Result or None, not {type(answer).__name__}")
    return answer
