"""The gate that every request passes: at once, after a while, or not at all.

There is one event loop, so requests compete for two things: seats, which they keep while they wait for others (the
store, webhooks), and the loop's time. Who finds the loop busy with others' requests in the same turn waits in the same
queues as who finds no seat.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from steersman._util.dataclass import dataclass
from steersman.api.flowcontrol.fixed import LEVELS, MANDATORY, SCHEMAS, fixed
from steersman.apiserver.authz.attributes import Attributes
from steersman.apiserver.flowcontrol.levels import Level, Waiter, charge, share_out
from steersman.apiserver.flowcontrol.matching import Schema
from steersman.apiserver.watchcache import Change, ResourceCache

TURN = 0.002
"""Seconds of one turn of the event loop that are given to requests before others have to queue."""
WAIT = 15.0
"""Seconds after which a request waits no longer (a quarter of the time that requests have)."""
_MAX_BATCH = 64
_MAX_REMEMBERED = 4096
_MAX_KEY = 512


class Rejected(Exception):
    """There is no place for the request: 429."""


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """Where requests of a kind belong. `headers` tell clients of it."""

    schema: Schema
    level: Level
    flow: str
    headers: tuple[tuple[str, str], ...]


class Fairness:
    """Follows the stored FlowSchemas and PriorityLevelConfigurations. `seats` are shared out among the levels."""

    def __init__(self, schemas: ResourceCache, levels: ResourceCache, seats: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._stored = {SCHEMAS: schemas, LEVELS: levels}
        self._seats = seats
        self._levels: dict[str, Level] = {}
        self._schemas: list[Schema] = []
        self._known: dict[tuple[object, ...], Class] = {}
        self._stale = True
        self._in_turn = False
        self._turn_began = 0.0
        self._batch = 1
        self._passed: dict[Level, float] = {}
        for cache in (schemas, levels):
            cache.watchers.append(self._changed)

    def _changed(self, change: Change) -> None:
        self._stale = True

    # Classification.

    def classify(self, attributes: Attributes) -> Class:
        """Where a request belongs."""
        user = attributes.user
        key = (user.name, user.groups, *attributes[1:7], "" if attributes.resource_request else attributes.path)
        if self._stale:
            self._load()
        found = self._known.get(key)
        return found if found is not None else self._classify(attributes, key)

    def _classify(self, attributes: Attributes, key: tuple[Any, ...]) -> Class:
        schema = next(each for each in self._schemas if each.match(attributes))
        level = self._levels[schema.level]
        headers: tuple[tuple[str, str], ...] = ()
        if schema.uid and level.uid:
            headers = (
                ("X-Kubernetes-Pf-Flowschema-Uid", schema.uid),
                ("X-Kubernetes-Pf-Prioritylevel-Uid", level.uid),
            )
        found = Class(schema, level, f"{schema.name}\0{schema.flow(attributes)}", headers)
        if sum(len(part) for part in key if isinstance(part, str)) <= _MAX_KEY:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            self._known[key] = found
        return found

    def _load(self) -> None:
        """Read the stored configuration; what a server cannot be without is there even when it is not stored."""
        self._stale = False
        self._known.clear()
        levels = self._specs(LEVELS)
        for name, (uid, spec) in levels.items():
            self._levels.setdefault(name, Level(name)).configure(uid, spec)
        for name, level in tuple(self._levels.items()):
            if name not in levels:
                level.gone = True
                if not (level.running or level.waiting):
                    del self._levels[name]
        share_out([level for level in self._levels.values() if not level.gone], self._seats)
        found = [Schema.of(name, uid, spec) for name, (uid, spec) in self._specs(SCHEMAS).items()]
        served = [each for each in found if each.level in levels]
        everyone = ("exempt", "catch-all")  # the first and the last, whatever else is configured
        self._schemas = sorted(served, key=lambda each: (each.name == everyone[1], each.precedence, each.name))

    def _specs(self, kind: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
        found: dict[str, tuple[str, Mapping[str, Any]]] = {name: ("", fixed(kind)[name]) for name in MANDATORY}
        for entry in self._stored[kind].entries.values():
            obj = entry.decode()
            name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
            mandatory = name in MANDATORY and name != "exempt"
            found[name] = (uid, fixed(kind)[name] if mandatory else obj["spec"])
        return found

    # Letting in.

    def try_enter(self, level: Level, now: float) -> bool:
        """Let a request in if nothing speaks against it; `now` is a time.perf_counter(). False: it has to wait."""
        if not self._in_turn:
            self._in_turn = True
            self._turn_began = now
            self._loop.call_soon(self._next_turn)
        elif now - self._turn_began > TURN:
            return False
        if level.waiting or not self._has_seat(level):
            return False
        level.running += 1
        return True

    async def enter(self, found: Class) -> Waiter:
        """Wait until a request may go on. Raises Rejected."""
        level = found.level
        queue = level.queue_for(found.flow)
        if queue is None or (not level.queues and not self._has_seat(level)):
            raise Rejected
        waiter = level.wait(queue, self._loop)
        self._passed.setdefault(level, min(self._passed.values(), default=0.0))
        try:
            async with asyncio.timeout(WAIT):
                await waiter.ready
        except BaseException as error:
            if waiter.ready.done() and not waiter.ready.cancelled():
                self._release(level)
            else:
                level.forget(waiter)
            if isinstance(error, TimeoutError):
                raise Rejected from None
            raise
        return waiter

    def leave(self, level: Level, waiter: Waiter | None, began: float) -> None:
        """Give a seat back that was taken when time.perf_counter() was `began`, after waiting or not."""
        if waiter is not None:
            charge(waiter, time.perf_counter() - began)
        self._release(level)

    def _release(self, level: Level) -> None:
        level.running -= 1
        if self._passed and not self._in_turn:
            self._in_turn = True
            self._turn_began = time.perf_counter()
            self._loop.call_soon(self._next_turn)

    def _has_seat(self, level: Level) -> bool:
        if level.running < level.nominal:
            return True
        lent = sum(each.idle_lendable for each in self._levels.values() if each is not level)
        return level.running < level.nominal + min(lent, level.borrowable)

    def _next_turn(self) -> None:
        """A new turn of the loop: those who wait go first, as many as fit into it."""
        self._in_turn = False
        if not self._passed:
            return
        now = time.perf_counter()
        spent = now - self._turn_began
        if spent < TURN:
            self._batch = min(_MAX_BATCH, self._batch * 2)
        elif spent > 2 * TURN:
            self._batch = max(1, self._batch // 2)
        for _ in range(self._batch):
            if not self._let_next_in():
                break
        if any(level.waiting and self._has_seat(level) for level in self._passed):
            self._in_turn = True
            self._turn_began = now
            self._loop.call_soon(self._next_turn)

    def _let_next_in(self) -> bool:
        """Let one request in, of the level that is most behind; False when none may."""
        for level in sorted(self._passed, key=self._passed.__getitem__):
            if not level.waiting:
                del self._passed[level]
                continue
            if not self._has_seat(level):
                continue
            waiter = level.next()
            if waiter is None:
                continue
            level.running += 1
            waiter.ready.set_result(None)
            self._passed[level] += 1 / max(1, level.shares)
            return True
        return False
