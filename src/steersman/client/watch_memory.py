"""What a watch remembers: the last state of every object, by which it knows what is new.

The states are kept encoded: an object costs little more than its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import orjson

from steersman.client.pager import key_of
from steersman.client.resources import Object

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Key: TypeAlias = tuple[str, str]
"""(namespace, name) of an object; the namespace is "" for a cluster-scoped one."""


@dataclass(slots=True)
class Known:
    """The state of an object. `data` is its JSON."""

    uid: str
    version: str
    data: bytes

    @property
    def raw(self) -> Object:
        """The object; a new one at each call."""
        found: Object = orjson.loads(self.data)
        return found


class Told(NamedTuple):
    """What a watch tells: `raw` is the object, and its last state for DELETED; `before` the state told before."""

    type: EventType
    raw: Object
    initial: bool
    before: Known | None


class Memory:
    """The states of the objects that a watch has told of."""

    def __init__(self) -> None:
        self._known: dict[Key, Known] = {}

    def get(self, key: Key) -> Known | None:
        """The last state of an object."""
        return self._known.get(key)

    def tell(self, kind: EventType, raw: Object, initial: bool) -> Iterator[Told]:
        """What is to be told about an object, given what has been told before: nothing, if it has not changed."""
        key, metadata = key_of(raw), raw.get("metadata") or {}
        before = self._known.get(key)
        if kind == "DELETED":
            self._forget(key)
            if before is not None or not initial:
                yield Told("DELETED", raw, initial, before)
            return
        uid, version = metadata.get("uid") or "", metadata.get("resourceVersion") or ""
        if before is not None and before.version == version and before.uid == uid:
            return
        if before is not None and before.uid != uid:
            self._forget(key)
            yield Told("DELETED", before.raw, initial, before)
            before, kind = None, "ADDED"
        # A copy, for what orjson gives keeps the buffer that it was written into, which is up to four times as large.
        self._remember(key, Known(uid, version, bytes(memoryview(orjson.dumps(raw)))), raw)
        if before is not None:
            kind = "MODIFIED"
        elif initial:
            kind = "ADDED"
        yield Told(kind, raw, initial, before)

    def vanished(self, seen: set[Key], version: str) -> Iterator[Told]:
        """What a whole state of the collection, which was read at `version`, no longer has."""
        for key in [key for key in self._known if key not in seen]:
            before = self._known[key]
            self._forget(key)
            yield Told("DELETED", before.raw, True, before)

    def begin_anew(self) -> None:
        """The server has: resourceVersions to come may be lower than those known."""

    def _remember(self, key: Key, state: Known, raw: Object) -> None:
        self._known[key] = state

    def _forget(self, key: Key) -> None:
        self._known.pop(key, None)
