"""Charges to ResourceQuotas on their way: made, while the write that they are for is not stored yet.

Whoever counts anew what a namespace uses waits until there are none: a count without an object that is about to be
stored would let in one too many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from steersman.apiserver.strategy import Object

if TYPE_CHECKING:
    from steersman.apiserver.core import Core


class QuotaCharges:
    """By namespace. `listeners` are told of a namespace in which nothing is on its way any more, and what was charged
    may not be used."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._unsure: set[str] = set()
        self.listeners: list[Callable[[str], None]] = []

    def begin(self, namespace: str) -> Callable[[bool], None]:
        """A charge is about to be made; what is returned is told whether the write was stored."""
        self._open[namespace] = self._open.get(namespace, 0) + 1

        def finish(stored: bool) -> None:
            if not stored:
                self._unsure.add(namespace)
            self._open[namespace] -= 1
            if not self._open[namespace]:
                del self._open[namespace]
                self._settle(namespace)

        return finish

    def settled(self, namespace: str) -> bool:
        """Whether nothing is on its way; if something is, the listeners are told later."""
        if namespace in self._open:
            self._unsure.add(namespace)
            return False
        return True

    def _settle(self, namespace: str) -> None:
        if namespace in self._unsure:
            self._unsure.discard(namespace)
            for notify in tuple(self.listeners):
                notify(namespace)


async def save_status(core: Core, quota: Object) -> None:
    """Write the status of a ResourceQuota in the server's own name, unless another version of it is stored.

    Raises Conflict, NotFound.
    """
    from steersman.apiserver.bootstrap import system_context

    scope = core.catalog.look_up("", "v1", "resourcequotas")
    assert scope is not None
    meta = quota["metadata"]
    await core.registry.update(
        scope,
        scope.subresource_strategies["status"],
        meta["namespace"],
        meta["name"],
        lambda old: {**quota, "metadata": dict(meta)},
        system_context(core, "status"),
        uid=meta["uid"],
        version=meta["resourceVersion"],
    )
