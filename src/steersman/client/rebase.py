"""Writing a change again on top of another's, where the two do not overlap.

Source: Kubernetes API conventions, "Concurrency Control and Consistency": after a Conflict read again, apply the change
again, write again. That needs the change as code (`Client.modify`); here it is what differs between two objects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.errors import Conflict
from steersman.client.diff import Change, changes
from steersman.client.resources import Object
from steersman.client.retry import Backoff
from steersman.client.schemas import Shape
from steersman.client.three_way import ABSENT, Overlap, ThreeWay


@dataclass(frozen=True, slots=True)
class Clash:
    """A field that both have changed, as kubectl prints its path. Values are None where the field was removed.

    `managers` are the other writers, `time` when the last of them wrote (RFC 3339), as far as managedFields tell.
    """

    path: str
    read: Any
    mine: Any
    theirs: Any
    managers: tuple[str, ...] = ()
    time: str = ""

    def __str__(self) -> str:
        by = f" by {', '.join(self.managers)}" if self.managers else ""
        at = f" at {self.time}" if self.time else ""
        return f"{self.path}: read {self.read!r}, mine {self.mine!r}, theirs {self.theirs!r}{by}{at}"


class RebaseConflict(Conflict):
    """The change overlaps with another's: `clashes` says where, with whom, and since when. Nothing was written."""

    clashes: Sequence[Clash] = ()

    @classmethod
    def of(cls, error: Conflict, clashes: Sequence[Clash]) -> RebaseConflict:
        text = "; ".join(map(str, clashes))
        made = cls(f"{error.message}; both have changed {text}", details=error.details)
        made.clashes = clashes
        return made


async def rebase(
    read: Object,
    wanted: Object,
    *,
    get: Callable[[], Awaitable[Object]],
    put: Callable[[Object], Awaitable[Object]],
    shape: Callable[[], Awaitable[Shape]],
    backoff: Backoff,
) -> Object:
    """See `Client.rebase`; `get` reads the object as it is, `put` writes it, `shape` gives its schema."""
    delays, base, body = backoff.delays(), read, _with_version(wanted, read)
    while True:
        try:
            return await put(body)
        except Conflict as error:
            theirs = await get()
            if theirs["metadata"].get("uid") != base["metadata"].get("uid"):
                raise Conflict(f"{error.message}; it was deleted and created again", details=error.details) from error
            merge = ThreeWay()
            merged = merge.objects(base, wanted, theirs, await shape())
            if merge.overlaps:
                raise RebaseConflict.of(error, _clashes(merge.overlaps, base, theirs)) from error
            if next(delays, None) is None:
                raise
            # The next round merges what we would have written with what is there by then.
            base, wanted, body = theirs, merged, _with_version(merged, theirs)


def _with_version(body: Object, read: Object) -> Object:
    metadata = {**(body.get("metadata") or {}), "resourceVersion": read["metadata"]["resourceVersion"]}
    return {**body, "metadata": metadata}


def _clashes(overlaps: Sequence[Overlap], base: Object, theirs: Object) -> list[Clash]:
    found = changes(base, theirs)
    return [_clash(overlap, found, theirs) for overlap in overlaps]


def _clash(overlap: Overlap, found: Sequence[Change], theirs: Object) -> Clash:
    path = _text(overlap.path)
    touching = [change for change in found if _is_within(change.path, path) or _is_within(path, change.path)]
    managers = tuple(dict.fromkeys(manager for change in touching for manager in change.managers))
    entries: Sequence[Mapping[str, Any]] = theirs["metadata"].get("managedFields") or ()
    times = [entry.get("time") or "" for entry in entries if entry.get("manager") in managers]
    base, mine, theirs_value = (
        None if value is ABSENT else value for value in (overlap.base, overlap.mine, overlap.theirs)
    )
    return Clash(path, base, mine, theirs_value, managers, max(times, default=""))


def _is_within(path: str, other: str) -> bool:
    return path == other or (path.startswith(other) and path[len(other)] in ".[")


def _text(path: Sequence[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
