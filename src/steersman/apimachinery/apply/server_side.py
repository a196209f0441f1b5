"""Server-side apply: merging a configuration into an object under field ownership.

Source: KEP-555; structured-merge-diff `merge/update.go` (Apply, prune); apimachinery `util/managedfields/internal/`
(versioncheck, lastappliedupdater, lastappliedmanager, skipnonapplied, structuredmerge, conflict).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery.apply import entries
from steersman.apimachinery.apply import path as paths
from steersman.apimachinery.apply.compare import compare, equal
from steersman.apimachinery.apply.entries import Entry, Identity, Managed
from steersman.apimachinery.apply.fieldset import EMPTY, FieldSet, canonical, from_paths
from steersman.apimachinery.apply.managers import (
    APPLY,
    STRIPPED,
    UPDATE,
    Object,
    OneSchema,
    Update,
    Versions,
    Writer,
    untracked,
)
from steersman.apimachinery.apply.merge import fields_of, has_bare_items, merge, remove, with_named_parents
from steersman.apimachinery.apply.reconcile import reconcile
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.apply.validate import validate
from steersman.apimachinery.errors import ApiError, BadRequest, Conflict

BEFORE_FIRST_APPLY = "before-first-apply"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PRUNING = "failed to prune fields: "
_EXISTING = "failed to create manager for existing fields: "
MAX_ANNOTATIONS_BYTES = 256 * 1024


class ApplyConflict(Conflict):
    """Other managers own fields that the configuration sets to another value. Apply with force to take them."""

    def __init__(self, fields: Mapping[Identity, FieldSet]) -> None:
        self.fields = dict(sorted(fields.items(), key=lambda item: item[0].text()))
        found = [(_manager(identity), paths.describe(p)) for identity, owned in self.fields.items() for p in owned]
        if len(found) == 1:
            message = f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
        else:
            lines = [
                line
                for identity, owned in self.fields.items()
                for line in (f"conflicts with {_manager(identity)}:", *(f"- {paths.describe(p)}" for p in owned))
            ]
            message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
        causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": where}
            for manager, where in found
        ]
        super().__init__(message, details={"causes": causes})


def _manager(identity: Identity) -> str:
    text = quote(identity.manager)
    if identity.subresource:
        text += f" with subresource {quote(identity.subresource)}"
    return f"{text} using {identity.api_version}" if identity.operation == UPDATE else text


def apply(
    live: Object | None,
    config: Object,
    writer: Writer,
    *,
    kind: str,
    view: TypeView,
    api_version: str,
    now: str,
    force: bool = False,
    reset: FieldSet | Mapping[str, FieldSet] = EMPTY,
    versions: Versions | None = None,
    complete: Callable[[Object], Object] = lambda merged: merged,
) -> Object:
    """The object after `writer` applied `config`, with its managedFields; not yet validated.

    `live` is the stored object in `api_version` with its managedFields, None if there is none; neither argument is
    changed. `view`, `reset`, `versions` and `now` are as for `track_update`; `kind` and `api_version` are those of the
    request. `complete` gives a merged object its defaults and the form of its type (what lost its last field is null);
    it is not called when nothing changes.

    Raises BadRequest for another kind or version or when the configuration has managedFields, ApplyConflict unless
    `force`, and ApiError with code 500 and no reason when an object does not fit its schema.
    """
    check_kind(config, api_version, kind)
    run = _Apply(
        view, api_version, reset, versions or OneSchema(view), Identity(writer.manager, APPLY, "", writer.subresource)
    )
    base = {**view.empty, "apiVersion": api_version, "kind": kind} if live is None else untracked(live)
    managed = entries.decode((live or {}).get("metadata", {}).get("managedFields") or [], trusted=True) or {}
    if not managed:
        managed = run.owned_before(base, kind, writer.subresource, now)
    patch = run.checked(config, base, kind)
    try:
        merged, managed = run.apply(base, patch, managed, now, force)
    except ApplyConflict as conflict:
        if writer.manager != KUBECTL:
            raise
        left = _without_last_applied(conflict, run, base)
        if left:
            raise ApplyConflict(left) from conflict
        merged, managed = run.apply(base, patch, managed, now, True)
    obj = base if merged is base else complete(merged)
    if writer.manager == KUBECTL:
        obj = _with_last_applied(obj, patch)
    fields = entries.ordered(managed)
    metadata = {**(obj.get("metadata") or {}), **({"managedFields": fields} if fields else {})}
    return {**obj, "metadata": metadata}


def check_kind(config: Object, api_version: str, kind: str) -> None:
    """Raises BadRequest for a configuration of another kind or version."""
    sent_version, sent_kind = _text(config.get("apiVersion")), _text(config.get("kind"))
    if (sent_version, sent_kind) != (api_version, kind):
        raise BadRequest(f"invalid object type: {_type_name(sent_version, sent_kind)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _type_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _described(obj: Object, api_version: str, kind: str) -> str:
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {_type_name(api_version, kind)}"


@dataclass(slots=True)
class _Apply(Update):
    """One apply: merging, pruning what the applier gave up, and the ownership of the result."""

    identity: Identity

    def checked(self, config: Object, live: Object, kind: str) -> Object:
        """The configuration without a null managedFields, after both objects were found to fit the schema."""
        metadata = config.get("metadata") or {}
        if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
            raise BadRequest("metadata.managedFields must be nil")
        patch = untracked(config)
        for what, obj, duplicates in (("patch", patch, False), ("live", live, True)):
            wrong = validate(self.view, obj, allow_duplicates=duplicates)
            if wrong:
                where = _described(obj, self.api_version, kind)
                raise ApiError(f"failed to create typed {what} object ({where}): {wrong}")
        return patch

    def owned_before(self, live: Object, kind: str, subresource: str, now: str) -> Managed:
        """All that an untracked object has, credited to one manager. Raises ApiError for one of other types."""
        if wrong := validate(self.view, live, allow_duplicates=True):
            where = _described(live, self.api_version, kind)
            raise ApiError(f"{_EXISTING}failed to convert new object ({where}) to smd typed: {wrong}")
        changed = self.compare(self.view.empty, live)
        fields = changed.modified.union(changed.added).difference(STRIPPED)
        if not fields:
            return {}
        identity = Identity(BEFORE_FIRST_APPLY, UPDATE, self.api_version, subresource)
        return {identity: Entry(identity, self.api_version, fields, now)}

    def apply(self, live: Object, config: Object, before: Managed, now: str, force: bool) -> tuple[Object, Managed]:
        managed = self.reconciled(live, before)
        merged = merge(self.view, live, config)
        last = managed.get(self.identity)
        fields = fields_of(self.view, config).recursive_difference(self.reset_in(self.api_version))
        managed[self.identity] = Entry(self.identity, self.api_version, fields, last.time if last else None)
        if not self.keeps_all(fields, last, managed):
            merged = self.prune(merged, managed, last)
        self.settle(managed, live, merged, force)
        same = live is merged or equal(live, merged)
        mine = managed.pop(self.identity, None)
        if mine is not None:
            owned = mine.fields.difference(STRIPPED)
            if owned:
                time = mine.time if same else now
                unchanged = last is not None and owned == last.fields and time == last.time
                kept = last if unchanged and last is not None and last.api_version == self.api_version else None
                managed[self.identity] = kept or Entry(self.identity, self.api_version, owned, time)
        return (live if same else merged), managed

    def reconciled(self, live: Object, before: Managed) -> Managed:
        """The entries under the present schemas, without those of versions that are gone."""
        out: Managed = {}
        for identity, entry in before.items():
            view = self.view_of(entry.api_version)
            if view is not None:
                self.in_version(view, live, entry.api_version, "")
                tree = reconcile(view, entry.fields.tree)
                out[identity] = entry if tree is entry.fields.tree else entry.with_fields(FieldSet(tree))
        return out

    def view_of(self, api_version: str) -> TypeView | None:
        return self.view if api_version == self.api_version else self.versions.view(api_version)

    def settle(self, managed: Managed, live: Object, merged: Object, force: bool) -> None:
        """Finds who else owns what changes: a conflict, or with force a loss."""
        mine = managed.pop(self.identity)
        changed = self.compare(live, merged)
        conflicts = self.conflicts(managed, live, merged, changed)
        if conflicts and not force:
            raise ApplyConflict(conflicts)
        self.take(managed, live, merged, changed)
        if mine.fields:
            managed[self.identity] = mine

    def conflicts(self, managed: Managed, live: Object, merged: Object, changed: Any) -> dict[Identity, FieldSet]:
        out: dict[Identity, FieldSet] = {}
        for identity, entry in managed.items():
            view = self.view_of(entry.api_version)
            if view is None:
                continue
            seen = changed
            if entry.api_version != self.api_version:
                seen = self.compare_in(view, entry.api_version, live, merged, changed)
            taken = entry.fields.intersection(seen.modified.union(seen.added))
            if taken:
                out[identity] = FieldSet(canonical(taken.tree))
        return out

    def keeps_all(self, fields: FieldSet, last: Entry | None, managed: Managed) -> bool:
        """Whether the applier gives nothing up: then nothing is pruned. Other versions are left to `prune`."""
        if last is None or any(entry.api_version != self.api_version for entry in managed.values()):
            return False
        if last.api_version != self.api_version or has_bare_items(last.fields.tree):
            return False
        return last.fields == fields or not last.fields.difference(fields)

    def prune(self, merged: Object, managed: Managed, last: Entry | None) -> Object:
        """Removes what the applier applied last time, does not apply now, and no one else owns."""
        if last is None or not last.fields:
            return merged
        view = self.view_of(last.api_version)
        if view is None:
            return merged
        whole = self.in_version(
            view, merged, last.api_version, f"{_PRUNING}failed to convert merged object to last applied version: "
        )
        pruned = remove(view, whole, with_named_parents(view, last.fields))
        pruned = self.add_back_owned(whole, pruned, last.api_version, managed)
        pruned = self.add_back_dangling(view, whole, pruned, last)
        return self.in_version(self.view, pruned, self.api_version, _PRUNING)

    def add_back_owned(self, whole: Object, pruned: Object, first: str, managed: Managed) -> Object:
        owned: dict[str, FieldSet] = {first: EMPTY}
        for entry in managed.values():
            owned[entry.api_version] = owned.get(entry.api_version, EMPTY).union(entry.fields)
        for version, fields in owned.items():
            view = self.view_of(version)
            if view is None:
                continue
            failure = _PRUNING + "failed add back owned items: failed to convert {} object at version " + version + ": "
            whole = self.in_version(view, whole, version, failure.format("merged"))
            pruned = self.in_version(view, pruned, version, failure.format("pruned"))
            kept = with_named_parents(view, fields_of(view, pruned)).union(with_named_parents(view, fields))
            pruned = remove(view, whole, with_named_parents(view, fields_of(view, whole)).difference(kept))
        return pruned

    def add_back_dangling(self, view: TypeView, whole: Object, pruned: Object, last: Entry) -> Object:
        """Only what the applier owned may go: the rest comes back, whoever owns it."""
        failure = "failed add back dangling items: failed to convert pruned object to last applied version: "
        pruned = self.in_version(view, pruned, last.api_version, _PRUNING + failure)
        before, after, owned = (
            with_named_parents(view, fields)
            for fields in (fields_of(view, whole), fields_of(view, pruned), last.fields)
        )
        return remove(view, whole, before.difference(after).intersection(owned))


def _without_last_applied(conflict: ApplyConflict, run: _Apply, live: Object) -> dict[Identity, FieldSet]:
    """The conflicts on fields that client-side apply did not set to their present values."""
    annotation = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last = orjson.loads(annotation or "")
    except orjson.JSONDecodeError:
        return conflict.fields
    if not isinstance(last, dict) or last.get("apiVersion") != run.api_version:
        return conflict.fields
    if validate(run.view, last) or validate(run.view, live):
        return conflict.fields
    differences = compare(run.view, last, live)
    allowed = fields_of(run.view, last)
    for changed in (differences.modified, differences.added, differences.removed):
        allowed = allowed.difference(changed)
    left = {identity: from_paths(p for p in owned if not allowed.has(p)) for identity, owned in conflict.fields.items()}
    return {identity: fields for identity, fields in left.items() if fields}


def _with_last_applied(obj: Object, config: Object) -> Object:
    """Keeps the annotation of client-side apply, if there is one, in step with what was applied."""
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return obj
    sent = config.get("metadata") or {}
    if isinstance(sent.get("annotations"), dict):
        kept = {name: value for name, value in sent["annotations"].items() if name != LAST_APPLIED}
        config = {**config, "metadata": {**sent, "annotations": kept}}
    annotations = {**annotations, LAST_APPLIED: paths.encode_value(config) + "\n"}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        del annotations[LAST_APPLIED]
    return {**obj, "metadata": {**metadata, "annotations": annotations}}
