"""The durable store: one SQLite file, one writing thread, group commit."""

from steersman.store.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
