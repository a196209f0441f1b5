"""The watch's promise, against a server that fails at random places: nothing lost, nothing told twice, order kept."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.client import Backoff, Client, Config, Resource, TransportError
from steersman.client.transport import Headers, RawResponse, RawStream

MAPS = Resource("v1", "ConfigMap", "configmaps", True)
BACKOFF = Backoff(steps=1, duration=0.0)


class Flaky:
    """A server's transport with a history of events, which it cuts, forgets, and refuses to continue, by chance."""

    def __init__(self, chance: random.Random, steps: int) -> None:
        self._chance = chance
        self._steps = steps
        self.version = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self._history: list[tuple[int, str, dict[str, Any]]] = []
        self._oldest = 0

    @property
    def done(self) -> bool:
        return self.version >= self._steps

    def versions(self) -> dict[str, int]:
        return {name: int(obj["metadata"]["resourceVersion"]) for name, obj in self.objects.items()}

    async def request(
        self, method: str, path: str, query: str = "", headers: Headers = (), body: Any = None, timeout: Any = None
    ) -> RawResponse:
        await asyncio.sleep(0)
        if self._chance.random() < 0.2:
            raise TransportError("no list today")
        self._write()
        items = sorted(self.objects.values(), key=lambda obj: str(obj["metadata"]["name"]))
        answer = {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        return RawResponse(200, (), orjson.dumps(answer))

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, query: str = "", headers: Headers = (), body: Any = None, timeout: Any = None
    ) -> AsyncIterator[RawStream]:
        await asyncio.sleep(0)
        parameters = {key: values[0] for key, values in parse_qs(query).items()}
        if self._chance.random() < 0.1:
            raise TransportError("no watch today")
        if self._chance.random() < 0.2:
            self._oldest = self.version
            self._history.clear()
        start = int(parameters["resourceVersion"]) if "resourceVersion" in parameters else None
        if start is not None and start < self._oldest:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            if self._chance.random() < 0.5:
                yield RawStream(410, (), _pieces([orjson.dumps(gone)], self._chance, cut=False))
            else:
                yield RawStream(200, (), _pieces([_line("ERROR", gone)], self._chance, cut=False))
            return
        yield RawStream(200, (), _pieces(self._events(start), self._chance, cut=not self.done))

    async def close(self) -> None:
        pass

    def _events(self, start: int | None) -> list[bytes]:
        lines: list[bytes] = []
        if start is None:
            lines += [_line("ADDED", obj) for obj in self.objects.values()]
            start = self.version
            mark = {"resourceVersion": str(start), "annotations": {"k8s.io/initial-events-end": "true"}}
            lines.append(_line("BOOKMARK", {"metadata": mark}))
        for _ in range(self._chance.randrange(6)):
            self._write()
        lines += [_line(kind, obj) for version, kind, obj in self._history if version > start]
        if self._chance.random() < 0.3:
            lines.append(_line("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}))
        return lines

    def _write(self) -> None:
        """One change, now and then more, and now and then the past is forgotten."""
        if self.done:
            return
        self.version += 1
        name = "end" if self.done else self._chance.choice("abcd")
        old = self.objects.get(name)
        if old is not None and self._chance.random() < 0.3:
            del self.objects[name]
            gone = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
            self._history.append((self.version, "DELETED", gone))
        else:
            uid = old["metadata"]["uid"] if old else f"{name}-{self.version}"
            metadata = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(self.version)}
            self.objects[name] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            self._history.append((self.version, "MODIFIED" if old else "ADDED", self.objects[name]))


def _line(kind: str, obj: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


async def _pieces(lines: list[bytes], chance: random.Random, *, cut: bool) -> AsyncIterator[bytes]:
    text = b"".join(lines)
    end = chance.randrange(len(text) + 1) if cut and chance.random() < 0.7 else len(text)
    while text[:end]:
        size = chance.randint(1, 400)
        yield text[: min(size, end)]
        text, end = text[size:], max(end - size, 0)
    if cut and chance.random() < 0.5:
        raise TransportError("cut")


async def _follow(server: Flaky, initial: Any) -> None:
    told: dict[str, tuple[str, int]] = {}
    async with (
        Client(Config(""), transport=server) as client,
        client.watch(MAPS, initial=initial, backoff=BACKOFF, on_error=lambda error: None) as events,
    ):
        while "end" not in told or {name: version for name, (_, version) in told.items()} != server.versions():
            event = await anext(events)
            metadata = event.object["metadata"]
            name, uid, version = metadata["name"], metadata["uid"], int(metadata["resourceVersion"])
            before = told.get(name)
            if event.type == "ADDED":
                assert before is None
                told[name] = (uid, version)
            elif event.type == "MODIFIED":
                assert before is not None
                assert before[0] == uid
                assert before[1] < version
                told[name] = (uid, version)
            else:
                assert before is not None
                assert before[0] == uid
                del told[name]


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=True), st.integers(1, 60), st.sampled_from(["list", "watchlist"]))
def test_whatever_fails_the_state_is_reached_in_order(chance: random.Random, steps: int, initial: str) -> None:
    async def run() -> None:
        async with asyncio.timeout(30):
            await _follow(Flaky(chance, steps), initial)

    asyncio.run(run())
