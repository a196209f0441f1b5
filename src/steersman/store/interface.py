"""The store: bytes under keys with one global revision, in etcd's model.

A store knows no objects. Every write is a compare-and-swap of one key; every successful write takes the next
revision. Old revisions stay readable and watchable until they are compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from steersman._util.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One key at one revision. `create_revision` is that of its first write since it last did not exist."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One write: what the key holds since `revision`.

    `value` is None for a deletion, `create_revision` is then that of the deleted key. `previous_revision` is the
    key's mod_revision before the write, 0 for a creation; what it held then is not carried, whoever wants it has
    the key's last event or reads the range at `revision - 1`. Where that is compacted, a store may leave both 0.
    """

    key: bytes
    value: bytes | None
    revision: int
    create_revision: int
    previous_revision: int


@dataclass(frozen=True, slots=True)
class Range:
    """What a range read found: all at `revision`; `more` when the limit cut it, `count` the keys in the whole range."""

    items: list[KeyValue]
    revision: int
    more: bool
    count: int


@dataclass(frozen=True, slots=True)
class Figures:
    """How large a store is, in bytes: what is allocated, what of that is in use, and its log. 0 where that is unknown.

    `kind` is the store's. `quota` is how much may be in use, `disk_left` what the disk has left; `keys` are how many
    exist, None where that is unknown.
    """

    kind: str
    size: int = 0
    used: int = 0
    log: int = 0
    quota: int = 0
    disk_left: int = 0
    keys: int | None = None


class StoreError(Exception):
    """The store cannot do what was asked; the message says why, in one line."""


class CompareFailed(StoreError):
    """The key was not at the expected revision. `current` is what it holds, None when it does not exist."""

    def __init__(self, key: bytes, current: KeyValue | None) -> None:
        super().__init__(f"{key.decode(errors='replace')} is at another revision")
        self.key = key
        self.current = current


@dataclass(frozen=True, slots=True)
class Premises:
    """What a decision to write rests on: each of `keys` is still at its mod_revision, and no key in the `spans`, each
    [start, end), was written after `revision`."""

    keys: tuple[tuple[bytes, int], ...]
    spans: tuple[tuple[bytes, bytes], ...]
    revision: int


class PremisesChanged(StoreError):
    """Nothing was written, as what the write rests on has changed; the callbacks have been given that."""

    def __init__(self) -> None:
        super().__init__("what the write rests on has changed")


class Compacted(StoreError):
    """The revision is older than the history that is kept; `revision` is the oldest that can still be read."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the requested revision has been compacted; the oldest kept is {revision}")
        self.revision = revision


class FutureRevision(StoreError):
    """The revision has not happened yet; `revision` is the current one."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the requested revision is in the future; the current one is {revision}")
        self.revision = revision


class StoreUnavailable(StoreError):
    """The store cannot be opened, read or written (disk full, read-only file, I/O error, damage), or is closed."""


class ReadOnlyStore(StoreError):
    """Nothing can be written: the store shows something that is over."""

    def __init__(self) -> None:
        super().__init__("the store is read-only: it shows a snapshot")


class StoreFull(StoreError):
    """There is no room for what is to be written; deletions work. The message says what to do."""


class UnknownOutcome(StoreUnavailable):
    """A write may have been carried out or not, and it cannot be found out which."""


class Watch(Protocol):
    """A running watch; `cancel` ends it, after which its callback is not called again.

    `caught_up` waits until the events that had happened before the watch began have been delivered; it raises the
    StoreError that ended the watch before that.
    """

    def cancel(self) -> None: ...

    async def caught_up(self) -> None: ...


class Store(Protocol):
    """The protocol of every store; all methods are called on the event loop that opened it.

    A store that is `shared` is written by other processes, too: what they have written is delivered some time after
    it was acknowledged to them, and `settle` waits for it. One that is `read_only` raises ReadOnlyStore for writes.
    """

    @property
    def shared(self) -> bool: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def revision(self) -> int:
        """The revision of the last durable write (1 in a new store: etcd's first revision)."""
        ...

    @property
    def compacted(self) -> int:
        """The oldest revision that can still be read and watched from; 0 if nothing was compacted."""
        ...

    async def get(self, key: bytes) -> KeyValue | None:
        """The key as it is now."""
        ...

    async def range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        """Keys in [start, end) in byte order, at a revision (0: now); at most `limit` of them (0: all).

        Raises Compacted, FutureRevision, and ValueError for a negative limit or revision.
        """
        ...

    async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        """Write `value` (None: delete) if the key's mod_revision is `expected` (0: it does not exist).

        Where the store is `shared`, the `premises` must hold, too; else PremisesChanged is raised. One that is not
        shared does not look at them: nobody else can have changed them.

        Returns the write's revision, once it is durable. By then every watch callback of this store has been given
        the event. Raises CompareFailed: nothing was written, and what is there instead has been given to the
        callbacks. Raises StoreFull: nothing was written. Raises StoreUnavailable: neither, unless it is UnknownOutcome,
        or the disk failed under the write, which may then reappear when the store is opened again. A cancelled call
        may still be carried out.
        Deleting with expected 0, or a negative expected, is a ValueError.
        """
        ...

    def watch(
        self,
        start: bytes,
        end: bytes,
        revision: int,
        deliver: Callable[[Sequence[StoreEvent]], None],
        ended: Callable[[StoreError], None] | None = None,
    ) -> Watch:
        """Give `deliver` every event on keys in [start, end) with a revision of at least `revision`, in order, once.

        Revision 0 is the next write's; one that has not happened yet is waited for. Events that already happened
        are delivered before this returns or soon after, on the event loop, and always before later ones; they stay
        readable for a running watch whatever is compacted. `ended` is called, at most once, when the store cannot
        go on with the watch: it was closed or its history cannot be read; never after `cancel`. What `deliver`
        raises goes to the loop's exception handler and ends nothing. Raises Compacted, StoreUnavailable, and
        ValueError for a negative revision.
        """
        ...

    async def settle(self) -> None:
        """Wait until the watch callbacks have been given every write that was acknowledged, to whomever, before this
        call. Only where the store is shared there is something to wait for. Raises StoreUnavailable.
        """
        ...

    def expire(self, prefix: bytes, seconds: float) -> bool:
        """Have keys under a prefix go by themselves, so long after their last write or a little later.

        False where the store cannot do that. Keys that are there already stay.
        """
        ...

    def trouble(self) -> str | None:
        """Why the store cannot be used just now, in a line; None while it can."""
        ...

    async def figures(self) -> Figures:
        """How large it is now. Raises StoreUnavailable."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget what was overwritten or deleted before `revision`, which stays readable.

        Raises FutureRevision; Compacted when that revision or a later one was compacted already (as etcd does).
        """
        ...

    async def close(self) -> None:
        """Finish the accepted writes, then release everything; later calls raise StoreUnavailable."""
        ...
