"""Stores by URL."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from steersman._util.dataclass import dataclass
from steersman.store.history import History
from steersman.store.interface import Store, StoreError
from steersman.store.memory import MemoryStore
from steersman.store.sqlite import SQLiteStore

if TYPE_CHECKING:
    from steersman.store.etcd import EtcdSettings

_SNAPSHOT = "etcd-snapshot:///"
_FORMS = "memory://, sqlite:///relative.db, sqlite:////absolute/path.db, etcd://host:2379,host:2379, etcd-snapshot:///file.db"


class BadStoreURL(StoreError):
    """The URL names no store."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What an etcd may want to see: PEM texts (`ca`: whom to trust), a user of its own authentication.

    With any PEM text, or `tls`, TLS is spoken.
    """

    tls: bool = False
    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = None
    user: str = ""
    password: str = ""


async def open_store(
    url: str,
    *,
    history: History | None = None,
    fsync: bool = True,
    credentials: Credentials | None = None,
    quota: int = 0,
) -> Store:
    """Open the store a URL names: `memory://`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`,
    `etcd://host:port,host:port/prefix`, or `etcd-snapshot:///path`, which can only be read.

    The forms of SQLite's are SQLAlchemy's; `%`-escapes in a path are decoded. `fsync` is whether SQLite's commits
    wait for the disk, `quota` how many bytes it may hold (0: any number), `credentials` are for etcd. Raises
    BadStoreURL, StoreUnavailable.
    """
    if url.startswith("etcd://"):
        settings = etcd_settings(url, credentials or Credentials())
        from steersman.store.etcd import EtcdStore

        return await EtcdStore.open(settings, history=history)
    if url.startswith(_SNAPSHOT):
        return await _open_snapshot(url)
    path = sqlite_path(url)
    if path is None:
        return MemoryStore(history=history)
    return await SQLiteStore.open(path, history=history, fsync=fsync, quota=quota)


def sqlite_path(url: str) -> str | None:
    """The path of a SQLite store's file; None for a store in memory. Raises BadStoreURL."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadStoreURL(f"not a store URL: {url!r} ({error}); use one of {_FORMS}") from None
    if parts.query or parts.fragment:
        raise BadStoreURL(f"a store URL has no options: {url!r}; write '?' and '#' in a path as %3F and %23")
    if parts.scheme == "memory":
        if parts.netloc or parts.path:
            raise BadStoreURL(f"a memory store has no path: {url!r}; use memory://")
        return None
    if parts.scheme != "sqlite":
        raise BadStoreURL(f"unknown kind of store: {url!r}; use one of {_FORMS}")
    if parts.netloc:
        raise BadStoreURL(f"a SQLite store is on this machine: {url!r}; write three slashes before a relative path")
    if len(parts.path) < 2 or parts.path.endswith("/"):
        raise BadStoreURL(f"the path of the database is missing: {url!r}; use sqlite:///cluster.db")
    return unquote(parts.path[1:])


async def _open_snapshot(url: str) -> Store:
    try:
        from steersman.store.etcd.snapshot import SnapshotStore
    except ImportError as error:
        raise _lacking(error) from None
    return await SnapshotStore.open(unquote(url.removeprefix(_SNAPSHOT)))


def _lacking(error: ImportError) -> BadStoreURL:
    return BadStoreURL(f"an etcd store needs more packages ({error}); pip install 'steersman[etcd]'")


def root_of(url: str) -> str:
    """What the store that a URL names has before its keys. Raises BadStoreURL."""
    return etcd_settings(url, Credentials()).root if url.startswith("etcd://") else ""


def etcd_settings(url: str, credentials: Credentials) -> EtcdSettings:
    """Where an etcd is, and how it is spoken to. Raises BadStoreURL."""
    try:
        from steersman.store.etcd import TLS, parse_url
    except ImportError as error:
        raise _lacking(error) from None
    given = credentials.ca, credentials.cert, credentials.key
    tls = TLS(*given) if credentials.tls or given != (None, None, None) else None
    try:
        return parse_url(url, tls, credentials.user, credentials.password)
    except ValueError as error:
        raise BadStoreURL(str(error)) from None
