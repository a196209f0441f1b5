"""Writing the status of the reconciled object: once per reconcile, and only if it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import orjson

from steersman.client.models import KubernetesObject
from steersman.client.options import wire
from steersman.client.resources import Kind, Object
from steersman.runtime.client import CachedClient

T = TypeVar("T")

StatusMode = Literal["patch", "apply", "off"]
"""How a status is written: by a merge patch that is guarded by the resourceVersion that was read, by server-side apply
of the whole status, or not at all."""


class StatusWriter:
    """Knows the status as it was read, and writes what the reconciler has made of it."""

    def __init__(self, kind: Kind[Any], obj: KubernetesObject | Object, mode: StatusMode) -> None:
        self._kind = kind
        self._obj = obj
        self._mode = mode
        self._before = b"" if mode == "off" else _encoded(obj)

    async def write(self, client: CachedClient, version: str | None) -> bool:
        """Write the status if it differs from what was read; tells whether it did.

        `version` is the resourceVersion that the reconcile knows last. Raises Conflict when somebody has changed the
        object since, and whatever else the server says.
        """
        if self._mode == "off" or (after := _encoded(self._obj)) == self._before:
            return False
        body = wire(self._obj)
        metadata, status = body["metadata"], body.get("status")
        resource, name, namespace = self._kind.api_kind(), metadata["name"], metadata.get("namespace")
        if self._mode == "apply":
            wanted = {
                "apiVersion": body["apiVersion"],
                "kind": body["kind"],
                "metadata": {"name": name, "namespace": namespace} if namespace else {"name": name},
                "status": status,
            }
            await client.apply(wanted, force=True, subresource="status")
        else:
            before = orjson.loads(self._before)
            guard = {"resourceVersion": version or metadata.get("resourceVersion")}
            patch = {"metadata": guard, "status": merge_diff(before, status)}
            await client.patch_status(resource, name, patch, namespace=namespace)
        self._before = after
        return True


def merge_diff(before: Any, after: Any) -> Any:
    """The JSON merge patch (RFC 7396) that makes `after` of `before`."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return after
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif before[key] != value:
            patch[key] = merge_diff(before[key], value)
    return patch


def _encoded(obj: KubernetesObject | Object) -> bytes:
    return orjson.dumps(wire(obj).get("status"), option=orjson.OPT_SORT_KEYS)
