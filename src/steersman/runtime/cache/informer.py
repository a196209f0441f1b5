"""One shared watch, what it knows, and those who listen to it.

Source: client-go `tools/cache/{shared_informer,reflector}.go`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from steersman.apimachinery.errors import ApiError
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.client.pager import key_of
from steersman.client.resources import Object, Resource
from steersman.client.retry import Backoff
from steersman.client.watch import INACTIVITY, RECONNECT, Watch
from steersman.client.watch_memory import Key, Told
from steersman.runtime.cache.events import Event, Flight, Origin
from steersman.runtime.cache.indexer import Indexer, Transform
from steersman.runtime.cache.selection import predicate

logger = logging.getLogger("steersman.runtime")

Listener = Callable[[Event], None]

RESYNC_PERIOD = 36_000.0
"""Seconds between two looks at all objects (controller-runtime: 10 h, 10 % more or less)."""

RESYNC_TURN = 100
"""How many objects are told in one turn of the event loop."""

STALE_AFTER = 10.0
"""Seconds without a connection after which what the informer knows may be old."""

QUIET_PART = 0.75
"""The part of the inactivity limit after which a silent connection counts as none. With the default, a server that
sends bookmarks each minute is late by then."""

RETRY_LIMIT = 10.0
"""Seconds between attempts to begin a watch that may not begin, at most (controller-runtime: 10)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind are watched; None for all."""

    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    @property
    def is_narrowed(self) -> bool:
        """Whether an object in the namespace may exist that is not watched."""
        return bool(self.label_selector or self.field_selector)


class Informer:
    """Watches the objects of a kind, keeps them, and tells listeners what happens to them.

    Listeners are called in turn, on the event loop, and must return at once. One that joins late is told of the objects
    that are there, as `initial`. Where the watch may not begin (the kind is not served yet, or not permitted), it is
    tried again for ever; `error` says what is wrong then.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection | None = None,
        *,
        metadata_only: bool = False,
        transform: Transform | None = None,
        resync: float | None = RESYNC_PERIOD,
        backoff: Backoff = RECONNECT,
        inactivity: float | None = INACTIVITY,
    ) -> None:
        self.resource = resource
        self.selection = selection or Selection()
        self._client = client
        self._transform = transform
        self._selects = predicate(self.selection.label_selector, self.selection.field_selector)
        self._resync = resync
        self._backoff = backoff
        self._inactivity = inactivity
        self._loop = asyncio.get_running_loop()
        self.indexer = Indexer(None, self._loop.time)
        self.metadata_only = metadata_only
        self.error: Exception | None = None
        """Why the last attempt to watch has failed; None while all is well."""
        self._watch: Watch[Object] | None = None
        self._began = self._loop.time()
        self._synced = asyncio.Event()
        self._completed = 0
        self._listeners: list[Listener] = []
        self._flights: dict[Key, list[Flight]] = {}
        self._doubted: dict[Key, int] = {}
        self._doubts = 0

    @property
    def metadata_only(self) -> bool:
        """Whether nothing but metadata is watched. May be set until it runs."""
        return self._metadata_only

    @metadata_only.setter
    def metadata_only(self, only: bool) -> None:
        self._metadata_only = only
        self.indexer.transform = self._reduced if only else self._transform

    def _reduced(self, raw: Object) -> Object:
        """Metadata under the name of the kind, whether it came alone or in an answer to a write."""
        resource = self.resource
        reduced = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": raw.get("metadata") or {}}
        return reduced if self._transform is None else self._transform(reduced)

    def __str__(self) -> str:
        where = f" in {self.selection.namespace}" if self.selection.namespace else ""
        return f"{self.resource.kind}.{self.resource.api_version}{where}"

    @property
    def has_synced(self) -> bool:
        """Whether all objects have been told that were there at the start."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    @property
    def is_current(self) -> bool:
        """Whether what is known follows the cluster: in sync, and connected a moment ago."""
        watch, now = self._watch, self._loop.time()
        if watch is None or not self.has_synced:
            return False
        if watch.connected:
            return self._inactivity is None or now - watch.heard_at < self._inactivity * QUIET_PART
        return now - (self._began if watch.disconnected_at is None else watch.disconnected_at) < STALE_AFTER

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called for each event, and give what ends that."""
        self._listeners.append(listener)
        for key in self.indexer.keys_in():
            known = self.indexer.get(key)
            if known is not None:
                self._call(listener, Event("ADDED", known.raw, initial=True))
        return lambda: self._listeners.remove(listener)

    @property
    def is_heard(self) -> bool:
        """Whether anyone listens."""
        return bool(self._listeners)

    async def run(self) -> None:
        """Watches until it is cancelled."""
        resync = asyncio.create_task(self._resyncs(), name=f"resync {self}")
        attempt = 0
        try:
            while True:
                was_complete = self._completed
                try:
                    await self._follow()
                except Exception as error:
                    self.error = error
                    attempt = 0 if self._completed > was_complete else attempt
                    delay = min(self._backoff.delay(attempt), RETRY_LIMIT)
                    attempt += 1
                    expected = isinstance(error, (ApiError, ClientError))
                    logger.warning(
                        "cannot watch %s: %s; trying again in %.1f s",
                        self,
                        error if expected else repr(error),
                        delay,
                        exc_info=None if expected else error,
                    )
                    await asyncio.sleep(delay)
        finally:
            resync.cancel()

    async def _follow(self) -> None:
        selection = self.selection
        async with self._client.watch(
            self.resource,
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            backoff=self._backoff,
            inactivity=self._inactivity,
            metadata_only=self._metadata_only,
            memory=self.indexer,
            on_synced=self._on_synced,
            on_error=self._on_error,
        ) as watch:
            self._watch = watch
            while True:
                told = await watch.told()
                self.error = None
                self._tell(told, None)

    def _on_synced(self) -> None:
        self.error = None
        self._completed += 1
        self._synced.set()

    def _on_error(self, error: Exception) -> None:
        self.error = error
        logger.info("watch of %s: %s; it goes on", self, error)

    async def _resyncs(self) -> None:
        while self._resync:
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.1))  # noqa: S311 -- spreads load
            await self.resync()

    async def resync(self) -> None:
        """Tell listeners of all objects again, as they are known."""
        for number, key in enumerate(self.indexer.keys_in(), 1):
            known = self.indexer.get(key)
            if known is not None:
                self._send(Event("MODIFIED", known.raw, resync=True))
            if number % RESYNC_TURN == 0:
                await asyncio.sleep(0)

    def depart(self, key: Key, origin: Origin | None, *, certain: bool) -> Flight:
        """A write of an object begins. `certain`: whatever state it makes is wholly the writer's."""
        flight = Flight(origin, certain)
        self._flights.setdefault(key, []).append(flight)
        return flight

    def arrive(self, key: Key, flight: Flight, raw: Object | None, *, gone: str | None = None) -> None:
        """The write has ended: `raw` is the state that it has made, if it has; `gone` the uid of what is deleted."""
        flights = self._flights[key]
        flights.remove(flight)
        if not flights:
            del self._flights[key]
        made = (raw or {}).get("metadata", {}).get("resourceVersion")
        for version, deleted, act in flight.held:
            own = flight.certain and (deleted if gone else version == made)
            if not own:
                act()
        origin = flight.origin if flight.certain else None
        if gone and gone not in flight.deleted:
            self._tell_all(self.indexer.observe_deletion(key, gone), origin)
        elif raw is not None:
            self.observe(raw, origin)

    def doubt(self, key: Key) -> None:
        """The object has been written, but how it is now is not known: readers ask the server, until one has heard."""
        self._doubts += 1
        self._doubted[key] = self._doubts

    def doubt_about(self, key: Key) -> int | None:
        """The last doubt about an object, to be settled; None if there is none."""
        return self._doubted.get(key)

    def doubted_in(self, namespace: str | None) -> list[Key]:
        """The objects, of a namespace or of all, that there are doubts about."""
        return [key for key in self._doubted if namespace is None or key[0] == namespace]

    def settle(self, key: Key, doubt: int | None) -> None:
        """The server has been asked: a doubt that is no newer than the question is none any more."""
        if doubt is not None and self._doubted.get(key) == doubt:
            del self._doubted[key]

    def observe(self, raw: Object, origin: Origin | None) -> None:
        """Take in a state that the server has answered with; the reconcile `origin` knows it."""
        try:
            news = self._news_of(raw)
        except Exception:
            # Of a transform. The write has happened all the same; the watch will tell of it.
            logger.exception("%s: what the server has answered cannot be kept", self)
            self.doubt(key_of(raw))
        else:
            self._tell_all(news, origin)

    def _news_of(self, raw: Object) -> list[Told]:
        if self._selects is None or self._selects(raw):
            return self.indexer.observe(raw)
        metadata = raw["metadata"]
        uid, version = metadata.get("uid") or "", metadata.get("resourceVersion") or ""
        return self.indexer.observe_departure(key_of(raw), uid, version)

    def _tell_all(self, news: list[Told], origin: Origin | None) -> None:
        for told in news:
            self._tell(told, origin)

    def _tell(self, told: Told, origin: Origin | None) -> None:
        event = Event(told.type, told.raw, told.before, told.initial, origin=origin)
        event.flights = flights = self._flights.get(event.key, ())
        if event.type == "DELETED":
            self._doubted.pop(event.key, None)
            for flight in flights:
                flight.deleted.add(event.metadata.get("uid") or "")
        self._send(event)

    def _send(self, event: Event) -> None:
        for listener in list(self._listeners):
            self._call(listener, event)

    @staticmethod
    def _call(listener: Listener, event: Event) -> None:
        try:
            listener(event)
        except Exception:
            logger.exception("an event handler has failed", extra={"key": "/".join(event.key)})
