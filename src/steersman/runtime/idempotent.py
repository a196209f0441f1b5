"""Create or update, create or apply: written only where it makes a difference to the server.

What an operator wants rarely has all fields: the server fills in defaults, and other writers add their own. So wanting
is laid over what is there, and where that differs, the server is asked; when it finds that nothing has changed after
its defaults, this is remembered, and not asked again until either side changes.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import orjson

from steersman.apimachinery.errors import AlreadyExists, Conflict, NotFound
from steersman.client.models import KubernetesObject
from steersman.client.options import kind_of, wire
from steersman.client.resources import Kind, Object
from steersman.client.retry import DEFAULT_RETRY, Backoff
from steersman.runtime.client import CachedClient
from steersman.runtime.owners import merged_references

O = TypeVar("O", bound=KubernetesObject | Object)  # noqa: E741 -- an object, typed or not

Operation = Literal["unchanged", "created", "updated"]
Change = Callable[[O], O | None] | Callable[[O], Awaitable[O | None]]

_VOLATILE = ("resourceVersion", "generation", "managedFields")


class Written(NamedTuple, Generic[O]):
    """The object as it is now, and what was done for that."""

    object: O
    operation: Operation


class Settled:
    """What the server has found to make no difference, for at most `limit` objects."""

    def __init__(self, limit: int = 100_000) -> None:
        self._known: OrderedDict[str, tuple[bytes, bytes]] = OrderedDict()
        self._limit = limit

    def holds(self, present: Object, wanted: Object) -> bool:
        """Whether writing `wanted` over `present` is known to change nothing."""
        return self._known.get(present["metadata"]["uid"]) == (_print(present), _print(wanted))

    def remember(self, present: Object, wanted: Object) -> None:
        """Writing `wanted` has led, or would lead, to `present`."""
        uid = present["metadata"]["uid"]
        self._known[uid] = (_print(present), _print(wanted))
        self._known.move_to_end(uid)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


async def create_or_update(
    client: CachedClient,
    obj: O,
    change: Change[O] | None,
    settled: Settled,
    *,
    backoff: Backoff = DEFAULT_RETRY,
) -> Written[O]:
    """Have an object in the cluster that has all fields of `obj`, and after `change`, if given.

    Without `change`, mappings are laid over what is there, lists of named items item by item; what `obj` does not name
    stays as it is. With it, `change` gets the object that is there (or `obj`, to be created), and changes it in place
    or returns the new one; it may run several times. Source: controller-runtime `controllerutil.CreateOrUpdate`.
    """
    kind, wanted, delays = kind_of(obj), wire(obj), backoff.delays()
    while True:
        present = await _present(client, kind, wanted)
        try:
            if present is None:
                return await _create(client, kind, obj, change, settled)
            return await _update(client, kind, present, wanted, change, settled)
        except (AlreadyExists, Conflict, NotFound) as error:
            # The client asks the server for the object next time.
            if (isinstance(error, NotFound) and present is None) or next(delays, None) is None:
                raise


async def apply(
    client: CachedClient,
    obj: O,
    settled: Settled,
    *,
    field_manager: str | None,
    force: bool,
    backoff: Backoff = DEFAULT_RETRY,
) -> Written[O]:
    """Server-side apply, left out where it is known to change nothing; see `Client.apply`."""
    kind, wanted, delays = kind_of(obj), wire(obj), backoff.delays()
    while True:
        present = await _present(client, kind, wanted)
        if present is not None and settled.holds(present, wanted):
            return Written(kind.from_wire(present), "unchanged")
        body = wanted if present is None else _guarded(wanted, present)
        try:
            made: Object = await client.apply(body, field_manager=field_manager, force=force)
        except Conflict as error:
            if is_of_fields(error) or next(delays, None) is None:
                raise
            continue
        except NotFound:
            if present is None or next(delays, None) is None:
                raise
            continue
        settled.remember(made, wanted)
        return Written(kind.from_wire(made), _operation(present, made))


async def _present(client: CachedClient, kind: Kind[Any], wanted: Object) -> Object | None:
    metadata = wanted.get("metadata") or {}
    if not metadata.get("name"):
        return None
    try:
        return await client.get_whole(kind.api_kind(), metadata["name"], namespace=metadata.get("namespace") or None)
    except NotFound:
        return None


async def _create(
    client: CachedClient, kind: Kind[O], obj: O, change: Change[O] | None, settled: Settled
) -> Written[O]:
    wanted = wire(obj)
    body = wanted if change is None else await _changed(kind, wanted, change)
    made: Object = await client.create(body)
    settled.remember(made, await _over(kind, made, wanted, change))
    return Written(kind.from_wire(made), "created")


async def _update(
    client: CachedClient, kind: Kind[O], present: Object, wanted: Object, change: Change[O] | None, settled: Settled
) -> Written[O]:
    body = await _over(kind, present, wanted, change)
    # A typed object is compared as its model writes it.
    same = present if change is None else wire(kind.from_wire(present))
    if body == same or settled.holds(present, body):
        return Written(kind.from_wire(present), "unchanged")
    made: Object = await client.update(_guarded(body, present))
    settled.remember(made, await _over(kind, made, wanted, change))
    return Written(kind.from_wire(made), _operation(present, made))


async def _over(kind: Kind[O], present: Object, wanted: Object, change: Change[O] | None) -> Object:
    """What is wanted instead of `present`."""
    if change is not None:
        return await _changed(kind, present, change)
    body: Object = overlay(present, wanted)
    if (wanted.get("metadata") or {}).get("ownerReferences"):
        body["metadata"]["ownerReferences"] = merged_references(present, wanted)
    return body


async def _changed(kind: Kind[O], raw: Object, change: Change[O]) -> Object:
    obj = kind.from_wire(orjson.loads(orjson.dumps(raw)))
    outcome = change(obj)
    changed = await outcome if inspect.isawaitable(outcome) else outcome
    return wire(obj if changed is None else changed)


def overlay(present: Any, wanted: Any) -> Any:
    """`wanted` laid over `present`: mappings key by key, lists of named items item by item."""
    if isinstance(present, dict) and isinstance(wanted, dict):
        return {**present, **{key: overlay(present.get(key), value) for key, value in wanted.items()}}
    if isinstance(present, list) and isinstance(wanted, list):
        return _overlay_list(present, wanted)
    return wanted


def _overlay_list(present: list[Any], wanted: list[Any]) -> list[Any]:
    if not all(isinstance(item, dict) for item in (*present, *wanted)):
        return wanted
    names = [item.get("name") for item in wanted]
    if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        known = {item.get("name"): item for item in present}
        return [overlay(known.get(item["name"]), item) for item in wanted]
    if len(present) == len(wanted):
        return [overlay(old, new) for old, new in zip(present, wanted, strict=True)]
    return wanted


def _guarded(body: Object, present: Object) -> Object:
    metadata = {**(body.get("metadata") or {}), "resourceVersion": present["metadata"]["resourceVersion"]}
    return {**body, "metadata": metadata}


def _operation(present: Object | None, made: Object) -> Operation:
    if present is None:
        return "created"
    same = present["metadata"].get("resourceVersion") == made["metadata"].get("resourceVersion")
    return "unchanged" if same else "updated"


def is_of_fields(error: Conflict) -> bool:
    """Whether it is about fields that other managers own: no further try does better."""
    causes = (error.details or {}).get("causes") or []
    return any(cause.get("reason") == "FieldManagerConflict" for cause in causes)


def _print(obj: Object) -> bytes:
    """A fingerprint of all that a writer of the object can mean: without its status and the server's bookkeeping."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _VOLATILE}
    content = {**obj, "metadata": metadata}
    content.pop("status", None)
    return hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
