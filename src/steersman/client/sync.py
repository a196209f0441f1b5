"""The same client for code without an event loop.

There is no second implementation: every call is handed to the async client, which lives on an event loop in a thread of
its own. One `SyncClient` may be used from several threads at once; their requests run concurrently.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from steersman.client.client import Client
from steersman.client.pager import Listing
from steersman.client.watch import Watch, WatchEvent

T = TypeVar("T")
P = ParamSpec("P")


class Portal:
    """An event loop in a daemon thread, and a way to run coroutines on it from any other thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, name="steersman-client", daemon=True)
        self.thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; interrupting the call (KeyboardInterrupt) cancels it. Raises what it raises."""
        if threading.current_thread() is self.thread:
            coroutine.close()
            raise RuntimeError(
                "a blocking call from the client's own event loop would wait for itself: a function that the client "
                "calls (as `modify` does) must use another SyncClient"
            )
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise RuntimeError("the client is closed") from None
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def running(self) -> bool:
        return not self._loop.is_closed()

    def stop(self) -> None:
        """End the loop and its thread. Stopping twice is allowed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self.thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            pending = asyncio.all_tasks(self._loop)
            for task in pending:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()


def _blocking(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncClient, P], T]:
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        # By name: the client may be of a class of its own.
        coroutine: Coroutine[Any, Any, T] = getattr(self.client, name)(*args, **kwargs)
        return self.portal.call(coroutine)

    name = method.__name__
    update_wrapper(call, method)
    return call


def _constructor(make: Callable[P, Client]) -> Callable[Concatenate[SyncClient, P], None]:
    def init(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> None:
        async def connect() -> Client:
            return make(*args, **kwargs)

        self.portal = Portal()
        try:
            self.client = self.portal.call(connect())
        except BaseException:
            self.portal.stop()
            raise

    return init


def _listing(
    method: Callable[Concatenate[Client, P], Listing[T]],
) -> Callable[Concatenate[SyncClient, P], SyncListing[T]]:
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> SyncListing[T]:
        listing: Listing[T] = getattr(self.client, method.__name__)(*args, **kwargs)
        return SyncListing(self.portal, listing)

    update_wrapper(call, method)
    return call


def _watch(
    method: Callable[Concatenate[Client, P], Watch[T]],
) -> Callable[Concatenate[SyncClient, P], SyncWatch[T]]:
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> SyncWatch[T]:
        return SyncWatch(self.portal, method(self.client, *args, **kwargs))

    update_wrapper(call, method)
    return call


class SyncListing(Generic[T]):
    """See `Listing`: iterate over it, or take all at once with `collect`."""

    def __init__(self, portal: Portal, listing: Listing[T]) -> None:
        self._portal = portal
        self._listing = listing

    @property
    def resource_version(self) -> str:
        return self._listing.resource_version

    def collect(self) -> list[T]:
        return self._portal.call(self._listing.collect())

    def __iter__(self) -> Iterator[T]:
        items = aiter(self._listing)
        try:
            while True:
                try:
                    yield self._portal.call(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self._portal.call(_close(items))


class SyncWatch(Generic[T]):
    """See `Watch`: an endless iterator, and a context manager that ends it."""

    def __init__(self, portal: Portal, watch: Watch[T]) -> None:
        self._portal = portal
        self._watch = watch

    @property
    def resource_version(self) -> str | None:
        return self._watch.resource_version

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WatchEvent[T]:
        try:
            return self._portal.call(_next(self._watch))
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch and its connection."""
        self._portal.call(self._watch.aclose())


async def _next(iterator: Any) -> Any:
    return await anext(iterator)


async def _close(iterator: Any) -> None:
    await iterator.aclose()


class SyncClient:
    """`Client` with blocking methods, a context manager. The arguments are those of `Client`.

    with SyncClient() as client:
        app = client.get(MyApp, "example", namespace="default")
    """

    portal: Portal
    client: Client

    __init__ = _constructor(Client)

    @classmethod
    def on(cls, portal: Portal, client: Client) -> Self:
        """A blocking view of a client that lives on the portal's event loop."""
        made = cls.__new__(cls)
        made.portal, made.client = portal, client
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and end the thread; calls under way are cancelled. Closing twice is allowed."""
        if self.portal.running:
            try:
                self.portal.call(self.client.close())
            finally:
                self.portal.stop()

    @property
    def namespace(self) -> str:
        """The default namespace."""
        return self.client.namespace

    server_version = _blocking(Client.server_version)
    get = _blocking(Client.get)
    list = _listing(Client.list)
    watch = _watch(Client.watch)
    create = _blocking(Client.create)
    update = _blocking(Client.update)
    update_status = _blocking(Client.update_status)
    patch = _blocking(Client.patch)
    patch_status = _blocking(Client.patch_status)
    apply = _blocking(Client.apply)
    delete = _blocking(Client.delete)
    delete_collection = _blocking(Client.delete_collection)
    get_scale = _blocking(Client.get_scale)
    update_scale = _blocking(Client.update_scale)
    modify = _blocking(Client.modify)
    rebase = _blocking(Client.rebase)
