"""What a reconciler that is a plain function has at hand: the same, but each call waits for its end.

It runs in a thread; all that it asks for is done on the manager's event loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from steersman.client.models import KubernetesObject
from steersman.client.resources import Kind, Object
from steersman.client.sync import Portal, SyncClient
from steersman.runtime.context import Context
from steersman.runtime.idempotent import Written
from steersman.runtime.recorder import EventType
from steersman.runtime.requests import Reason

T = TypeVar("T")
O = TypeVar("O", bound=KubernetesObject | Object)  # noqa: E741 -- an object, typed or not
M = TypeVar("M", bound=KubernetesObject)


class RefusedCall(RuntimeError):
    """The reconcile is over, by its timeout or because the controller stops: it may do nothing more."""


class LoopPortal(Portal):
    """Runs coroutines on an event loop that somebody else runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._refusal: str | None = None
        self._lock = threading.Lock()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """See `Portal.call`. Raises RefusedCall once the loop's side has called `refuse`."""
        with self._lock:
            if self._refusal is not None:
                coroutine.close()
                raise RefusedCall(self._refusal)
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            self._running.add(future)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RefusedCall(self._refusal or "the call was cancelled") from None
        finally:
            with self._lock:
                self._running.discard(future)

    def refuse(self, why: str) -> None:
        """Cancel what is called now, and carry out nothing more."""
        with self._lock:
            self._refusal = why
            running = [*self._running]
        for future in running:
            future.cancel()

    def stop(self) -> None:
        """The loop is not ours to stop."""


class BlockingContext:
    """See `Context`."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._portal = LoopPortal(loop)
        self.refuse = self._portal.refuse
        self.client = SyncClient.on(self._portal, context.client)
        self.live = SyncClient.on(self._portal, context.client.live)
        """Reads from here ask the server."""
        self.request = context.request
        self.reasons: Sequence[Reason] = context.reasons
        self.reconcile_id = context.reconcile_id
        self.attempt = context.attempt
        self.fencing_token = context.fencing_token
        self.log = context.log
        self.object = context.object

    def by_index(self, kind: Kind[T], index: str, value: str) -> Sequence[T]:
        """See `CachedClient.by_index`."""

        async def find() -> Sequence[T]:
            return self._context.client.by_index(kind, index, value)

        return self._portal.call(find())

    @overload
    def create_or_update(
        self, obj: Object, change: Callable[[Object], Object | None] | None = None, *, owned: bool = True
    ) -> Written[Object]: ...

    @overload
    def create_or_update(
        self, obj: M, change: Callable[[M], M | None] | None = None, *, owned: bool = True
    ) -> Written[M]: ...

    def create_or_update(
        self, obj: O, change: Callable[[O], O | None] | None = None, *, owned: bool = True
    ) -> Written[O]:
        """See `Context.create_or_update`; `change` runs on the event loop: it must not block."""
        context: Any = self._context  # its types are not for what may be either
        written: Written[O] = self._portal.call(context.create_or_update(obj, change, owned=owned))
        return written

    @overload
    def apply(self, obj: Object, *, owned: bool = True, force: bool = True) -> Written[Object]: ...

    @overload
    def apply(self, obj: M, *, owned: bool = True, force: bool = True) -> Written[M]: ...

    def apply(self, obj: O, *, owned: bool = True, force: bool = True) -> Written[O]:
        """See `Context.apply`."""
        context: Any = self._context
        written: Written[O] = self._portal.call(context.apply(obj, owned=owned, force=force))
        return written

    @contextmanager
    def finalizing(self, finalizer: str) -> Iterator[bool]:
        """See `Context.finalizing`."""
        manager = self._context.finalizing(finalizer)
        deleting = self._portal.call(_entering(manager))
        try:
            yield deleting
        except BaseException as error:
            self._portal.call(_leaving(manager, error))
            raise
        self._portal.call(_leaving(manager, None))

    def event(
        self,
        reason: str,
        note: str,
        *,
        type: EventType = "Normal",  # noqa: A002 -- the API's name
        regarding: KubernetesObject | Object | None = None,
        action: str = "Reconcile",
    ) -> None:
        """See `Context.event`."""

        async def record() -> None:
            self._context.event(reason, note, type=type, regarding=regarding, action=action)

        self._portal.call(record())


async def _entering(manager: Any) -> bool:
    deleting: bool = await manager.__aenter__()
    return deleting


async def _leaving(manager: Any, error: BaseException | None) -> None:
    await manager.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)
