"""GET with ?watch: the stream of changes.

Source: apiserver `pkg/endpoints/handlers/{get,watch}.go`, `pkg/storage/cacher/cacher.go`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator

from steersman._util import clock
from steersman.api import kinds
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec.negotiate import PROTOBUF, Accepted
from steersman.apimachinery.errors import ApiError, Expired
from steersman.apimachinery.options import ListOptions, list_options
from steersman.apiserver import rest
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, large, transform
from steersman.apiserver.endpoints.get import not_older_than
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.selection import Selection, select
from steersman.apiserver.strategy import Object
from steersman.apiserver.unreadable import Unreadable
from steersman.apiserver.watchcache import Change, Entry, ResourceCache
from steersman.apiserver.watching import Channel, ConvertingChannel, Frame, Render, Watcher, bookmark, event_of, frame
from steersman.net import messages
from steersman.net.http import Messages, Stream, StreamResponse

MIN_TIMEOUT = 1800
BOOKMARK_EVERY = 60.0
BOOKMARK_BEFORE_END = 2.0


async def watch(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    choice = answers.accepted(x, answers.ONE, scope)
    options = list_options(x.info)
    name = x.info.name if x.info.verb == "watch" and "fieldSelector" not in x.info.query else ""
    selection = await large.read(x, select, scope, x.info.namespace, options, name)
    if "Table" in choice.transform:
        transform.check_level(x.info)
    after = rest.parse_option(options.resource_version)
    upgraded = messages.are_wanted(x.request.headers)
    if upgraded and (refused := messages.refusal(x.request.headers)):
        return refused
    session = _Session(core, scope, x, choice, options, selection, after)
    if after and not session.initial and after < scope.cache.floor:
        await session.recall()
    await session.prepare()
    media = f"{PROTOBUF};stream=watch" if choice.media_type == PROTOBUF else choice.media_type
    headers = (("Cache-Control", "no-cache, private"), ("Content-Type", media))
    if upgraded:
        return StreamResponse(101, session.run, headers, _BINARY if choice.media_type == PROTOBUF else _TEXT)
    return StreamResponse(200, session.run, headers)


def _frames(data: bytes) -> Iterator[bytes]:
    """The events in a stream of protobuf, where each follows its length."""
    at = 0
    while at < len(data):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "big")
        yield data[start:at]


_TEXT = Messages(lambda data: data.splitlines(keepends=True), text=True)
_BINARY = Messages(_frames, text=False)


class _Session:
    """One watch from its request to its end."""

    def __init__(
        self,
        core: Core,
        scope: ResourceScope,
        x: Exchange,
        choice: Accepted,
        options: ListOptions,
        selection: Selection,
        after: int,
    ) -> None:
        self.core = core
        self.scope = scope
        self.x = x
        self.choice = choice
        self.options = options
        self.selection = selection
        self.after = after
        self.recalled: list[Change] | None = None
        initial = options.send_initial_events
        self.initial = after == 0 if initial is None else initial
        self.marks_initial = options.allow_watch_bookmarks and self.initial
        self.timeout = float(options.timeout_seconds or random.uniform(MIN_TIMEOUT, 2 * MIN_TIMEOUT))  # noqa: S311

    async def recall(self) -> None:
        """Read changes that memory no longer has from the store's history."""
        self.recalled = await self.core.history(self.scope.cache, self.after)

    async def prepare(self) -> None:
        """Make everything readable that the watch begins with. Raises StoreReadError."""
        view = self.scope.view
        while pending := view.missing(self._first_entries()) if view.remote else []:
            try:
                await view.prepare(pending)
            except Unreadable as error:
                raise error.of_list(self.scope.group, self.scope.resource) from None

    def _first_entries(self) -> list[Entry]:
        cache = self.scope.cache
        if self.initial:
            return [cache.entries[key] for key in cache.select(self.selection.namespace)]
        if not self.after or self._too_old(cache):
            return []
        return [entry for change in self._missed(cache) for entry in (change.new, change.old) if entry is not None]

    async def run(self, stream: Stream) -> None:
        loop = asyncio.get_running_loop()
        watcher = Watcher(stream, self.after, loop.create_future())
        cache = self.scope.cache
        if self._too_old(cache):
            stream.write(self._expired())
            return
        try:
            if self.initial:
                not_older_than(self.core, self.after)
            await self.prepare()
        except ApiError as error:
            stream.write(self._error(error))
            return
        self._catch_up(watcher)
        key = self._key()
        channel = self.core.hub.join(cache, key, self._channel, watcher)
        gone = asyncio.ensure_future(stream.closed())
        gone.add_done_callback(lambda _: watcher.end())
        try:
            await self._keep(watcher, channel, loop.time() + self.timeout)
        finally:
            gone.cancel()
            self.core.hub.leave(cache, key, watcher)

    def _too_old(self, cache: ResourceCache) -> bool:
        return bool(self.after and not self.initial and self.recalled is None and self.after < cache.floor)

    def _expired(self) -> bytes:
        return self._error(Expired(f"too old resource version: {self.after} ({self.core.cache.revision})"))

    def _error(self, error: ApiError) -> bytes:
        return self._frame("ERROR", self._encode(error.to_status()))

    def _encode(self, content: Object) -> bytes:
        if self.choice.media_type == PROTOBUF:
            return kinds.protobuf_encoder().encode(content)
        return codec.encode(content)

    @property
    def _frame(self) -> Frame:
        if self.choice.media_type != PROTOBUF:
            return frame
        from steersman.apimachinery.codec.protobuf_encode import watch_frame  # few servers are asked for protobuf

        return watch_frame

    def _catch_up(self, watcher: Watcher) -> None:
        """Send what is there already; nothing is awaited, so no change can slip in between."""
        cache = self.scope.cache
        render = self._render
        if self.initial:
            for key in cache.select(self.selection.namespace):
                entry = cache.entries[key]
                if self.selection.matches(entry):
                    self._send(watcher, "ADDED", render(entry, not watcher.started))
            watcher.after = max(self.after, self.core.cache.revision)
            if self.marks_initial:
                watcher.stream.write(self._bookmark(watcher.after, initial=True))
            return
        if not self.after:
            watcher.after = self.core.cache.revision
            return
        for change in self._missed(cache):
            found = event_of(change, self.selection)
            if found is not None:
                self._send(watcher, found[0], render(found[1], not watcher.started))
        watcher.after = max(self.after, self.core.cache.revision)

    def _missed(self, cache: ResourceCache) -> Iterable[Change]:
        if self.recalled is None:
            return cache.since(self.after)
        last = self.recalled[-1].revision if self.recalled else self.after
        return [*self.recalled, *(change for change in cache.since(last))]

    def _send(self, watcher: Watcher, kind: str, body: bytes) -> None:
        data = self._frame(kind, body)
        watcher.stream.write(data)
        watcher.started = True
        self._count(kind, 1, len(data))

    async def _keep(self, watcher: Watcher, channel: Channel, deadline: float) -> None:
        """Stay until the client goes, the timeout comes, or the scope ends; send bookmarks when they are due."""
        loop = asyncio.get_running_loop()
        marks = self.options.allow_watch_bookmarks
        due = loop.time() + BOOKMARK_EVERY
        last = deadline - BOOKMARK_BEFORE_END if self.timeout > BOOKMARK_BEFORE_END else deadline
        while not watcher.ended.done():
            now = loop.time()
            if now >= deadline:
                return
            wake = min(deadline, due, last if last > now else deadline) if marks else deadline
            await asyncio.wait((watcher.ended,), timeout=wake - now)
            now = loop.time()
            if marks and not watcher.ended.done() and (now >= due or (last <= now < deadline)):
                channel.flush()
                told = channel.told(self.core.cache.revision)
                if told >= watcher.after:
                    watcher.stream.write(self._bookmark(told, initial=False))
                due = now + BOOKMARK_EVERY
                last = deadline

    def _bookmark(self, revision: int, *, initial: bool) -> bytes:
        scope = self.scope
        kind, api_version = scope.kind, scope.api_version
        if self.choice.transform:
            kind, api_version = self.choice.transform, f"meta.k8s.io/{self.choice.version}"
        return self._frame("BOOKMARK", self._encode(bookmark(api_version, kind, revision, initial=initial)))

    def _key(self) -> tuple[object, ...]:
        options = self.options
        return (
            self.scope.view,
            self.selection.namespace,
            self.selection.name,
            options.label_selector,
            options.field_selector,
            self.choice,
            self.x.info.first("includeObject"),
        )

    def _channel(self) -> Channel:
        make = ConvertingChannel if self.scope.view.remote else Channel
        return make(self.selection, self._render, self.choice.transform == "Table", self._count, self._frame)

    def _count(self, kind: str, sent: int, size: int) -> None:
        gvr = self.scope.gvr
        self.core.metrics.record_watch_event(gvr.group, gvr.version, gvr.resource, size, sent)

    @property
    def _render(self) -> Render:
        scope, transformed = self.scope, self.choice.transform
        if not transformed and self.choice.media_type == PROTOBUF:
            return lambda entry, header: answers.protobuf_body(scope, entry)
        if not transformed:
            return lambda entry, header: scope.view.wire(entry)

        def render(entry: Entry, header: bool) -> bytes:
            obj = scope.view.tree(entry)
            if transformed == "Table":
                meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
                out = transform.table(scope, [obj], meta, clock.now(), self.x.info, header=header)
            else:
                out = transform.partial(obj)
            return self._encode(transform.versioned(out, self.choice.version))

        return render
