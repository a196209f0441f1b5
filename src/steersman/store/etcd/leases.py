"""Leases for keys that are to go by themselves; keys that are written at about the same time share one.

Source: kube-apiserver `pkg/storage/etcd3/lease_manager.go`.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from steersman.store.etcd import messages as pb
from steersman.store.etcd.client import LEASE_GRANT, EtcdClient

_SHARED_PART, _SHARED_MOST = 0.05, 60.0
_MOST_KEYS = 1000


@dataclass(slots=True)
class _Lease:
    number: int
    ends: float
    keys: int = 0


class Leases:
    """Gives each key that is written a lease, where its prefix has a lifetime."""

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._lifetimes: dict[bytes, float] = {}
        self._held: dict[bytes, _Lease] = {}
        self._lock = asyncio.Lock()

    def expire(self, prefix: bytes, seconds: float) -> None:
        self._lifetimes[prefix] = seconds

    async def of(self, key: bytes) -> int:
        """The lease that a key is to be written with, 0 for none. Raises StoreUnavailable."""
        for prefix, seconds in self._lifetimes.items():
            if key.startswith(prefix):
                async with self._lock:
                    return await self._lease(prefix, seconds)
        return 0

    async def _lease(self, prefix: bytes, seconds: float) -> int:
        """One that lasts long enough, but not much longer."""
        now, held = asyncio.get_running_loop().time(), self._held.get(prefix)
        longer = min(seconds * _SHARED_PART, _SHARED_MOST)
        fits = held is not None and now + seconds < held.ends <= now + seconds + longer
        if held is None or not fits or held.keys >= _MOST_KEYS:
            lifetime = math.ceil(seconds + longer)
            granted = (await self._client.call(LEASE_GRANT, pb.LeaseGrantRequest(TTL=lifetime))).message
            held = self._held[prefix] = _Lease(granted.ID, now + lifetime)
        held.keys += 1
        return held.number
