"""Who owns which fields of an object: `metadata.managedFields` after a POST, PUT or PATCH.

Source: apimachinery `util/managedfields/internal/` (fieldmanager, managedfields, managedfieldsupdater, stripmeta,
buildmanagerinfo, capmanagers, skipnonapplied), structured-merge-diff `merge/update.go`, KEP-555.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from steersman._util.dataclass import dataclass
from steersman.apimachinery.apply import entries
from steersman.apimachinery.apply.compare import Comparison, compare, equal
from steersman.apimachinery.apply.entries import Entry, Identity, Managed, WireEntry
from steersman.apimachinery.apply.fieldset import EMPTY, FieldSet
from steersman.apimachinery.apply.path import PathError
from steersman.apimachinery.apply.reconcile import reconcile
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.apply.validate import validate
from steersman.apimachinery.errors import ApiError

APPLY, UPDATE = "Apply", "Update"
ANCIENT = "ancient-changes"
"""The manager that takes over the oldest entries when there are too many."""
MAX_UPDATE_MANAGERS = 10

Object: TypeAlias = dict[str, Any]

STRIPPED = FieldSet.of(
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    *(
        ("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)
"""Fields that no one ever owns."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who makes a request: the manager's name, "Update" or "Apply", and the subresource that it goes to."""

    manager: str
    operation: str = UPDATE
    subresource: str = ""


class Versions(Protocol):
    """The versions of a kind, for entries that were recorded in another version than the request's.

    Both methods may raise an ApiError when a version cannot be reached, as a custom resource's that its definition
    no longer has: an update then keeps the live managedFields, an apply fails.
    """

    def view(self, api_version: str) -> TypeView | None:
        """The ownership schema of a version; None when the kind has no such version (its entries are dropped)."""

    def convert(self, obj: Object, api_version: str) -> Object:
        """The object in another version. It may share structure with, or be, the one given."""


class OneSchema:
    """Versions that share one schema and need no conversion: every version is known."""

    def __init__(self, view: TypeView) -> None:
        self._view = view

    def view(self, api_version: str) -> TypeView | None:
        return self._view

    def convert(self, obj: Object, api_version: str) -> Object:
        return obj


def track_update(
    live: Object | None,
    new: Object,
    writer: Writer,
    *,
    view: TypeView,
    api_version: str,
    now: str,
    reset: FieldSet | Mapping[str, FieldSet] = EMPTY,
    versions: Versions | None = None,
    fits: bool = True,
) -> list[WireEntry] | None:
    """The `metadata.managedFields` of `new` after a POST, PUT or PATCH (not apply) by `writer`; None: leave it out.

    `live` is the stored object in the request's version, None on create; `new` is what the request makes of it,
    defaulted, with the managedFields that the client sent (left out, null or undecodable: the live ones are kept;
    `[]` or `[{}]`: tracking ends until the next apply; in a custom resource, whose metadata loses empty lists when it
    is decoded, `[]` counts as left out). Neither is changed, entries that stay the same are shared.
    `reset` names the fields that this resource or subresource never writes (by apiVersion when versions differ);
    they and all below them are not owned. `now` is RFC 3339 with seconds. `view` belongs to `api_version`.
    If an object does not fit the types of its own version (not `fits`), has an item that lacks a key of its list, or
    cannot be converted to the version of an entry, the live entries stay as they are.
    """
    managed = _tracked(live, new, writer)
    if not managed and live is not None:
        return None
    if not fits:
        return _managed_fields(live) or None
    before = view.empty if live is None else live
    run = Update(view, api_version, reset, versions or OneSchema(view))
    try:
        changed = run.compare(before, new)
        run.take(managed, before, new, changed)
    except (ApiError, PathError):
        return _managed_fields(live) or None
    _credit(managed, writer, api_version, changed, now)
    if len(managed) > MAX_UPDATE_MANAGERS:
        cap(managed)
    return entries.ordered(managed) or None


def restore_times(live: Object, new: Object) -> Object:
    """`new`, with the live managedFields if the two objects differ in nothing but the times of their entries.

    Called last before a write, so that a request which changes nothing is no write. Source: apiserver
    `endpoints/handlers/fieldmanager/equality.go`.
    """
    old_entries, new_entries = _managed_fields(live), _managed_fields(new)
    if not old_entries or old_entries is new_entries or len(old_entries) != len(new_entries or ()):
        return new
    for old, now in zip(old_entries, new_entries, strict=True):
        if old is not now and {**old, "time": None} != {**now, "time": None}:
            return new
    if old_entries == new_entries:
        return new
    restored = {**new, "metadata": {**new["metadata"], "managedFields": old_entries}}
    return restored if equal(restored, live) else new


def _tracked(live: Object | None, new: Object, writer: Writer) -> Managed:
    """The entries to start from: those that the request carries, or else the live ones."""
    stored = _managed_fields(live)
    if not writer.subresource:
        sent = _managed_fields(new)
        if sent is not stored and sent is not None and sent != stored:
            if entries.is_reset(sent):
                return {}
            decoded = entries.decode(sent, trusted=False)
            if decoded:
                return decoded
    return entries.decode(stored, trusted=True) or {} if stored else {}


def untracked(obj: Object) -> Object:
    """The object without its managedFields."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _managed_fields(obj: Object | None) -> Any:
    return ((obj or {}).get("metadata") or {}).get("managedFields")


@dataclass(slots=True)
class Update:
    """One write against the entries of other managers: what changed is taken from them, version by version."""

    view: TypeView
    api_version: str
    reset: FieldSet | Mapping[str, FieldSet]
    versions: Versions

    def reset_in(self, api_version: str) -> FieldSet:
        return self.reset if isinstance(self.reset, FieldSet) else self.reset.get(api_version, EMPTY)

    def compare(self, before: Object, after: Object) -> Comparison:
        return compare(self.view, before, after).without(self.reset_in(self.api_version))

    def take(self, managed: Managed, before: Object, after: Object, changed: Comparison) -> None:
        """Takes the fields that were changed or removed from every manager; those left with nothing go."""
        in_version = {self.api_version: changed}
        for identity, entry in list(managed.items()):
            view = self.view if entry.api_version == self.api_version else self.versions.view(entry.api_version)
            if view is None:
                del managed[identity]
                continue
            comparison = in_version.get(entry.api_version)
            if comparison is None:
                comparison = in_version[entry.api_version] = self.compare_in(
                    view, entry.api_version, before, after, changed
                )
            fields = FieldSet(reconcile(view, entry.fields.tree))
            left = fields
            for taken in (comparison.modified, comparison.added, comparison.removed):
                if taken.tree:
                    left = left.difference(taken)
            if not left:
                del managed[identity]
            elif left.tree is not entry.fields.tree:
                managed[identity] = entry.with_fields(left)

    def compare_in(
        self, view: TypeView, api_version: str, before: Object, after: Object, changed: Comparison
    ) -> Comparison:
        """The comparison as seen in another version."""
        old = self.in_version(view, before, api_version, "failed to convert old object: ")
        new = self.in_version(view, after, api_version, "failed to convert new object: ")
        if old is before and new is after and view is self.view and isinstance(self.reset, FieldSet):
            return changed
        return compare(view, old, new).without(self.reset_in(api_version))

    def in_version(self, view: TypeView, obj: Object, api_version: str, failure: str) -> Object:
        """The object in another version, whose schema it must fit. Raises ApiError, with `failure` in front."""
        try:
            bare = untracked(obj)
            found = self.versions.convert(bare, api_version)
            if found is bare:
                return obj
            if wrong := validate(view, found):
                raise ApiError(wrong)
        except ApiError as error:
            raise ApiError(f"{failure}{error.message}") from None
        return found


def _credit(managed: Managed, writer: Writer, api_version: str, changed: Comparison, now: str) -> None:
    """Gives what was added or modified to the writer, with the present time."""
    gained = changed.modified.union(changed.added).difference(STRIPPED)
    if not gained:
        return
    identity = Identity(writer.manager or "unknown", UPDATE, api_version, writer.subresource)
    previous = managed.get(identity)
    fields = gained if previous is None else previous.fields.union(gained)
    managed[identity] = Entry(identity, api_version, fields, now)


def cap(managed: Managed) -> None:
    """Merges the oldest Update entries, per apiVersion, until no more than MAX_UPDATE_MANAGERS are left."""
    updaters = [identity for identity in managed if identity.operation == UPDATE]
    count = len(updaters)
    updaters.sort(key=lambda identity: (managed[identity].time or "", identity.text()))
    first: dict[str, Identity] = {}
    for identity in updaters:
        if count <= MAX_UPDATE_MANAGERS:
            return
        entry = managed[identity]
        bucket = Identity(ANCIENT, UPDATE, entry.api_version, "")
        oldest = first.setdefault(entry.api_version, identity)
        if oldest is identity:
            continue
        if bucket not in managed:
            managed[bucket] = managed.pop(oldest)
        merged = entry.fields.union(managed[bucket].fields)
        managed[bucket] = Entry(bucket, entry.api_version, merged, entry.time)
        managed.pop(identity)  # as upstream does, even if it is what the others were merged into
        count -= 1
