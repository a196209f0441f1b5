"""Finds two writers that fight over a field: we write it, somebody writes it back, we write it again, and so on.

Neither of them sees an error, and the cluster is busy for nothing. Source of the idea: kubernetes/kubernetes#131175.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from steersman.client.diff import Change, changes
from steersman.client.resources import Object
from steersman.client.watch_memory import Known

logger = logging.getLogger("steersman.runtime")

ROUNDS = 5
"""How often a state must have been written back before it is called a hot loop."""
WINDOW = 60.0
"""Seconds within which they must follow each other; also how often one is told of."""
_MAX_KNOWN = 10_000
_BOOKKEEPING = frozenset({"resourceVersion", "generation", "managedFields"})


@dataclass(frozen=True, slots=True)
class HotLoop:
    """A fight: over which fields of what object, and with whom, as far as managedFields tell."""

    controller: str
    kind: str
    namespace: str
    name: str
    rounds: int
    fields: tuple[Change, ...]

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        what = "; ".join(str(field) for field in self.fields[:5])
        return (
            f"{self.controller} has written {self.kind} {where} back to the same state {self.rounds} times, "
            f"against another writer: {what}"
        )


@dataclass(slots=True)
class _Fight:
    state: bytes
    last: float
    rounds: int = 0
    told: float = float("-inf")


class HotLoopDetector:
    """Told of each write that a controller makes."""

    def __init__(self, clock: Callable[[], float], on_found: Callable[[HotLoop], None] | None = None) -> None:
        self._clock = clock
        self._on_found = on_found
        self._fights: OrderedDict[tuple[Any, ...], _Fight] = OrderedDict()

    def wrote(self, controller: str, before: Known, after: Object, subresource: str | None) -> None:
        """A controller has made `after` of `before`, by a write of the object itself or of a subresource."""
        metadata, now = after["metadata"], self._clock()
        if before.version == metadata.get("resourceVersion"):
            return
        state = _content(after, subresource)
        which = (controller, metadata.get("uid"), subresource)
        fight = self._fights.get(which)
        if fight is None or fight.state != state or now - fight.last > WINDOW:
            self._fights[which] = _Fight(state, now)
            self._fights.move_to_end(which)
            if len(self._fights) > _MAX_KNOWN:
                self._fights.popitem(last=False)
            return
        fight.last, fight.rounds = now, fight.rounds + 1
        if fight.rounds >= ROUNDS and now - fight.told > WINDOW:
            fight.told = now
            self._tell(controller, before.raw, after, fight.rounds)

    def _tell(self, controller: str, before: Object, after: Object, rounds: int) -> None:
        metadata = after["metadata"]
        # What differed before we wrote is what the other one had written: its managers are in the older state.
        found = tuple(changes(after, before))
        loop = HotLoop(
            controller, after.get("kind", ""), metadata.get("namespace", ""), metadata.get("name", ""), rounds, found
        )
        logger.warning("%s", loop, extra={"controller": controller})
        if self._on_found is not None:
            self._on_found(loop)


def _content(obj: Object, subresource: str | None) -> bytes:
    """What a writer of the object or of its status decides: a status moves with each write of a spec."""
    if subresource == "status":
        content = obj.get("status")
    else:
        metadata = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
        content = {key: value for key, value in {**obj, "metadata": metadata}.items() if key != "status"}
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).digest()
