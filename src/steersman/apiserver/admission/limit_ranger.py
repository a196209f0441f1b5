"""LimitRanger: containers get what they do not say, and nobody asks for less or more than a LimitRange allows.

Source: kubernetes `plugin/pkg/admission/limitranger/admission.go`.
"""

from __future__ import annotations

from steersman.apimachinery.errors import forbidden
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache

_LIMITED = frozenset({"pods", "persistentvolumeclaims"})


class LimitRanger:
    """Has a part in both phases: the defaults come first, the limits once the object is complete."""

    name = "LimitRanger"

    def __init__(self, limit_ranges: ResourceCache) -> None:
        self._cache = limit_ranges

    @property
    def active(self) -> bool:
        return bool(self._cache.entries)

    async def admit(self, attributes: Attributes) -> None:
        """Complete the containers of a new Pod."""
        pod = attributes.obj
        if attributes.scope.resource != "pods" or pod is None:
            return
        for limit_range in self._concerning(attributes):
            from steersman.api.core.limits import complete  # deferred: most servers have no LimitRange

            complete(pod, limit_range)

    async def validate(self, attributes: Attributes) -> None:
        """Raises Forbidden for what is outside of the limits."""
        obj, scope = attributes.obj, attributes.scope
        for limit_range in self._concerning(attributes):
            from steersman.api.core.limits import claim_problems, pod_problems

            assert obj is not None
            problems_of = pod_problems if scope.resource == "pods" else claim_problems
            if problems := list(dict.fromkeys(problems_of(obj, limit_range))):
                why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                raise forbidden(scope.group, scope.resource, attributes.name_shown, why)

    def _concerning(self, attributes: Attributes) -> list[Object]:
        scope, old = attributes.scope, attributes.old
        if scope.group or scope.resource not in _LIMITED or attributes.obj is None:
            return []
        resizes = scope.resource == "pods" and attributes.subresource == "resize"
        if attributes.subresource and not resizes:
            return []
        if scope.resource == "pods" and (attributes.operation == "UPDATE") != resizes:
            return []
        if old is not None and "deletionTimestamp" in old["metadata"]:
            return []
        keys = self._cache.select(attributes.namespace)
        return [self._cache.entries[key].decode() for key in keys]
