"""A cluster that a manager works with: a client, and a cache of what is watched in it.

Source: controller-runtime `pkg/cluster/cluster.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.client.client import Client
from steersman.client.config import Config
from steersman.client.resources import Kind, Resource
from steersman.runtime.cache.cache import Cache, CacheScope, identity
from steersman.runtime.cache.indexer import IndexFunc
from steersman.runtime.client import CachedClient


class Cluster:
    """How a cluster is reached, and what of it is watched. It is opened by the manager.

    `config` is found by `load()` by default. A `client` that is given stays open when the manager stops. `watch` says
    what is watched of which kind, `default` of all others; see `CacheScope`.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        client: Client | None = None,
        default: CacheScope | None = None,
        watch: Mapping[Resource, CacheScope] | None = None,
        field_manager: str | None = None,
    ) -> None:
        self.config = config
        self._given = client
        self._default = default
        self._watch = watch
        self._field_manager = field_manager
        self._indexes: list[tuple[Kind[Any], str, IndexFunc]] = []
        self._client: CachedClient | None = None

    @property
    def client(self) -> CachedClient:
        """Raises RuntimeError before the manager has started."""
        if self._client is None:
            raise RuntimeError("the cluster is not open yet: the manager opens it when it starts")
        return self._client

    @property
    def cache(self) -> Cache:
        """The informers of this cluster."""
        return self.client.cache

    def scope(self, kind: Kind[Any]) -> CacheScope:
        """What is watched of a kind."""
        resource = kind.api_kind()
        for known, scope in (self._watch or {}).items():
            if identity(known) == identity(resource):
                return scope
        return self._default or CacheScope()

    def index(self, kind: Kind[Any], name: str, func: IndexFunc) -> None:
        """Index the cached objects of a kind by what `func` gives for each (untyped): see `CachedClient.by_index`."""
        self._indexes.append((kind, name, func))

    async def open(self) -> None:
        """Connect. Raises ConfigError."""
        client = self._given or Client(self.config, field_manager=self._field_manager)
        self._client = CachedClient.over(client, Cache(client, self._default, self._watch))
        for kind, name, func in self._indexes:
            self.cache.kind(kind).add_index(name, func)

    async def close(self) -> None:
        """End the watches and the connections; what is cached stays readable."""
        if self._client is None:
            return
        await self._client.cache.stop()
        if self._given is None:
            await self._client.close()
