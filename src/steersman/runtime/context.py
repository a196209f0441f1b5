"""What a reconciler has at hand."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, overload

from steersman.client.models import KubernetesObject
from steersman.client.options import identity_of
from steersman.client.resources import Object
from steersman.runtime.client import CachedClient
from steersman.runtime.finalizers import finalizing
from steersman.runtime.idempotent import Change, Settled, Written, apply, create_or_update
from steersman.runtime.owners import set_controller_reference
from steersman.runtime.recorder import EventRecorder, EventType
from steersman.runtime.requests import Reason, Request

O = TypeVar("O", bound=KubernetesObject | Object)  # noqa: E741 -- an object, typed or not
M = TypeVar("M", bound=KubernetesObject)

logger = logging.getLogger("steersman.runtime.reconcile")


class ReconcileLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records tell the reconcile: `controller`, `key`, `reconcile_id`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class Context:
    """One reconcile: the client, what is reconciled, why, and what is usually done then."""

    def __init__(
        self,
        client: CachedClient,
        request: Any,
        *,
        controller: str,
        reasons: Sequence[Reason],
        reconcile_id: str,
        attempt: int,
        recorder: EventRecorder,
        settled: Settled,
        field_manager: str,
        fencing_token: int | None = None,
    ) -> None:
        self.client = client
        """Reads what is watched from the cache, never older than this client's own writes; see `CachedClient`."""
        self.request = request
        """The object's namespace and name, a `Request`; or whatever the controller's queue holds."""
        self.reasons = reasons
        """Why this reconcile runs."""
        self.reconcile_id = reconcile_id
        """Tells this run from all others, in logs."""
        self.attempt = attempt
        """How often the runs before this have failed, in a row."""
        self.fencing_token = fencing_token
        """Grows with each change of the leader; None without leader election."""
        self.log = ReconcileLog(logger, {"controller": controller, "key": str(request), "reconcile_id": reconcile_id})
        self.object: KubernetesObject | Object | None = None
        """The object that is reconciled."""
        self._recorder = recorder
        self._settled = settled
        self._field_manager = field_manager

    @overload
    async def create_or_update(
        self, obj: Object, change: Change[Object] | None = None, *, owned: bool = True
    ) -> Written[Object]: ...

    @overload
    async def create_or_update(self, obj: M, change: Change[M] | None = None, *, owned: bool = True) -> Written[M]: ...

    async def create_or_update(self, obj: O, change: Change[O] | None = None, *, owned: bool = True) -> Written[O]:
        """Have an object in the cluster as wanted; written only if that makes a difference after the server's defaults.

        `obj` is laid over what is there: mappings key by key, lists of named items item by item, other lists as a
        whole. Or `change` makes the wanted object of the one that is there, in place or as its result; `obj` then only
        names it, and is what it gets when there is none. Both may happen several times, after a Conflict with a fresh
        read. `owned`: the reconciled object becomes its controller, so that they go together. Gives the object and
        what was done: "unchanged", "created" or "updated".
        """
        if owned:
            self._own(obj)
        if owned and change is not None:
            change = self._owning(change)
        return await create_or_update(self.client, obj, change, self._settled)

    @overload
    async def apply(self, obj: Object, *, owned: bool = True, force: bool = True) -> Written[Object]: ...

    @overload
    async def apply(self, obj: M, *, owned: bool = True, force: bool = True) -> Written[M]: ...

    async def apply(self, obj: O, *, owned: bool = True, force: bool = True) -> Written[O]:
        """Have the fields of `obj` in the cluster by server-side apply, and take away those that it no longer has.

        Nothing is sent while neither `obj` nor what is there has changed. `force` takes fields over from other
        managers; without it, a Conflict names them. `owned` as in `create_or_update`.
        """
        if owned:
            self._own(obj)
        return await apply(self.client, obj, self._settled, field_manager=self._field_manager, force=force)

    def finalizing(self, finalizer: str) -> AbstractAsyncContextManager[bool]:
        """Holds the reconciled object back from deletion until the block has cleaned up:

            async with ctx.finalizing("myorg.io/bucket") as deleting:
                if deleting:
                    await delete_bucket(app)

        Raises RuntimeError where no object is reconciled.
        """
        if self.object is None:
            raise RuntimeError("there is no object to put a finalizer on")
        return finalizing(self.client, self.object, finalizer)

    def event(
        self,
        reason: str,
        note: str,
        *,
        type: EventType = "Normal",  # noqa: A002 -- the API's name
        regarding: KubernetesObject | Object | None = None,
        action: str = "Reconcile",
    ) -> None:
        """Record an Event about the reconciled object (or another), in the background; see `EventRecorder.event`."""
        about = regarding if regarding is not None else self.object
        if about is None:
            raise RuntimeError("there is no object that the Event could be about")
        self._recorder.event(about, reason, note, type=type, action=action)

    def _own(self, obj: KubernetesObject | Object) -> None:
        if self.object is None:
            raise RuntimeError("there is no object that could own another: pass owned=False")
        _put_into(obj, identity_of(self.object).namespace)
        set_controller_reference(self.object, obj)

    def _owning(self, change: Change[Any]) -> Change[Any]:
        async def changed(obj: Any) -> Any:
            outcome: Any = change(obj)
            if hasattr(outcome, "__await__"):
                outcome = await outcome
            result = obj if outcome is None else outcome
            self._own(result)
            return result

        return changed


def _put_into(obj: KubernetesObject | Object, namespace: str | None) -> None:
    """What a namespaced object owns is in its namespace, unless it says otherwise."""
    if not namespace:
        return
    if isinstance(obj, KubernetesObject):
        obj.metadata.namespace = obj.metadata.namespace or namespace
    else:
        obj.setdefault("metadata", {}).setdefault("namespace", namespace)


def request_of(obj: Object) -> Request:
    metadata = obj.get("metadata") or {}
    return Request(metadata.get("namespace") or "", metadata.get("name") or "")
