"""Get, change, put, and again after a conflict: optimistic concurrency as the API has it.

Source: Kubernetes API conventions, "Concurrency Control and Consistency"; client-go `util/retry/util.go`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import orjson

from steersman.apimachinery.errors import ApiError, Conflict
from steersman.client.diff import Change, changes, writers
from steersman.client.options import wire
from steersman.client.resources import Kind, Object
from steersman.client.retry import Backoff
from steersman.client.transport import TransportError

T = TypeVar("T")


@dataclass(frozen=True)
class ConflictReport:
    """One lost race: what was read before the write, and what is there now.

    `attempt` counts from 1, `attempts` is how many will be made at most. `fresh` is None if the object could not be
    read again. `changes` are the fields that the other writer has changed, `writers` its names as managedFields tell
    them; str() puts all that in a line.
    """

    error: Conflict
    attempt: int
    attempts: int
    read: Object = field(repr=False)
    fresh: Object | None = field(repr=False)

    @cached_property
    def changes(self) -> list[Change]:
        """The fields that the other writer has changed, and how."""
        return [] if self.fresh is None else changes(self.read, self.fresh)

    @cached_property
    def writers(self) -> list[str]:
        """The field managers that have written in between."""
        return [] if self.fresh is None else writers(self.read, self.fresh)

    @property
    def replaced(self) -> bool:
        """Whether the object was deleted and made anew in between."""
        return self.fresh is not None and self.fresh["metadata"].get("uid") != self.read["metadata"].get("uid")

    def __str__(self) -> str:
        what = "; ".join(str(change) for change in self.changes) or self.error.message
        if self.replaced:
            what = "the object was deleted and created again"
        who = f", written by {', '.join(self.writers)}" if self.writers else ""
        return f"conflict in attempt {self.attempt} of {self.attempts}{who}: {what}"


class Modification(Generic[T]):
    """One `Client.modify`."""

    def __init__(
        self,
        kind: Kind[T],
        read: Callable[[], Awaitable[Object]],
        write: Callable[[Object], Awaitable[Object]],
        change: Callable[[T], T | None] | Callable[[T], Awaitable[T | None]],
        backoff: Backoff,
        on_conflict: Callable[[ConflictReport], None] | None,
    ) -> None:
        self._kind = kind
        self._read = read
        self._write = write
        self._change = change
        self._backoff = backoff
        self._on_conflict = on_conflict

    async def run(self) -> T:
        """See `Client.modify`."""
        delays = self._backoff.delays()
        attempt = 1
        read = await self._read()
        while True:
            try:
                # The change may work in place: it gets a copy, for the report needs the object as it was read.
                return await self._attempt(orjson.loads(orjson.dumps(read)))
            except Conflict as error:
                read = await self._again(error, attempt, read, next(delays, None))
            attempt += 1

    async def _attempt(self, current: Object) -> T:
        obj = self._kind.from_wire(current)
        before = orjson.dumps(wire(cast("Any", obj)), option=orjson.OPT_SORT_KEYS)
        outcome = self._change(obj)
        changed = await outcome if inspect.isawaitable(outcome) else outcome
        result = obj if changed is None else changed
        body = wire(cast("Any", result))
        if orjson.dumps(body, option=orjson.OPT_SORT_KEYS) == before:
            return result
        return self._kind.from_wire(await self._write(_guarded(body, orjson.loads(before))))

    async def _again(self, error: Conflict, attempt: int, read: Object, delay: float | None) -> Object:
        """The object to try again with; raises the Conflict when that was the last attempt."""
        if delay is None:
            if self._on_conflict is not None:
                self._report(error, attempt, read, await self._glance())
            raise error
        await asyncio.sleep(delay)
        fresh = await self._read()
        self._report(error, attempt, read, fresh)
        return fresh

    async def _glance(self) -> Object | None:
        """The object for a report only: that it cannot be read must not hide the Conflict."""
        try:
            return await self._read()
        except (ApiError, TransportError):
            return None

    def _report(self, error: Conflict, attempt: int, read: Object, fresh: Object | None) -> None:
        if self._on_conflict is not None:
            self._on_conflict(ConflictReport(error, attempt, self._backoff.steps, read, fresh))


def _guarded(body: Object, read: Object) -> Object:
    """`body` with the resourceVersion that was read: a change that returns a new object must not write blindly."""
    metadata = body.get("metadata") or {}
    version = read.get("metadata", {}).get("resourceVersion")
    if metadata.get("resourceVersion") == version:
        return body
    return {**body, "metadata": {**metadata, "resourceVersion": version}}
