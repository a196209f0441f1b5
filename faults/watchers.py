"""Clients that watch, and write down what they are told: they resume where a stream ended, and begin anew after 410."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

from faults.history import History, Segment, Told, Violation
from faults.requests import PATHS, Connection, now
from faults.writers import LABEL, value_of, version_of
from steersman.client.transport import TransportError

_PAUSE = 0.5
_SILENCE = 20.0
"""Seconds without a word after which a stream is taken for dead; the server is asked to end it before."""


class _Expired(Exception):
    """The server has forgotten where the watcher was."""


@dataclass
class Watcher:
    """Follows the objects of `plural`, or those of a color. `streamed`: it has its state told by the watch itself
    (WatchList). `slowness` is how long it takes over what arrives at once, in seconds."""

    name: str
    connection: Connection
    history: History
    chance: Random
    plural: str
    color: str | None = None
    streamed: bool = False
    slowness: float = 0.0
    version: int = 0
    """How far it has come; 0 while it has no state."""

    async def run(self) -> None:
        """Follows until it is cancelled."""
        while True:
            await self.connection.serving.wait()
            try:
                if not self.version and not self.streamed:
                    await self._list()
                else:
                    await self._follow()
            except _Expired:
                self.history.counts["watches begun anew after 410"] += 1
                self.version = 0
            except (TransportError, TimeoutError):
                self.history.counts["broken watches"] += 1
                await asyncio.sleep(self.chance.uniform(0, _PAUSE))

    @property
    def _selected(self) -> dict[str, str]:
        return {"labelSelector": LABEL if self.color is None else f"{LABEL}={self.color}"}

    async def _list(self) -> None:
        answer = await self.connection.ask("GET", PATHS[self.plural], self._selected)
        if answer.status != 200:
            self._judge(answer.status, answer.body)
            return
        state = {told.key: told for told in (self._told("ADDED", item) for item in answer.body["items"])}
        self._begin(version_of(answer.body), state)

    def _begin(self, version: int, initial: dict[str, Told] | None) -> Segment:
        segment = Segment(self.name, self.plural, self.color, version, initial, last=version)
        self.history.segments.append(segment)
        self.version = version
        return segment

    async def _follow(self) -> None:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self.chance.randint(3, 15)),
            **self._selected,
        }
        initial: dict[str, Told] | None = None
        if self.version:
            query["resourceVersion"] = str(self.version)
        else:
            initial = {}
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with self.connection.stream(PATHS[self.plural], query) as stream:
            if stream.status != 200:
                body = b"".join([chunk async for chunk in stream.chunks])
                self._judge(stream.status, orjson.loads(body) if body.startswith(b"{") else body)
                return
            segment = None if initial is not None else self._begin(self.version, None)
            async for kind, obj in self._events(stream.chunks):
                if kind == "ERROR":
                    self._judge(obj.get("code", 0), obj)
                elif segment is None:
                    assert initial is not None
                    segment = self._initially(kind, obj, initial)
                elif kind == "BOOKMARK":
                    self.history.counts["bookmarks"] += 1
                    self._come_to(segment, version_of(obj))
                else:
                    segment.events.append(self._told(kind, obj))
                    self._come_to(segment, version_of(obj))

    def _initially(self, kind: str, obj: Any, state: dict[str, Told]) -> Segment | None:
        if kind == "BOOKMARK":
            if "k8s.io/initial-events-end" in obj["metadata"].get("annotations", {}):
                return self._begin(version_of(obj), state)
        elif kind == "ADDED":
            told = self._told("ADDED", obj)
            state[told.key] = told
        else:
            self._complain(f"{self.name} is told {kind} before the state is complete")
        return None

    def _come_to(self, segment: Segment, version: int) -> None:
        if version < segment.last:
            self._complain(f"{self.name} is told version {version} after {segment.last}")
        segment.last = self.version = version

    async def _events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, Any]]:
        """The lines of a stream; what is incomplete when it breaks is not told."""
        rest = b""
        while True:
            async with asyncio.timeout(_SILENCE):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = orjson.loads(line)
                yield event["type"], event["object"]
            if self.slowness:
                await asyncio.sleep(self.slowness)

    def _told(self, kind: Any, obj: Any) -> Told:
        self.history.counts["watch events"] += 1
        return Told(kind, f"{self.plural}/{obj['metadata']['name']}", version_of(obj), value_of(obj), now())

    def _judge(self, status: int, body: Any) -> None:
        """An answer, or the end of a stream, that is not what was asked for. Raises _Expired, TransportError."""
        if status == 410:
            raise _Expired
        if status not in (429, 500, 503, 504):
            self._complain(f"{self.name} at version {self.version}: {status} {body}")
        raise TransportError(f"answered {status}")

    def _complain(self, text: str) -> None:
        self.history.violations.append(Violation("watches are in order", text))
