"""ResourceQuota: what a namespace may have is counted before it is stored.

A charge is a compare-and-swap of the quota's status: whoever loses looks at the new status and asks again. Writers of
one namespace take turns, so that they do not lose to each other.
Source: apiserver `pkg/admission/plugin/resourcequota/{admission,controller}.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from steersman._util import clock
from steersman._util.keylock import KeyLocks
from steersman.apimachinery.errors import ApiError, Conflict, NotFound, forbidden, internal
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.quota_charges import QuotaCharges
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache

if TYPE_CHECKING:
    from steersman.api.core.quota_check import Write
    from steersman.api.core.quota_usage import Evaluator
    from steersman.api.core.resource_lists import ResourceList

RETRIES = 3
_PATIENCE = 10.0
SaveStatus = Callable[[Object], Awaitable[None]]
"""Writes the status of a quota as it is given, unless another version is stored. Raises Conflict, NotFound."""


class ResourceQuota:
    """Comes last: what it has charged nobody refuses any more."""

    name = "ResourceQuota"

    def __init__(self, quotas: ResourceCache, save: SaveStatus, charges: QuotaCharges) -> None:
        self._quotas = quotas
        self._save = save
        self._charges = charges
        self._locks = KeyLocks()

    @property
    def active(self) -> bool:
        return bool(self._quotas.entries)

    async def validate(self, attributes: Attributes) -> None:
        """Charge the quotas of the namespace. Raises Forbidden when one is exceeded, Conflict when others write it."""
        scope, namespace, new = attributes.scope, attributes.namespace, attributes.obj
        if new is None or not namespace or not scope.namespaced or not self._quotas.select(namespace):
            return
        # Loaded with the first quota: most servers have none.
        from steersman.api.core.quota_check import Write
        from steersman.api.core.quota_usage import evaluator

        judge = evaluator(scope.group, scope.resource)
        if judge is None or not judge.handles(attributes.operation, attributes.subresource, new, attributes.old):
            return
        write = Write(attributes.subresource, new, attributes.old, clock.utc_now())
        try:
            async with asyncio.timeout(_PATIENCE), self._locks.hold(namespace):
                await self._charge(judge, write, attributes)
        except TimeoutError:
            raise internal("resource quota evaluation timed out") from None

    async def _charge(self, judge: Evaluator, write: Write, attributes: Attributes) -> None:
        from steersman.api.core.quota_check import QuotaExceeded, charges

        quotas, error = self._stored(attributes.namespace), None
        for attempt in range(RETRIES + 1):
            try:
                used = charges(quotas, judge, write)
            except QuotaExceeded as refusal:
                scope = attributes.scope
                raise forbidden(scope.group, scope.resource, attributes.name_shown, str(refusal)) from None
            if attributes.dry_run or not used:
                return
            if not attempt:
                attributes.afterwards.append(self._charges.begin(attributes.namespace))
            lost, error = await self._saved(quotas, used)
            if error is None:
                return
            quotas = [quota for quota in self._stored(attributes.namespace) if quota["metadata"]["name"] in lost]
        assert error is not None
        raise error

    async def _saved(
        self, quotas: Sequence[Object], used: Mapping[str, ResourceList]
    ) -> tuple[set[str], ApiError | None]:
        """Write what is used now; the names of the quotas that others have written meanwhile, and the last error."""
        from steersman.api.core import resource_lists as lists

        lost, failure = set(), None
        for quota in quotas:
            name = quota["metadata"]["name"]
            if name not in used:
                continue
            try:
                await self._save({**quota, "status": {**quota["status"], "used": lists.written(used[name])}})
            except (Conflict, NotFound) as error:
                lost.add(name)
                failure = error
        return lost, failure

    def _stored(self, namespace: str) -> list[Object]:
        return [self._quotas.entries[key].decode() for key in self._quotas.select(namespace)]
