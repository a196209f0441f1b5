"""Whole stores: backed up while they serve, restored, and moved to another kind of store.

What clients have seen of a store stays true: after a restore or a move, the current revision is above all that they
have seen, what is unchanged keeps its order, and who asks for anything older is told that it is gone (410).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from steersman.store.backup import Backup, BackupError, BackupWriter
from steersman.store.interface import KeyValue, StoreError
from steersman.store.sqlite.copying import Snapshot, Target, shrink
from steersman.store.urls import BadStoreURL, Credentials, etcd_settings, open_store, sqlite_path

if TYPE_CHECKING:
    from steersman.store.etcd.copying import EtcdTarget

FIRST, END = b"/registry/", b"/registry0"
SQLITE_BUMP = 1_000_000
ETCD_BUMP = 10_000
"""How far a restored store begins above the backup's revision: clients may have seen what was written after it.

In etcd each revision is a write.
"""
_BOUND_TO_KEY = (b"k8s:enc:aesgcm:", b"k8s:enc:kms:")
"""Beginnings of encrypted values that can be read only under the key that they were written under."""

Translate = Callable[[KeyValue], bytes]


class NotEmpty(StoreError):
    """There is something in the place that is to be restored into."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied: so many keys as they were at `revision`. `kept` is where a file that was replaced is now."""

    keys: int
    revision: int
    kept: Path | None = None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A store at its current revision; `root` is what an etcd has before the keys."""

    revision: int
    root: str
    items: AsyncIterator[KeyValue]


async def back_up(
    url: str, path: str | os.PathLike[str], credentials: Credentials | None = None, *, force: bool = False
) -> Copied:
    """Write what the store at `url` holds at its current revision to a file, whether a server runs on it or not.

    When this returns, the file is durable. Raises StoreError, also where there is a file already without `force`.
    """
    async with _snapshot(url, credentials or Credentials(), alone=False) as snapshot:
        return await _write(snapshot, path, force=force)


async def restore(
    path: str | os.PathLike[str],
    url: str,
    credentials: Credentials | None = None,
    *,
    force: bool = False,
    bump: int | None = None,
    translate: Translate | None = None,
) -> Copied:
    """Have the store at `url` hold what a backup has, and nothing else. No server may run on it.

    The store then begins `bump` revisions (by default SQLITE_BUMP or ETCD_BUMP) above the backup's, and above its own.
    `translate` gives the value to store in a SQLite file. Raises BackupError before anything is touched, NotEmpty where
    something is there without `force`, StoreError.
    """
    with Backup(path) as backup:
        if url.startswith("etcd://"):
            return await _into_etcd(
                backup, url, credentials or Credentials(), force, ETCD_BUMP if bump is None else bump
            )
        return _into_sqlite(backup, url, force, SQLITE_BUMP if bump is None else bump, translate)


async def move(
    source: str,
    target: str,
    credentials: Credentials | None = None,
    *,
    force: bool = False,
    translate: Translate | None = None,
) -> Copied:
    """Have the store at `target` hold what that at `source` holds, which stays as it is. No server may run on either.

    It goes through a file in the directory for temporary files. Raises StoreError, as `restore`.
    """
    async with _snapshot(source, credentials or Credentials(), alone=True) as snapshot:
        with tempfile.TemporaryDirectory(prefix="steersman-") as directory:
            path = Path(directory) / "backup"
            await _write(snapshot, path, force=False)
            return await restore(path, target, credentials, force=force, bump=1, translate=translate)


def vacuum(url: str) -> tuple[int, int]:
    """Give the free space of the SQLite store at `url` back to the disk; no server may run on it.

    Returns its bytes before and after. Raises StoreError.
    """
    if url.startswith("etcd"):
        raise BadStoreURL(f"only a SQLite store can be vacuumed: {url!r}; for an etcd there is etcdctl defrag")
    return shrink(_path(url))


async def _write(snapshot: _Snapshot, path: str | os.PathLike[str], *, force: bool) -> Copied:
    with BackupWriter(path, snapshot.revision, snapshot.root, force=force) as writer:
        async for item in snapshot.items:
            writer.add(item)
    return Copied(writer.keys, snapshot.revision)


@asynccontextmanager
async def _snapshot(url: str, credentials: Credentials, *, alone: bool) -> AsyncIterator[_Snapshot]:
    if url.startswith("etcd://"):
        settings = etcd_settings(url, credentials)
        from steersman.store.etcd.copying import EtcdSnapshot

        found = await EtcdSnapshot.open(settings)
        try:
            yield _Snapshot(found.revision, settings.root, found.items())
        finally:
            await found.close()
    elif url.startswith("etcd-snapshot://"):
        store = await open_store(url)
        from steersman.store.etcd.copying import NOT_STATE

        held = await store.range(FIRST, END)
        items = (item for item in held.items if not item.key.startswith(NOT_STATE))
        yield _Snapshot(held.revision, "", _async(items))
    else:
        with Snapshot(_path(url), alone=alone) as snapshot:
            yield _Snapshot(snapshot.revision, "", _async(snapshot.items()))


async def _into_etcd(backup: Backup, url: str, credentials: Credentials, force: bool, bump: int) -> Copied:
    settings = etcd_settings(url, credentials)
    from steersman.store.etcd.copying import EtcdTarget

    _check_readable_at(backup, settings.root)
    target: EtcdTarget = await EtcdTarget.open(settings)
    try:
        if target.exists and not force:
            raise NotEmpty(f"there is something in {url}; choose another place, or replace it with --force")
        revision = await target.fill(backup.items(), backup.manifest.revision + bump)
    finally:
        await target.close()
    return Copied(backup.keys, revision)


def _into_sqlite(backup: Backup, url: str, force: bool, bump: int, translate: Translate | None) -> Copied:
    _check_readable_at(backup, "")
    with Target(_path(url)) as target:
        if target.exists and not force:
            raise NotEmpty(f"{target.path} exists; choose another path, or replace it with --force")
        last = max(target.revision(), backup.manifest.revision)
        items: Iterator[KeyValue] = backup.items()
        if not backup.distinct:
            items = _renumbered(items, last)
            last += backup.keys
        if translate is not None:
            items = (replace(item, value=translate(item)) for item in items)
        revision = last + bump
        return Copied(backup.keys, revision, target.fill(items, revision))


def _renumbered(items: Iterator[KeyValue], after: int) -> Iterator[KeyValue]:
    """Several keys may have been written at one revision of etcd, but not here."""
    for revision, item in enumerate(items, after + 1):
        yield replace(item, mod_revision=revision)


def _check_readable_at(backup: Backup, root: str) -> None:
    """Raises BackupError where values could not be decrypted any more, as the keys in etcd have another beginning."""
    if backup.manifest.root == root:
        return
    for item in backup.items():
        if item.value.startswith(_BOUND_TO_KEY):
            raise BackupError(
                f"{item.key.decode(errors='replace')} is encrypted for a store whose keys begin with"
                f" {backup.manifest.root + '/registry'!r}: it could not be read elsewhere; write it unencrypted first"
            )


def _path(url: str) -> str:
    path = sqlite_path(url)
    if path is None:
        raise BadStoreURL(f"a store in memory is no file: {url!r}; use sqlite:///cluster.db or etcd://host:2379")
    return path


async def _async(items: Iterator[KeyValue]) -> AsyncIterator[KeyValue]:
    for item in items:
        yield item
