"""Writing the status of the reconciled object: once per reconcile, and only if it has changed."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import orjson

from steersman.apimachinery.patch import merge_patch
from steersman.client.models import KubernetesObject
from steersman.client.options import identity_of
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
        patch = merge_patch.diff({"status": orjson.loads(self._before)}, {"status": orjson.loads(after)})
        if not patch:
            return False
        who = identity_of(self._obj)
        resource, namespace = self._kind.api_kind(), who.namespace or None
        if self._mode == "apply":
            # The uid keeps it from an object that was made anew under the name.
            metadata = {"name": who.name, "uid": who.uid} | ({"namespace": namespace} if namespace else {})
            wanted = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            status = merge_patch.apply({}, {"status": orjson.loads(after) or {}})  # a null stands for an absent field
            await client.apply({**wanted, **status}, force=True, subresource="status")
        else:
            patch["metadata"] = {"resourceVersion": version or who.resource_version}
            await client.patch_status(resource, who.name, patch, namespace=namespace)
        self._before = after
        return True


def _encoded(obj: KubernetesObject | Object) -> bytes:
    status = obj.field_to_wire("status") if isinstance(obj, KubernetesObject) else obj.get("status")
    return orjson.dumps(status, option=orjson.OPT_SORT_KEYS)
