"""Stores by URL."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from steersman.store.history import History
from steersman.store.interface import Store, StoreError
from steersman.store.memory import MemoryStore
from steersman.store.sqlite import SQLiteStore

_FORMS = "memory://, sqlite:///relative.db, sqlite:////absolute/path.db"


class BadStoreURL(StoreError):
    """The URL names no store."""


async def open_store(url: str, *, history: History | None = None, fsync: bool = True) -> Store:
    """Open the store a URL names: `memory://`, `sqlite:///relative.db` or `sqlite:////absolute/path.db`.

    The forms are SQLAlchemy's; `%`-escapes in a path are decoded. `fsync` is whether SQLite's commits
    wait for the disk. Raises BadStoreURL, StoreUnavailable.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadStoreURL(f"not a store URL: {url!r} ({error}); use one of {_FORMS}") from None
    if parts.query or parts.fragment:
        raise BadStoreURL(f"a store URL has no options: {url!r}; write '?' and '#' in a path as %3F and %23")
    if parts.scheme == "memory":
        if parts.netloc or parts.path:
            raise BadStoreURL(f"a memory store has no path: {url!r}; use memory://")
        return MemoryStore(history=history)
    if parts.scheme != "sqlite":
        raise BadStoreURL(f"unknown kind of store: {url!r}; use one of {_FORMS}")
    if parts.netloc:
        raise BadStoreURL(f"a SQLite store is on this machine: {url!r}; write three slashes before a relative path")
    if len(parts.path) < 2 or parts.path.endswith("/"):
        raise BadStoreURL(f"the path of the database is missing: {url!r}; use sqlite:///cluster.db")
    return await SQLiteStore.open(unquote(parts.path[1:]), history=history, fsync=fsync)
