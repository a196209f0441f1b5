"""The objects of one informer: what the watch has told, and what we have written ourselves since.

Source: client-go `tools/cache/thread_safe_store.go` (indexes); controller-runtime `pkg/client/consistency.go` (reading
one's own writes).
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

from steersman.client.pager import key_of
from steersman.client.resources import Object
from steersman.client.watch_memory import EventType, Key, Known, Memory, Told

logger = logging.getLogger("steersman.runtime")

IndexFunc = Callable[[Object], Iterable[str]]
"""The values by which an object is found in an index; one for which it fails is not found."""

Transform = Callable[[Object], Object]
"""What is kept of an object; may change it in place."""

TRUST = 60.0
"""Seconds for which a state that we have written is held against older ones from the watch. The watch catches up within
moments; only a cluster that was restored from a backup never does."""


def is_newer(version: str, other: str) -> bool:
    """Whether a resourceVersion is later than another of the same kind (KEP-5504: they compare as integers)."""
    if version.isdecimal() and other.isdecimal():
        return int(version) > int(other)
    return version != other


@dataclass(slots=True)
class _Index:
    func: IndexFunc
    keys: dict[str, dict[Key, None]]
    values: dict[Key, tuple[str, ...]]

    def put(self, key: Key, raw: Object) -> None:
        self.drop(key)
        try:
            values = tuple(dict.fromkeys(self.func(raw)))
        except Exception:
            logger.exception("an index cannot be made of %s/%s: it is not found by it", *key)
            values = ()
        if values:
            self.values[key] = values
        for value in values:
            self.keys.setdefault(value, {})[key] = None

    def drop(self, key: Key) -> None:
        for value in self.values.pop(key, ()):
            keys = self.keys[value]
            del keys[key]
            if not keys:
                del self.keys[value]


class Indexer(Memory):
    """The objects by namespace and name, encoded: whoever reads one gets an object of its own.

    `observe` and `observe_deletion` put in what the server has answered to our own writes. Until the watch has told of
    such a state, older ones that it tells are dropped: they are a part of what is known already. An answer that comes
    after the watch has told of its state, or of a later one, is nothing new either: the object may be gone by then.
    """

    def __init__(self, transform: Transform | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.transform = transform
        self._clock = clock
        self._progress = ""
        self._namespaces: dict[str, dict[Key, None]] = {}
        self._indexes: dict[str, _Index] = {}
        self._written: dict[Key, float] = {}
        self._buried: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def keys_in(self, namespace: str | None = None) -> list[Key]:
        """The keys of all objects, or of those in a namespace."""
        return list(self._known if namespace is None else self._namespaces.get(namespace, ()))

    def add_index(self, name: str, func: IndexFunc) -> None:
        """Index the objects, those included that are there. Raises ValueError for a name that is taken."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name!r} already")
        index = self._indexes[name] = _Index(func, {}, {})
        for key, known in self._known.items():
            index.put(key, known.raw)

    def by_index(self, name: str, value: str) -> list[Key]:
        """The keys of the objects that have a value in an index. Raises LookupError for an unknown index."""
        if name not in self._indexes:
            raise LookupError(f"there is no index {name!r}: add it with add_index before the manager starts")
        return list(self._indexes[name].keys.get(value, ()))

    def tell(self, kind: EventType, raw: Object, initial: bool) -> Iterator[Told]:
        version = (raw.get("metadata") or {}).get("resourceVersion") or ""
        if not initial and (not self._progress or is_newer(version, self._progress)):
            self._progress = version
        if self.transform is not None:
            raw = self.transform(raw)
        if (self._written or self._buried) and not self._is_news(kind, raw):
            return iter(())
        return super().tell(kind, raw, initial)

    def vanished(self, seen: set[Key], version: str) -> Iterator[Told]:
        self._progress = version
        for key in [*self._written]:
            known = self._known.get(key)
            if known is not None and self._is_held(key) and is_newer(known.version, version):
                seen.add(key)
        return super().vanished(seen, version)

    def begin_anew(self) -> None:
        self._progress = ""
        self._written.clear()
        self._buried.clear()

    def observe(self, raw: Object) -> list[Told]:
        """Take in what the server has answered to a write of ours; gives what is new by it."""
        key, metadata = key_of(raw), raw["metadata"]
        known, version = self._known.get(key), metadata.get("resourceVersion") or ""
        if metadata.get("uid") in self._buried or self._is_past(version):
            return []
        if known is not None and not is_newer(version, known.version):
            return []
        if self.transform is not None:
            raw = self.transform(orjson.loads(orjson.dumps(raw)))
        told = list(super().tell("MODIFIED" if known else "ADDED", raw, False))
        self._written[key] = self._clock()
        return told

    def observe_deletion(self, key: Key, uid: str) -> list[Told]:
        """Take in that an object is gone by our own doing, untold by the watch as yet; gives what is new by it."""
        self._bury(uid)
        known = self._known.get(key)
        if known is None or known.uid != uid:
            return []
        return list(super().tell("DELETED", known.raw, False))

    def observe_departure(self, key: Key, uid: str, version: str) -> list[Told]:
        """Take in that a write of ours has made a state that is not selected; gives what is new by it."""
        known = self._known.get(key)
        if known is None or known.uid != uid or self._is_past(version) or not is_newer(version, known.version):
            return []
        return self.observe_deletion(key, uid)

    def _bury(self, uid: str) -> None:
        now = self._clock()
        self._buried[uid] = now
        self._buried.move_to_end(uid)
        while now - next(iter(self._buried.values())) > TRUST:
            self._buried.popitem(last=False)

    def _is_past(self, version: str) -> bool:
        """Whether the watch has told all that has happened until a resourceVersion."""
        return bool(self._progress) and self._progress.isdecimal() and not is_newer(version, self._progress)

    def _is_news(self, kind: EventType, raw: Object) -> bool:
        metadata = raw.get("metadata") or {}
        key, uid = key_of(raw), metadata.get("uid") or ""
        if uid in self._buried:
            if self._clock() - self._buried[uid] <= TRUST:
                if kind == "DELETED":
                    del self._buried[uid]
                return False
            del self._buried[uid]
        known = self._known.get(key)
        if known is None or not self._is_held(key):
            return True
        # An older state: of this object, or of one that was there before we have made this.
        if is_newer(known.version, metadata.get("resourceVersion") or ""):
            return False
        self._written.pop(key, None)
        return True

    def _is_held(self, key: Key) -> bool:
        since = self._written.get(key)
        if since is not None and self._clock() - since > TRUST:
            del self._written[key]
            return False
        return since is not None

    def _remember(self, key: Key, state: Known, raw: Object) -> None:
        super()._remember(key, state, raw)
        self._namespaces.setdefault(key[0], {})[key] = None
        for index in self._indexes.values():
            index.put(key, raw)

    def _forget(self, key: Key) -> None:
        super()._forget(key)
        self._written.pop(key, None)
        keys = self._namespaces.get(key[0])
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._namespaces[key[0]]
        for index in self._indexes.values():
            index.drop(key)
