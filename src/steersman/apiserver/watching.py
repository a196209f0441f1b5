"""Watches: every change is encoded once for all watchers that want the same thing, and the same bytes go to each.

Watchers of one resource that ask alike (same version, selection and form) share a channel. A watcher whose client
does not read is cut off; it never delays a writer.
Source: apiserver `pkg/storage/cacher`, KEP-3157 (WatchList), KEP-956 (bookmarks).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import field

from steersman._util.dataclass import dataclass
from steersman.apiserver.selection import Selection
from steersman.apiserver.strategy import Object
from steersman.apiserver.unreadable import Unreadable
from steersman.apiserver.watchcache import Change, Entry, ResourceCache
from steersman.net.http import Stream, chunk

log = logging.getLogger("steersman.apiserver.watch")
MAX_BUFFERED = 16 * 1024 * 1024
CHECK_EVERY = 256 * 1024
BATCH_WATCHERS = 16
BATCH_SECONDS = 50e-6
"""How long events wait for each other, a watcher: somewhat more than sending to one costs, so that some time is left
for requests however many watch."""
BATCH_MOST = 0.05
Render = Callable[[Entry, bool], bytes]
Frame = Callable[[str, bytes], bytes]


def frame(kind: str, body: bytes) -> bytes:
    """One watch event as a line of JSON."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


@dataclass(eq=False, slots=True)
class Watcher:
    """One open watch. `after` is the revision up to which it needs no events; `ended` is set to close it."""

    stream: Stream
    after: int
    ended: asyncio.Future[None]
    started: bool = False
    unchecked: int = 0

    def send(self, framed: bytes) -> None:
        """Send framed events; a client that has left too many unread is cut off."""
        stream = self.stream
        self.unchecked += len(framed)
        if self.unchecked > CHECK_EVERY:
            self.unchecked = 0
            if stream.buffered > MAX_BUFFERED:
                stream.abort()
                self.end()
                return
        stream.write_chunk(framed)
        self.started = True

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


@dataclass(eq=False, slots=True)
class Channel:
    """The watchers that want the same bytes. `render` encodes an entry; its flag asks for a table's column header.
    `frame` makes an event of it.

    An event goes out at once. While many watchers follow and events come fast, those that come soon after the last
    sending go out together: what a delivery costs is the sending, not the bytes.
    """

    selection: Selection
    render: Render
    has_header: bool
    on_event: Callable[[str, int, int], None]
    frame: Frame = frame
    watchers: dict[Watcher, None] = field(default_factory=dict)
    pending: list[tuple[int, bytes]] = field(default_factory=list)
    sent_at: float = 0.0
    timer: asyncio.TimerHandle | None = None

    def notify(self, change: Change) -> None:
        found = event_of(change, self.selection)
        if found is None:
            return
        kind, entry = found
        framed = self._framed(kind, entry, header=False)
        self.on_event(kind, len(self.watchers), len(framed))
        if self.has_header:
            self._send_with_header(change.revision, kind, entry, framed)
            return
        self.pending.append((change.revision, framed))
        if len(self.watchers) < BATCH_WATCHERS:
            self.flush()
        elif self.timer is None:
            loop = asyncio.get_running_loop()
            wait = self.sent_at + min(BATCH_SECONDS * len(self.watchers), BATCH_MOST) - loop.time()
            if wait <= 0:
                self.flush()
            else:
                self.timer = loop.call_later(wait, self.flush)

    def told(self, revision: int) -> int:
        """Up to where the watchers know all, after `flush`, when the cache is at `revision`."""
        return revision

    def close(self) -> None:
        """No one watches any more."""

    def flush(self) -> None:
        """Send what waits."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        events = self.pending
        if not events:
            return
        self.pending = []
        if len(self.watchers) >= BATCH_WATCHERS:
            self.sent_at = asyncio.get_running_loop().time()
        first = events[0][0]
        everything = events[0][1] if len(events) == 1 else b"".join([framed for _, framed in events])
        for watcher in tuple(self.watchers):
            if watcher.after < first:
                watcher.send(everything)
            else:
                for revision, framed in events:
                    if watcher.after < revision:
                        watcher.send(framed)

    def _send_with_header(self, revision: int, kind: str, entry: Entry, plain: bytes) -> None:
        for watcher in tuple(self.watchers):
            if watcher.after < revision:
                watcher.send(plain if watcher.started else self._framed(kind, entry, header=True))

    def _framed(self, kind: str, entry: Entry, *, header: bool) -> bytes:
        return chunk(self.frame(kind, self.render(entry, header)))


@dataclass(eq=False, slots=True)
class ConvertingChannel(Channel):
    """A channel whose events are converted first, in their order; when that fails the watches end."""

    waiting: deque[Change] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None

    def notify(self, change: Change) -> None:
        self.waiting.append(change)
        if self.task is None:
            self.task = asyncio.ensure_future(self._convert())

    def told(self, revision: int) -> int:
        return self.waiting[0].revision - 1 if self.waiting else revision

    def close(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _convert(self) -> None:
        try:
            while self.waiting:
                batch = list(self.waiting)
                await self.selection.scope.view.prepare([entry for change in batch for entry in self._shown(change)])
                for change in batch:
                    self.waiting.popleft()
                    Channel.notify(self, change)
        except Unreadable as error:
            log.warning("watches end: an object cannot be converted", extra={"error": error.message})
            for watcher in self.watchers:
                watcher.end()
        finally:
            self.task = None

    def _shown(self, change: Change) -> Iterator[Entry]:
        """The states that the event, or the question whether there is one, needs."""
        if change.new is not None:
            yield change.new
        if change.old is not None and (change.new is None or self.selection.looks_inside):
            yield change.old


def event_of(change: Change, selection: Selection) -> tuple[str, Entry] | None:
    """What a change means to a selection: an object that no longer matches is DELETED, in its last matching state."""
    new, old = change.new, change.old
    if new is None:
        assert old is not None
        return ("DELETED", old) if selection.matches(old) else None
    matches = selection.matches(new)
    matched = old is not None and (matches if selection.everything else selection.matches(old))
    if matches:
        return ("MODIFIED" if matched else "ADDED"), new
    if matched:
        assert old is not None
        return "DELETED", old.at(change.revision)
    return None


class _Router:
    """Tells a resource's channels of its changes, but those of one namespace, or one object, only of what is there."""

    def __init__(self) -> None:
        self._everywhere: dict[Channel, None] = {}
        self._within: dict[str, dict[Channel, None]] = {}

    def add(self, channel: Channel) -> None:
        place = channel.selection.place
        (self._within.setdefault(place, {}) if place else self._everywhere)[channel] = None

    def remove(self, channel: Channel) -> None:
        place = channel.selection.place
        if not place:
            del self._everywhere[channel]
            return
        del self._within[place][channel]
        if not self._within[place]:
            del self._within[place]

    def notify(self, change: Change) -> None:
        found = [*self._everywhere]
        if self._within:
            key = change.last.key
            for place in (key, key[: key.find("/") + 1]):
                found += self._within.get(place, ())
        for channel in found:
            channel.notify(change)


class WatchHub:
    """All channels, by resource."""

    def __init__(self) -> None:
        self._channels: dict[ResourceCache, dict[Hashable, Channel]] = {}
        self._routers: dict[ResourceCache, _Router] = {}

    def join(self, cache: ResourceCache, key: Hashable, make: Callable[[], Channel], watcher: Watcher) -> Channel:
        """Let a watcher follow a channel from now on, until `leave`."""
        channels = self._channels.setdefault(cache, {})
        channel = channels.get(key)
        if channel is None:
            channel = channels[key] = make()
            router = self._routers.get(cache)
            if router is None:
                router = self._routers[cache] = _Router()
                cache.watchers.append(router.notify)
            router.add(channel)
        channel.watchers[watcher] = None
        return channel

    def leave(self, cache: ResourceCache, key: Hashable, watcher: Watcher) -> None:
        """Send a watcher what waits for it, and let it go."""
        channel = self._channels[cache][key]
        channel.flush()
        del channel.watchers[watcher]
        if not channel.watchers:
            channel.close()
            self._routers[cache].remove(channel)
            del self._channels[cache][key]
            if not self._channels[cache]:
                del self._channels[cache]
                cache.watchers.remove(self._routers.pop(cache).notify)

    def end_scope(self, scope: object) -> None:
        """Close the watches of a scope that is served no more, or in another form."""
        for channels in self._channels.values():
            for channel in channels.values():
                if channel.selection.scope is scope:
                    for watcher in channel.watchers:
                        watcher.end()

    def end_cache(self, cache: ResourceCache) -> None:
        """Close all watches of a resource that is served no more."""
        for channel in self._channels.get(cache, {}).values():
            for watcher in channel.watchers:
                watcher.end()

    def end_all(self) -> None:
        """Close all watches."""
        for cache in self._channels:
            self.end_cache(cache)

    def count(self) -> int:
        return sum(len(c.watchers) for channels in self._channels.values() for c in channels.values())


def bookmark(api_version: str, kind: str, revision: int, *, initial: bool) -> Object:
    """What a BOOKMARK event shows: an object of the kind with nothing but a resourceVersion."""
    meta: Object = {"resourceVersion": str(revision)}
    if initial:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}
