"""An object in another version of its resource, for a webhook or policy whose rule names that one.

Source: apiserver `pkg/admission/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman.apimachinery.codec import json as codec
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object


def equivalents(catalog: Catalog, scope: ResourceScope) -> Iterable[ResourceScope]:
    """All scopes of the objects that a scope serves."""
    return [other for other in catalog.named(scope.resource) if other.cache is scope.cache]


async def convert(obj: Object | None, scope: ResourceScope, target: ResourceScope) -> Object | None:
    """An object of `scope` as `target` has it; it may share structure with the one given. Raises ApiError."""
    if obj is None or target is scope:
        return obj
    versions = target.versions
    if versions is not None:
        given = obj
        return await target.settled(lambda: versions.convert(given, target.api_version))
    stored: Object = codec.copy(scope.to_storage(obj))
    if target.view.convert is not None:
        target.view.convert(stored)
    return stored
