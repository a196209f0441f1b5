"""Scopes: all that an endpoint needs to know of one served resource version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import Any, Protocol, TypeVar

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery.apply.managers import Versions
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import BadRequest
from steersman.apimachinery.field_selectors import FieldSelector
from steersman.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from steersman.apimachinery.names import path_segment_name
from steersman.apimachinery.patch.strategic import PatchSchema
from steersman.apiserver.epoch import Epoch
from steersman.apiserver.strategy import Object, Strategy
from steersman.apiserver.watchcache import Entry, ResourceCache

Change = Callable[[Object], None]
T = TypeVar("T")


class View:
    """Stored objects as one version serves them.

    `normalise` brings a decoded object that was stored in another version, or under another schema, into this version's
    form, in place; None when every stored object has the stored form. Objects written after `fresh_after` in the
    version `stored_as` have it too, and `convert` turns those into this version, if it is another, in place.
    `is_stored` says that this version is the one that is stored. A `remote` view cannot convert by itself: entries are
    prepared before they are read.
    """

    remote = False

    def __init__(
        self,
        normalise: Change | None = None,
        fresh_after: int | None = None,
        convert: Change | None = None,
        stored_as: str = "",
    ) -> None:
        self.normalise = normalise
        self.fresh_after = fresh_after
        self.convert = convert
        self.is_stored = convert is None
        self._stored_as = stored_prefix(stored_as) if stored_as else b"{"

    def is_fresh(self, entry: Entry) -> bool:
        if self.normalise is None:
            return True
        return (
            self.fresh_after is not None
            and entry.revision > self.fresh_after
            and entry.stored.startswith(self._stored_as)
        )

    def wire(self, entry: Entry) -> bytes:
        """The object's encoded form in this version."""
        if self.convert is None and self.is_fresh(entry):
            return entry.wire
        if entry.views is None:
            entry.views = {}
        wire = entry.views.get(self)
        if wire is None:
            stored = codec.encode_object(self.tree(entry))
            wire = entry.views[self] = codec.with_resource_version(stored, entry.revision)
        return wire

    def tree(self, entry: Entry) -> Object:
        """A new decoded object in this version."""
        obj = entry.decode()
        if not self.is_fresh(entry):
            assert self.normalise is not None
            self.normalise(obj)
        elif self.convert is not None:
            self.convert(obj)
        return obj

    def labels(self, entry: Entry) -> Mapping[str, str]:
        """The object's labels in this version."""
        return entry.labels

    def missing(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of the entries that are not prepared."""
        return []

    async def prepare(self, entries: Sequence[Entry], *, again: bool = False) -> None:
        """Make entries readable in this version; `again` converts those anew that were converted before.

        Raises Unreadable for those that cannot be converted.
        """


def stored_prefix(api_version: str) -> bytes:
    """How the stored bytes of an object of a version begin."""
    return b'{"apiVersion":%b,' % codec.encode(api_version)


class Claims(Protocol):
    """Of several servers, one gives a thing to one object at a time."""

    def held(self, key: str, value: bytes | None) -> AbstractAsyncContextManager[None]:
        """Claim what an object gets that is stored in this block; raises Claimed."""


class Settler(Protocol):
    """Runs functions that need conversions which take time."""

    async def settle(self, compute: Callable[[], T]) -> T:
        """What `compute` returns in the end; it may run several times."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table. `cell` gets the object and the current time (seconds) and returns a JSON scalar."""

    name: str
    type: str
    format: str
    description: str
    priority: int
    cell: Callable[[Object, float], Any]

    def definition(self) -> Object:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(eq=False, slots=True)
class ResourceScope:
    """One resource in one version. `custom` tells custom resources from built-in kinds: their messages differ.

    `to_storage` turns an object of this version into the stored one (a new top level), which `prunes_for_storage` says
    has only what the stored version knows. `settler` is there when that, or
    what the strategy does about ownership, needs conversions that take time; `versions` converts custom resources,
    whose form may change: `epoch` is the time for which it holds.
    `select_fields` checks a field selector and brings it to the fields that `fields_of` reads from an object; without
    them only name and namespace can be selected. `subresources` are discovery's facts of each, by name. `error_group`
    is the group that 422 answers name, when it is another one. `begin` completes an object that is about to be written
    with what the server gives out (its last argument: for a dry run) and returns what is to be told whether it was
    stored; with `claims` several servers agree on who gives out what; `grace` says how long (in seconds, by what was
    asked) a deletion is only announced; `stored` is False for reviews, which are answered and forgotten;
    `delete_policy` is what happens to dependents when a delete does not say, and `delete_warning` what it is then
    warned of.
    """

    gvr: GroupVersionResource
    kind: str
    list_kind: str
    singular: str
    namespaced: bool
    custom: bool
    cache: ResourceCache
    view: View
    strategy: Strategy
    verbs: frozenset[str]
    columns: tuple[Column, ...]
    to_storage: Callable[[Object], Object] = lambda obj: obj
    prunes_for_storage: bool = False
    settler: Settler | None = None
    versions: Versions | None = None
    epoch: Epoch | None = None
    subresource_strategies: dict[str, Strategy] = field(default_factory=dict)
    scale: ScaleMapping | None = None
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, Object] = field(default_factory=dict)
    storage_version_hash: str = ""
    deprecation: str = ""
    terminating: bool = False
    patch_schema: Callable[[], PatchSchema] | None = None
    error_group: str | None = None
    openapi_schema: Object | None = None
    stored: bool = True
    begin: Callable[[Object, Object | None, bool], Callable[[bool], None]] | None = None
    claims: Claims | None = None
    grace: Callable[[Object, int | None], int] | None = None
    delete_policy: str = "background"
    delete_warning: str = ""
    selectable_fields: tuple[str, ...] = ()
    select_fields: Callable[[FieldSelector], FieldSelector] | None = None
    fields_of: Callable[[Object], Callable[[str], str]] | None = None

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.gvr.group, self.gvr.version, self.kind)

    @property
    def group(self) -> str:
        return self.gvr.group

    @property
    def resource(self) -> str:
        return self.gvr.resource

    @property
    def api_version(self) -> str:
        return self.gvr.api_version

    def key(self, namespace: str, name: str) -> str:
        """An object's key in the cache. Raises BadRequest for a name that can stand in no path."""
        check_name(name)
        return f"{namespace}/{name}" if self.namespaced else name

    async def settled(self, compute: Callable[[], T]) -> T:
        """What a function returns that the strategy or `to_storage` is part of."""
        return compute() if self.settler is None else await self.settler.settle(compute)

    def storage_key(self, key: str) -> bytes:
        return self.cache.prefix + key.encode()


def check_name(name: str) -> None:
    """Raises BadRequest for a name that can stand in no path."""
    if name in (".", "..") or "/" in name or "%" in name:
        raise BadRequest(f"Name parameter invalid: {quote(name)}: {';'.join(path_segment_name(name))}")


@dataclass(frozen=True, slots=True)
class ScaleMapping:
    """Where /scale finds its numbers: paths of keys into the object; `selector` may be absent.

    Built-in kinds have selectors that are objects: `selector_text` writes them.
    """

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] | None = None
    selector_text: Callable[[Any], str] = str


def look_up(obj: Object, path: tuple[str, ...]) -> Any:
    """The value at a path of keys, None when it is not there."""
    value: Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
