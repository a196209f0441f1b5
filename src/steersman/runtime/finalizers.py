"""Finalizers: an object is not gone before the operator has cleaned up after it.

Source: API concepts, "Finalizers"; controller-runtime `pkg/controller/controllerutil`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from steersman.apimachinery.errors import NotFound
from steersman.client.client import Client
from steersman.client.models import KubernetesObject
from steersman.client.options import kind_of, wire
from steersman.client.resources import Object

O = TypeVar("O", bound=KubernetesObject | Object)  # noqa: E741 -- an object, typed or not


def has_finalizer(obj: KubernetesObject | Object, finalizer: str) -> bool:
    return finalizer in finalizers_of(obj)


def finalizers_of(obj: KubernetesObject | Object) -> list[str]:
    """The object's finalizers, as they are now."""
    if isinstance(obj, KubernetesObject):
        return list(obj.metadata.finalizers)
    return list((obj.get("metadata") or {}).get("finalizers") or [])


def is_deleting(obj: KubernetesObject | Object) -> bool:
    """Whether the object's deletion has begun."""
    if isinstance(obj, KubernetesObject):
        return obj.metadata.deletion_timestamp is not None
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


@asynccontextmanager
async def finalizing(client: Client, obj: O, finalizer: str) -> AsyncIterator[bool]:
    """Holds `obj` back from deletion until a block has run without an error while it was being deleted.

    On entry the finalizer is put on the object unless it is being deleted. The block gets whether it is: then it is to
    clean up, and the finalizer is taken off at its end. A block that is to clean up, but whose finalizer is not there
    any more, has cleaned up before: it need not do anything, and is told False.
    """
    deleting, held = is_deleting(obj), has_finalizer(obj, finalizer)
    if not deleting and not held:
        await set_finalizers(client, obj, [*finalizers_of(obj), finalizer])
    yield deleting and held
    if deleting and held:
        await set_finalizers(client, obj, [name for name in finalizers_of(obj) if name != finalizer])


async def set_finalizers(client: Client, obj: KubernetesObject | Object, finalizers: list[str]) -> None:
    """Write the finalizers of an object, guarded by the resourceVersion that was read; `obj` is brought up to date in
    these two. An object that is gone meanwhile is no error. Raises Conflict."""
    body = wire(obj)
    metadata = body["metadata"]
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers or None}}
    kind = kind_of(body)
    try:
        made = await client.patch(kind, metadata["name"], patch, namespace=metadata.get("namespace"))
    except NotFound:
        return
    version, written = made["metadata"]["resourceVersion"], made["metadata"].get("finalizers") or []
    if isinstance(obj, KubernetesObject):
        obj.metadata.finalizers = written
        obj.metadata.resource_version = version
    else:
        obj["metadata"].update(resourceVersion=version, finalizers=written)
