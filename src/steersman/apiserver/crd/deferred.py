"""The CRD controller, loaded with the first CRD: a server without any starts without schemas and their compilers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.api import kinds
from steersman.apiserver.core import Core
from steersman.apiserver.watchcache import Change

if TYPE_CHECKING:
    from steersman.apiserver.crd.controller import CrdController


class CustomResources:
    """Serves custom resources from `start` until `stop`."""

    def __init__(self, core: Core) -> None:
        kind = kinds.builtin_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
        self._core = core
        self._cache = core.cache.resource(f"/registry/{kind.storage_prefix}/".encode())
        self._controller: CrdController | None = None

    def start(self) -> None:
        if self._cache.entries:
            self._load()
        else:
            self._cache.watchers.append(self._first)

    def _first(self, change: Change) -> None:
        self._cache.watchers.remove(self._first)
        self._load()

    def _load(self) -> None:
        from steersman.apiserver.crd.controller import CrdController

        self._controller = CrdController(self._core)
        self._controller.start()

    async def stop(self) -> None:
        if self._controller is not None:
            await self._controller.stop()
        elif self._first in self._cache.watchers:
            self._cache.watchers.remove(self._first)
