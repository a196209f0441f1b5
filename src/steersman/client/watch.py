"""A watch that does not end: it resumes, reconnects, and relists when the server has forgotten where it was.

Source: client-go `tools/cache/reflector.go`; KEP-3157 (WatchList), KEP-956 (bookmarks).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Literal, Self, TypeVar

from steersman.apimachinery.errors import ApiError, Gone
from steersman.client.errors import CredentialsError, DecodeError, NoMatch
from steersman.client.pager import key_of
from steersman.client.resources import Kind, Object
from steersman.client.retry import Backoff
from steersman.client.transport import TlsError, TransportError, TransportTimeout, header
from steersman.client.watch_memory import EventType, Memory, Told
from steersman.client.watch_source import EventReader, Source

logger = logging.getLogger("steersman.client")

T = TypeVar("T")

RECONNECT = Backoff(steps=1, duration=0.8, factor=2.0, jitter=1.0, cap=30.0)
"""Waits between attempts after a failure (client-go's reflector); `steps` is not used, a watch never gives up."""

STREAM_SECONDS = (300, 600)
"""For how long a stream is asked for, at random, so that a fleet's watches do not end together."""

SILENCE = 30.0
"""Seconds after the asked-for end at which a stream that has not ended is taken for dead."""

INACTIVITY = 120.0
"""Seconds without an event or a bookmark after which a stream is opened anew: kube-apiserver sends a bookmark each
minute, and a connection may die without a word."""

INITIAL_SILENCE = 10.0
"""Seconds without an event after which a server that was asked for WatchList is taken not to know it."""

_HEALTHY = 1.0
_REFUSED = frozenset({400, 401, 403, 404, 405, 406, 415, 422})


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """`initial`: told by a state (the first, or one read after a gap) rather than by an event of the server.

    The object of a DELETED event is its last state; when the deletion fell into a gap, the last state that was seen.
    """

    type: EventType
    object: T
    initial: bool = False


class Watch(Generic[T]):
    """An endless async iterator of `WatchEvent`s, and an async context manager that ends it.

    It begins with the state: one ADDED event for each object, `initial` set. From then on events come as they happen.
    When the connection ends or breaks, the watch goes on from the last resourceVersion it has seen (bookmarks count),
    so nothing is lost or told twice. When the server has forgotten that version (410), or has not come to it yet (it is
    asked after a failure: it may have begun anew, from nothing or from a backup), the state is read again and
    compared with what was told before: objects that are new come as ADDED, changed as MODIFIED, made anew under the
    same name (another uid) as DELETED and ADDED, gone as DELETED, all `initial`; what has not changed is not told. For
    that, the last state of every object is kept in memory. Each object's events come in the order of its versions.

    A watch that starts from a given resourceVersion has no state to compare with: after a 410 all objects that it has
    not told of come as ADDED, and deletions of those in the gap go unnoticed.

    A request that the server refuses before anything was told (403, 404, ...) is raised. Later every failure is retried
    for ever with growing, jittered waits, and reported to `on_error`. An object that does not fit its model raises
    DecodeError; the watch goes on when it is asked for the next event. So it does after a cancelled wait for an event,
    such as one with a timeout: it connects again and resumes.
    """

    def __init__(
        self,
        kind: Kind[T],
        source: Source[T],
        *,
        resource_version: str | None,
        initial: Literal["auto", "list", "watchlist"],
        backoff: Backoff,
        on_synced: Callable[[], None] | None,
        on_error: Callable[[Exception], None] | None,
        inactivity: float | None = INACTIVITY,
        memory: Memory | None = None,
    ) -> None:
        self._decode = kind.from_wire
        self._source = source
        self._version = resource_version or None
        self._streamed = initial != "list"
        self._fallback = initial == "auto"
        self._backoff = backoff
        self._on_synced = on_synced
        self._on_error = on_error
        self._memory = Memory() if memory is None else memory
        self._inactivity = inactivity
        self._started = False
        self._failures = 0
        self._broken = False
        self._followed_at: float | None = None
        self._closed = False
        self._events = self._run()
        self.connected = False
        """Whether a stream is open now: events come as they happen."""
        self.disconnected_at: float | None = None
        """The loop's time at which the last stream ended; None if there was none."""
        self.heard_at = 0.0
        """The loop's time at which the server last said something on a stream: opened it, an event, a bookmark."""

    @property
    def resource_version(self) -> str | None:
        """How far the watch has come: another watch may resume from here. None while the state is not complete."""
        return self._version

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        told = await self.told()
        return WatchEvent(told.type, self._decode(told.raw), told.initial)

    async def told(self) -> Told:
        """The next event as it came, with the object's state before it. Raises StopAsyncIteration once closed."""
        try:
            return await anext(self._events)
        except asyncio.CancelledError:
            # What has been told is remembered here, not in the generator that the cancellation has ended.
            self._events = self._events if self._closed else self._run()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch and its connection."""
        self._closed = True
        await self._events.aclose()

    async def _run(self) -> AsyncGenerator[Told, None]:
        while True:
            delay = 0.0
            try:
                async with aclosing(self._session()) as events:
                    async for event in events:
                        yield event
            except (ApiError, TransportError, CredentialsError, NoMatch, DecodeError) as error:
                delay = await self._after(error)
            finally:
                if self.connected:
                    self.connected = False
                    self.disconnected_at = asyncio.get_running_loop().time()
            await asyncio.sleep(delay)

    async def _session(self) -> AsyncGenerator[Told, None]:
        """From connecting to the end of the connection."""
        if self._version is None and not self._streamed:
            async with aclosing(self._list()) as events:
                async for event in events:
                    yield event
        async with aclosing(self._stream()) as events:
            async for event in events:
                yield event

    async def _list(self) -> AsyncGenerator[Told, None]:
        listing = self._source.listing()
        seen: set[tuple[str, str]] = set()
        self._broken = False
        async with aclosing(listing.pages()) as pages:
            async for page in pages:
                if page.restarted:
                    seen.clear()
                for item in page.items:
                    seen.add(key_of(item))
                    for event in self._memory.tell("ADDED", item, True):
                        yield event
        for event in self._memory.vanished(seen, listing.resource_version):
            yield event
        self._synced(listing.resource_version)

    async def _stream(self) -> AsyncGenerator[Told, None]:
        clock = asyncio.get_running_loop().time
        seconds = random.randint(*STREAM_SECONDS)  # noqa: S311 -- spreads load, guards nothing
        opened, quiet = clock(), True
        await self._check_version()
        async with self._source.stream(_parameters(self._version, seconds)) as stream:
            reader = EventReader(stream)
            self.connected, self.heard_at, self._broken = True, clock(), False
            if self._version is None:
                async with aclosing(self._initial(reader)) as events:
                    async for told in events:
                        yield told
            self._started, self._followed_at = True, clock()
            while (event := await reader.next(self._patience(opened + seconds + SILENCE))) is not None:
                kind, raw = event
                quiet, self.heard_at = False, clock()
                if kind != "BOOKMARK":
                    for told in self._memory.tell(kind, raw, False):
                        yield told
                self._version = _version(raw) or self._version
        if quiet and clock() - opened < _HEALTHY:
            raise _EndedAtOnce("the server ended the watch at once")
        self._failures = 0

    async def _check_version(self) -> None:
        """After a broken connection another server may answer, which has begun anew. Raises Gone then."""
        if self._broken and self._version is not None and await self._source.is_future(self._version):
            self._memory.begin_anew()
            raise Gone(f"the server has begun anew: it has not come to resource version {self._version} yet")

    async def _initial(self, reader: EventReader) -> AsyncGenerator[Told, None]:
        """The state, as a stream that asked for it begins: it ends with a bookmark that says so."""
        clock = asyncio.get_running_loop().time
        seen: set[tuple[str, str]] = set()
        while True:
            try:
                event = await reader.next(clock() + INITIAL_SILENCE)
                self.heard_at = clock()
            except TransportTimeout as error:
                raise _NoWatchList("the server does not say where the initial state ends") from error
            if event is None:
                raise TransportError("the watch ended before the state was complete")
            kind, raw = event
            if kind != "BOOKMARK":
                (seen.discard if kind == "DELETED" else seen.add)(key_of(raw))
                for told in self._memory.tell(kind, raw, True):
                    yield told
            elif _ends_initial(raw):
                break
        for told in self._memory.vanished(seen, _version(raw)):
            yield told
        self._synced(_version(raw))

    def _patience(self, end: float) -> float:
        """Until when the next event or bookmark must come, given when the stream must end."""
        if self._inactivity is None:
            return end
        return min(end, asyncio.get_running_loop().time() + self._inactivity)

    def _synced(self, version: str) -> None:
        self._version = version
        self._started = True
        if self._on_synced is not None:
            self._on_synced()

    async def _after(self, error: Exception) -> float:
        """Seconds to wait after a failure; raises it when the server refuses what we have not even begun."""
        code = error.code if isinstance(error, ApiError) else 0
        initial = self._version is None and self._streamed and self._fallback
        if isinstance(error, _NoWatchList) or (initial and code in (400, 422)):
            if not self._fallback:
                raise error
            logger.info("watch of %s: falling back to list and watch: %s", self._source, error)
            self._streamed = False
            return 0.0
        if not self._started and (code in _REFUSED or isinstance(error, _FATAL)):
            raise error
        if code == 404:
            await self._source.look_again()
        if self._followed_at is not None and asyncio.get_running_loop().time() - self._followed_at >= _HEALTHY:
            self._failures = 0
        self._followed_at = None
        self._failures += 1
        broken = code >= 500 or (isinstance(error, TransportError) and not isinstance(error, _EndedAtOnce))
        self._broken = self._broken or broken
        if isinstance(error, Gone):
            self._version = None
        # Being forgotten once is routine: read the state at once, and wait only if that happens again.
        rank = self._failures - (2 if isinstance(error, Gone) else 1)
        delay = self._backoff.delay(rank) if rank >= 0 else 0.0
        if isinstance(error, ApiError):
            delay = max(delay, float(header(error.headers, "retry-after") or 0))
        self._report(error, delay)
        return delay

    def _report(self, error: Exception, delay: float) -> None:
        if self._on_error is not None:
            self._on_error(error)
        else:
            level = logging.INFO if isinstance(error, Gone) and not delay else logging.WARNING
            logger.log(level, "watch of %s: %s; trying again in %.1f s", self._source, error, delay)


class _EndedAtOnce(TransportError):
    """A stream that came to nothing: the connection was not broken."""


class _NoWatchList(TransportError):
    """The server does not know WatchList."""


_FATAL = (NoMatch, TlsError, CredentialsError, DecodeError)


def _parameters(version: str | None, seconds: int) -> Mapping[str, str]:
    if version is not None:
        return {"resourceVersion": version, "timeoutSeconds": str(seconds)}
    return {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "timeoutSeconds": str(seconds),
    }


def _version(raw: Object) -> str:
    return (raw.get("metadata") or {}).get("resourceVersion") or ""


def _ends_initial(raw: Object) -> bool:
    annotations = (raw.get("metadata") or {}).get("annotations") or {}
    return annotations.get("k8s.io/initial-events-end") == "true"
