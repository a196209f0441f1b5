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
from steersman.client.pager import key_of
from steersman.client.resources import Object
from steersman.runtime.cache.cache import identity
from steersman.runtime.cache.events import current_run

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
    clean up and to make nothing new, and the finalizer is taken off at its end. While others hold the object, it is
    asked to clean up again: there may be nothing left to do.
    """
    deleting, held = is_deleting(obj), has_finalizer(obj, finalizer)
    if not deleting and not held:
        await set_finalizers(client, obj, [*finalizers_of(obj), finalizer])
    yield deleting
    if deleting and held:
        await set_finalizers(client, obj, [name for name in finalizers_of(obj) if name != finalizer])


async def set_finalizers(client: Client, obj: KubernetesObject | Object, finalizers: list[str]) -> None:
    """Write the finalizers of an object, guarded by the resourceVersion that was read, or that this reconcile has made
    since; `obj` is brought up to date in these two. An object that is gone meanwhile is no error. Raises Conflict."""
    body = wire(obj)
    metadata = body["metadata"]
    kind, run = kind_of(body), current_run()
    known = run.versions.get((*identity(kind.api_kind()), key_of(body))) if run is not None else None
    guard = known or metadata["resourceVersion"]
    patch = {"metadata": {"resourceVersion": guard, "finalizers": finalizers or None}}
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
