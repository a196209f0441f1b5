"""Faults on purpose: what a client must bear of an API server, its webhooks and a network, when a test wants it to.

A plan has faults, and a seed: which of the matching requests they strike is decided by a generator of random numbers
of each fault's own, so that the same requests in the same order meet the same faults. As a file (`steersman serve
--faults plan.yaml`) it is a mapping with `seed` (an integer, 0 by default) and `faults`, a list of mappings whose
fields are those of `Fault`:

    seed: 7
    faults:
    - {verbs: [update, patch], resources: [deployments.apps], status: 409, probability: 0.3}   # a storm of conflicts
    - {verbs: [list], after: 10, times: 3, status: 429, retry_after: 2}
    - {resources: [configmaps], probability: 0.05, status: 500}
    - {verbs: [watch], delay: 0.5}                                 # events arrive late
    - {verbs: [watch], watch: drop, events: 20}                    # connections break
    - {verbs: [create], disconnect: after, every: 10}              # was it created, or not?
    - {webhooks: ["*"], delay: 12, probability: 0.1}               # slow webhooks
    - {webhooks: [check.myorg.io], garbage: true, times: 1}
    - {after: 500, times: 1, compact: true}                        # old revisions are forgotten
    - {after: 1000, times: 1, restart: 2}                          # the server is away for two seconds
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from steersman.net.calls import CallError, Reply
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

    `compact` forgets, before the request is carried out, all that was overwritten or deleted: lists that go on and
    watches that begin at an older resourceVersion are told 410 Expired, as after a compaction of etcd that the watch
    cache does not reach back behind. `restart` cuts off all connections, and refuses new ones for so many seconds.

    With `webhooks` (names of admission webhooks, names of CustomResourceDefinitions whose conversion webhook is meant,
    "*" for all) the calls of these are struck, and none of the other conditions on requests may be given: they take
    `delay` seconds longer (until the webhook's own time is up), are answered with an error `status` (400 to 599), are
    disconnected, or with `garbage` answered with what is no review.

    Raises ValueError, which names the field, for what makes no sense.
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
    compact: bool = False
    restart: float | None = None
    webhooks: Sequence[str] = ()
    garbage: bool = False

    def __post_init__(self) -> None:
        for each in fields(self):
            _check_field(each.name, getattr(self, each.name))
        if self.webhooks:
            self._check_of_webhooks()
        elif self.garbage:
            raise ValueError("garbage is what webhooks answer: name them")
        elif self.status not in (0, 409, *_STATUSES):
            raise ValueError(f"a status of {self.status} cannot be made: it is one of 409, {_words(_STATUSES)}")
        if self.disconnect not in (None, *get_args(Moment)):
            raise ValueError(f"disconnect is {_words(get_args(Moment))}, not {self.disconnect!r}")
        if self.watch not in (None, *get_args(WatchFault)):
            raise ValueError(f"watch is one of {_words(get_args(WatchFault))}, not {self.watch!r}")
        chosen = (self.status, self.disconnect, self.watch, self.compact, self.restart is not None, self.garbage)
        if sum(map(bool, chosen)) > 1:
            raise ValueError("a fault has one of status, disconnect, watch, compact, restart and garbage")
        if not (any(chosen) or self.delay > 0):
            raise ValueError("a fault needs a delay, a status, disconnect, watch, compact, restart or garbage")

    def _check_of_webhooks(self) -> None:
        if any((self.verbs, self.resources, self.namespaces, self.names, self.user_agents, self.users)):
            raise ValueError("a fault of webhooks has no conditions on requests")
        if self.watch or self.compact or self.restart is not None:
            raise ValueError("a fault of webhooks has a delay, a status, disconnect or garbage")
        if self.status and not 400 <= self.status <= 599:
            raise ValueError(f"a webhook's status of {self.status} is no error: it is from 400 to 599")

    def fits(self, x: Exchange) -> bool:
        """Whether a request is one of those that are meant."""
        info = x.info
        return (
            not self.webhooks
            and (not self.verbs or info.verb in self.verbs)
            and (not self.resources or _resource(info) in self.resources)
            and (not self.namespaces or info.namespace in self.namespaces)
            and (not self.names or info.name in self.names)
            and (not self.users or x.user.name in self.users)
            and (not self.user_agents or x.request.headers.get("user-agent", "").startswith(tuple(self.user_agents)))
            and (self.watch is None or info.verb == "watch")
        )

    def fits_webhook(self, name: str) -> bool:
        """Whether a webhook is one of those that are meant."""
        return name in self.webhooks or "*" in self.webhooks


@dataclass(slots=True)
class _Armed:
    """A fault, and what it has done so far."""

    fault: Fault
    chance: random.Random
    seen: int = 0
    struck: int = 0

    def strikes(self) -> bool:
        """Whether one that fits is struck."""
        fault = self.fault
        if fault.times is not None and self.struck >= fault.times:
            return False
        self.seen += 1
        due = self.seen > fault.after and (self.seen - fault.after) % fault.every == 0
        if not due or self.chance.random() >= fault.probability:
            return False
        self.struck += 1
        return True


@dataclass(slots=True)
class FaultPlan:
    """Faults, of which the first that strikes a request is carried out. May be changed at any time.

    `interrupt` cuts off all connections and refuses new ones for some seconds; a server that listens sets it.
    """

    seed: int = 0
    interrupt: Callable[[float], None] | None = field(default=None, repr=False)
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

    def strike(self, fits: Callable[[Fault], bool]) -> Fault | None:
        """The fault that a request, or the call of a webhook, meets."""
        return next((armed.fault for armed in self._armed if fits(armed.fault) and armed.strikes()), None)

    async def around(
        self, x: Exchange, endpoint: Callable[[], Awaitable[Answer]], forget: Callable[[], Awaitable[None]]
    ) -> Answer:
        """What a request is answered that `endpoint` would carry out; `forget` compacts. Raises ApiError."""
        fault = self.strike(lambda fault: fault.fits(x)) if self._armed else None
        if fault is None:
            return await endpoint()
        if fault.delay and x.info.verb != "watch":
            await asyncio.sleep(fault.delay)
        if fault.compact:
            await forget()
        if fault.restart is not None and self.interrupt is not None:
            self.interrupt(fault.restart)
            return StreamResponse(200, _cut_off)
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

    async def around_webhook(self, name: str, call: Callable[[], Awaitable[Reply]]) -> Reply:
        """What a webhook answers that `call` would ask. Raises CallError."""
        fault = self.strike(lambda fault: fault.fits_webhook(name)) if self._armed else None
        if fault is None:
            return await call()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.status:
            later = str(fault.retry_after or "")
            return Reply(fault.status, "text/plain", b"a fault was planned here", retry_after=later)
        if fault.garbage:
            return Reply(200, "application/json", b'{"planned": "fault"')
        if fault.disconnect != "before":
            reply = await call()
        if fault.disconnect:
            raise CallError("EOF")
        return reply


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
            plan.add(Fault(**_named(item)))
        except ValueError as error:
            raise ValueError(f"faults[{number}]: {error}") from None
    return plan


_KINDS = {each.name: each.type for each in fields(Fault)}
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_LEAST = {"every": 1, "times": 1}


def _named(item: Any) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise ValueError("a fault is a mapping")
    for key in item:
        if key not in _KINDS:
            raise ValueError(f"unknown field {key!r}: a fault has {_words(_KINDS)}")
    return item


def _check_field(name: str, value: Any) -> None:
    """Raises ValueError that names the field; the words that a field may have are checked elsewhere."""
    kind = str(_KINDS[name])
    if value is None and kind.endswith("| None"):
        return
    if kind == "Sequence[str]":
        _check_strings(name, value)
    elif kind == "bool" and type(value) is not bool:
        raise ValueError(f"{name} is true or false, not {value!r}")
    elif kind.startswith("int"):
        if type(value) is not int:
            raise ValueError(f"{name} is an integer, not {value!r}")
        if value < _LEAST.get(name, 0):
            raise ValueError(f"{name} is at least {_LEAST.get(name, 0)}, not {value}")
    elif kind.startswith("float"):
        _check_number(name, value)


def _check_strings(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        raise ValueError(f"{name} is a list of strings, not {value!r}")
    unknown = [verb for verb in value if verb not in _VERBS] if name == "verbs" else []
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of the verbs: {_words(_VERBS)}")


def _check_number(name: str, value: Any) -> None:
    if type(value) not in (int, float):
        raise ValueError(f"{name} is a number, not {value!r}")
    if name == "probability":
        if not 0 <= value <= 1:
            raise ValueError(f"probability is from 0 to 1, not {value}")
    elif not 0 <= value < math.inf:
        raise ValueError(f"{name} is a number of seconds, not {value}: 0 or more, and not infinite")


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
