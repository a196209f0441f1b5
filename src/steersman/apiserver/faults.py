"""Faults on purpose: what a client must bear of an API server and a network, when a test wants it to.

A plan has faults, and a seed: which of the matching requests they strike is decided by a generator of random numbers
of each fault's own, so that the same requests in the same order meet the same faults.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import orjson

from steersman.apimachinery.errors import (
    ApiError,
    Expired,
    InternalError,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    conflict,
    qualified,
)
from steersman.apimachinery.request_info import RequestInfo
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.rest import OPTIMISTIC_LOCK
from steersman.net.http import Stream, StreamResponse

WatchFault = Literal["drop", "end", "expire", "silence"]
Moment = Literal["before", "after"]
_SOON = 0.005
_STATUSES: Mapping[int, Callable[[str], ApiError]] = {
    410: Expired,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: Timeout,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to which requests. Those that fit all of the first six strike; empty ones fit all.

    `resources` are such as "pods", "deployments.apps" or "deployments.apps/status", `user_agents` beginnings. Of the
    requests that fit, the first `after` are left alone, then one in `every` is struck, with a `probability`, `times`
    at most (None: for ever).

    `delay` is in seconds, and delays a watch's events. `status` (409, 410, 429, 500, 503, 504) refuses the request,
    `retry_after` in seconds. `disconnect` cuts the connection off, before the request is carried out or after it: then
    the client cannot know that it was. `watch` strikes a watch once `events` have been sent: its connection is cut off
    ("drop"), it ends in order ("end"), ends with 410 ("expire"), or says nothing any more ("silence").
    """

    verbs: Sequence[str] = ()
    resources: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    names: Sequence[str] = ()
    user_agents: Sequence[str] = ()
    users: Sequence[str] = ()
    after: int = 0
    every: int = 1
    times: int | None = None
    probability: float = 1.0
    delay: float = 0.0
    status: int = 0
    retry_after: int = 0
    disconnect: Moment | None = None
    watch: WatchFault | None = None
    events: int = 0

    def __post_init__(self) -> None:
        if self.status not in (0, 409, *_STATUSES):
            raise ValueError(f"a status of {self.status} cannot be made: it is one of 409, {_words(_STATUSES)}")
        if self.disconnect not in (None, *get_args(Moment)):
            raise ValueError(f"disconnect is {_words(get_args(Moment))}, not {self.disconnect!r}")
        if self.watch not in (None, *get_args(WatchFault)):
            raise ValueError(f"watch is one of {_words(get_args(WatchFault))}, not {self.watch!r}")
        if sum(map(bool, (self.status, self.disconnect, self.watch))) > 1:
            raise ValueError("a fault has one of status, disconnect and watch")
        if not (self.status or self.disconnect or self.watch or self.delay > 0):
            raise ValueError("a fault needs a delay, a status, disconnect or watch")
        if self.every < 1 or self.after < 0 or self.events < 0 or self.delay < 0 or not 0 <= self.probability <= 1:
            raise ValueError(
                "every is at least 1, after, events and delay are not negative, probability is from 0 to 1"
            )

    def fits(self, x: Exchange) -> bool:
        """Whether a request is one of those that are meant."""
        info = x.info
        return (
            (not self.verbs or info.verb in self.verbs)
            and (not self.resources or _resource(info) in self.resources)
            and (not self.namespaces or info.namespace in self.namespaces)
            and (not self.names or info.name in self.names)
            and (not self.users or x.user.name in self.users)
            and (not self.user_agents or x.request.headers.get("user-agent", "").startswith(tuple(self.user_agents)))
            and (self.watch is None or info.verb == "watch")
        )


@dataclass(slots=True)
class _Armed:
    """A fault, and what it has done so far."""

    fault: Fault
    chance: random.Random
    seen: int = 0
    struck: int = 0

    def strikes(self, x: Exchange) -> bool:
        fault = self.fault
        if not fault.fits(x) or (fault.times is not None and self.struck >= fault.times):
            return False
        self.seen += 1
        due = self.seen > fault.after and (self.seen - fault.after) % fault.every == 0
        if not due or self.chance.random() >= fault.probability:
            return False
        self.struck += 1
        return True


@dataclass(slots=True)
class FaultPlan:
    """Faults, of which the first that strikes a request is carried out. May be changed at any time."""

    seed: int = 0
    _armed: list[_Armed] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        """One more fault, after those that there are."""
        chance = random.Random(f"{self.seed}/{len(self._armed)}")  # noqa: S311 -- to be repeated, not to be secret
        self._armed = [*self._armed, _Armed(fault, chance)]

    def clear(self) -> None:
        """No faults any more; watches that are silent stay so."""
        self._armed = []

    @property
    def struck(self) -> int:
        """How many requests have met a fault."""
        return sum(armed.struck for armed in self._armed)

    def strike(self, x: Exchange) -> Fault | None:
        """The fault that a request meets."""
        return next((armed.fault for armed in self._armed if armed.strikes(x)), None)

    async def around(self, x: Exchange, endpoint: Callable[[], Awaitable[Answer]]) -> Answer:
        """What a request is answered that `endpoint` would carry out. Raises ApiError."""
        fault = self.strike(x) if self._armed else None
        if fault is None:
            return await endpoint()
        if fault.delay and x.info.verb != "watch":
            await asyncio.sleep(fault.delay)
        if fault.status:
            raise _refusal(fault, x.info)
        if fault.disconnect == "before":
            return StreamResponse(200, _cut_off)
        answer = await endpoint()
        if fault.disconnect == "after":
            return StreamResponse(200, _cut_off)
        if isinstance(answer, StreamResponse) and x.info.verb == "watch":
            answer.run = _Disturbance(fault, answer).run
        return answer


def parse_plan(content: Any) -> FaultPlan:
    """The plan that a file states, as {"seed": 1, "faults": [{"verbs": ["update"], "status": 409}, ...]}.

    Raises ValueError, which says where what is wrong.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("faults"), list):
        raise ValueError("a plan of faults is a mapping with a list of faults")
    if unknown := {*content} - {"seed", "faults"}:
        raise ValueError(f"unknown field {min(unknown)!r}: a plan has seed and faults")
    seed = content.get("seed", 0)
    if type(seed) is not int:
        raise ValueError("seed is an integer")
    plan = FaultPlan(seed)
    for number, item in enumerate(content["faults"]):
        try:
            plan.add(Fault(**dict(_typed(item))))
        except ValueError as error:
            raise ValueError(f"faults[{number}]: {error}") from None
    return plan


_KINDS = {each.name: str(each.type).partition(" |")[0] for each in fields(Fault)}


def _typed(item: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(item, Mapping):
        raise ValueError("a fault is a mapping")
    for key, value in item.items():
        kind = _KINDS.get(key)
        if kind is None:
            raise ValueError(f"unknown field {key!r}: a fault has {_words(_KINDS)}")
        if kind == "Sequence[str]":
            if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
                raise ValueError(f"{key} is a list of strings")
        elif kind == "int" and type(value) is not int:
            raise ValueError(f"{key} is an integer")
        elif kind == "float" and type(value) not in (int, float):
            raise ValueError(f"{key} is a number")
        yield key, value


def _words(items: Any) -> str:
    return ", ".join(map(str, items))


def _resource(info: RequestInfo) -> str:
    name = qualified(info.group, info.resource)
    return f"{name}/{info.subresource}" if info.subresource else name


def _refusal(fault: Fault, info: RequestInfo) -> ApiError:
    if fault.status == 409:
        return conflict(info.group, info.resource, info.name, OPTIMISTIC_LOCK)
    error = _STATUSES[fault.status]("a fault was planned here")
    if fault.retry_after:
        error.details = {**(error.details or {}), "retryAfterSeconds": fault.retry_after}
    return error


async def _cut_off(stream: Stream) -> None:
    stream.abort()


class _Disturbance:
    """A watch's stream that is delayed, or breaks."""

    def __init__(self, fault: Fault, answer: StreamResponse) -> None:
        self._fault = fault
        self._run = answer.run
        self._is_json = any(name == "Content-Type" and "json" in value for name, value in answer.headers)
        self._stream: Stream
        self._sent = 0
        self._broken = asyncio.Event()

    async def run(self, stream: Stream) -> None:
        self._stream = stream
        if self._fault.watch and not self._fault.events:
            self._break()
        inner = asyncio.ensure_future(self._run(self))
        broken = asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait((inner, broken), return_when=asyncio.FIRST_COMPLETED)
            if inner.done():
                inner.result()
        finally:
            for task in (inner, broken):
                task.cancel()
            await asyncio.wait((inner, broken))

    def write(self, data: bytes) -> None:
        self._send(self._stream.write, data)

    def write_chunk(self, chunk: bytes) -> None:
        self._send(self._stream.write_chunk, chunk)

    @property
    def buffered(self) -> int:
        return self._stream.buffered

    def abort(self) -> None:
        self._stream.abort()

    async def closed(self) -> None:
        await self._stream.closed()

    def _send(self, write: Callable[[bytes], None], data: bytes) -> None:
        if self._fault.watch and self._sent >= self._fault.events:
            return
        if self._fault.delay:
            asyncio.get_running_loop().call_later(self._fault.delay, write, data)
        else:
            write(data)
        self._sent += max(data.count(b"\n{") + data.startswith(b"{"), 1)
        if self._fault.watch and self._sent >= self._fault.events:
            self._break()

    def _break(self) -> None:
        kind, loop = self._fault.watch, asyncio.get_running_loop()
        if kind == "drop":
            loop.call_later(self._fault.delay + _SOON, self._stream.abort)  # what was sent before has left by then
        elif kind == "expire" and self._is_json:
            status = Expired("too old resource version: a fault was planned here").to_status()
            self._stream.write(orjson.dumps({"type": "ERROR", "object": status}) + b"\n")
        if kind in ("end", "expire"):
            self._broken.set()
