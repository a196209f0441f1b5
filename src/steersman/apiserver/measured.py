"""A store whose operations are counted and timed, and whose size is told.

Source: apiserver `pkg/storage/etcd3/metrics/metrics.go`.
"""

from __future__ import annotations

import contextlib
import time

from steersman.apiserver.metrics import Metrics
from steersman.apiserver.storage_keys import resource_of
from steersman.apiserver.wrapped_stores import WrappedStore
from steersman.store.interface import CompareFailed, KeyValue, Premises, PremisesChanged, Range, Store, StoreError


class MeasuredStore(WrappedStore):
    """The same store. A swap that is refused since something else is there has not failed."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        super().__init__(store)
        self._metrics = metrics
        self.get = self._get
        self.range = self._range
        self.swap = self._swap

    async def _get(self, key: bytes) -> KeyValue | None:
        started = time.perf_counter()
        failed = True
        try:
            found = await self._store.get(key)
            failed = False
            return found
        finally:
            self._record("get", key, started, failed)

    async def _range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        started = time.perf_counter()
        failed = True
        try:
            found = await self._store.range(start, end, limit=limit, revision=revision)
            failed = False
            return found
        finally:
            self._record("list", start, started, failed)

    async def _swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        started = time.perf_counter()
        failed = True
        try:
            revision = await self._store.swap(key, expected, value, premises)
            failed = False
            return revision
        except (CompareFailed, PremisesChanged):
            failed = False
            raise
        finally:
            self._record("delete" if value is None else "update" if expected else "create", key, started, failed)

    def _record(self, operation: str, key: bytes, started: float, failed: bool) -> None:
        seconds = time.perf_counter() - started
        self._metrics.record_store((operation, *resource_of(key)), seconds, failed)


async def tell_size(store: Store, metrics: Metrics) -> None:
    """Put a store's figures among the metrics; what cannot be asked now stays as it was."""
    metrics.store_revision.cell(())[0] = store.revision
    metrics.store_compacted.cell(())[0] = store.compacted
    with contextlib.suppress(StoreError):
        found = await store.figures()
        metrics.storage_size.cell((f"{found.kind}-0",))[0] = found.size
        for gauge, value in (
            (metrics.store_used, found.used),
            (metrics.store_log, found.log),
            (metrics.store_quota, found.quota),
            (metrics.store_disk_left, found.disk_left),
        ):
            gauge.cell(())[0] = value
        if found.keys is not None:
            metrics.store_keys.cell(())[0] = found.keys
