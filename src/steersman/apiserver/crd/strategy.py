"""Rules of custom resources: what the CRD's schema and the API's conventions demand of every object.

Source: apiextensions-apiserver `pkg/registry/customresource/{strategy,status_strategy,validator}.go`.
"""

from __future__ import annotations

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.apply import server_side
from steersman.apimachinery.apply.fieldset import FieldSet
from steersman.apimachinery.apply.managers import Versions, Writer, track_update, untracked
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.apply.validate import validate
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.go_values import DecodeError, cannot_be_handled
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.meta import (
    finalizer_warnings,
    validate_common_update,
    validate_object_meta,
    validate_object_meta_update,
)
from steersman.apimachinery.names import name_is_dns_subdomain
from steersman.apimachinery.object_meta import coerce_object_meta
from steersman.apimachinery.schema.embedded import SchemaDecodeError
from steersman.apimachinery.schema.pipeline import SchemaPipeline
from steersman.apimachinery.unstructured import AccessError, nested_int, nested_text
from steersman.apiserver.rest import mark_deleting
from steersman.apiserver.scope import ScaleMapping
from steersman.apiserver.strategy import Object

_IMPLIED = frozenset({"apiVersion", "kind", "metadata"})
_MAX_INT32 = 2**31 - 1
_STATUS = FieldSet.of(("status",))
_ALL_BUT_STATUS = FieldSet.of(("metadata",), ("spec",))  # upstream leaves other top-level fields out


class CustomStrategy:
    """The rules of one version of a custom resource, for writes to the object itself.

    `has_status` says that /status is a subresource of its own: then other writes leave `status` alone. `with_status`
    are the apiVersions of the definition that have it.
    """

    allow_create_on_update = False
    allow_unconditional_update = False
    returns_deleted = False
    error_kind = ""

    def __init__(
        self,
        gvk: GroupVersionKind,
        pipeline: SchemaPipeline,
        view: TypeView,
        versions: Versions,
        *,
        namespaced: bool,
        has_status: bool,
        scale: ScaleMapping | None,
        with_status: tuple[str, ...] = (),
    ) -> None:
        self.gvk = gvk
        self.pipeline = pipeline
        self.type_view = view
        self.versions = versions
        self.namespaced = namespaced
        self.has_status = has_status
        self.scale = scale
        self.reset = self._reset(with_status)

    def _reset(self, with_status: tuple[str, ...]) -> dict[str, FieldSet]:
        """The fields that no write here changes, by apiVersion; owners in other versions may lose their status."""
        return {self.gvk.api_version: _STATUS} if self.has_status else {}

    def decode(self, obj: Object) -> tuple[Object, list[str]]:
        try:
            obj["metadata"], strange = coerce_object_meta(obj.get("metadata"))
            return obj, strange + self._prune(obj)
        except (DecodeError, SchemaDecodeError) as error:
            version = (obj.get("apiVersion") or "").rpartition("/")[2]
            raise cannot_be_handled(self.gvk.kind, version, str(error), given=obj.get("kind") or "") from error

    def _prune(self, obj: Object) -> list[str]:
        """Remove what the object's version does not know; another kind or version is refused later."""
        api_version = obj.get("apiVersion") or ""
        if obj.get("kind") != self.gvk.kind or api_version.rpartition("/")[0] != self.gvk.group:
            return []
        if api_version == self.gvk.api_version:
            return self.pipeline.prune(obj)
        try:
            self.versions.view(api_version)
        except ApiError:
            return sorted(obj.keys() - _IMPLIED)  # a version without a schema has no fields
        return []

    def default(self, obj: Object) -> None:
        self.pipeline.default(obj)

    def before_create(self, obj: Object) -> list[FieldError]:
        if self.has_status:
            obj.pop("status", None)
        meta = obj["metadata"]
        meta["generation"] = 1
        # Upstream goes on to what holds for all kinds, which is less than what holds for these.
        return self.pipeline.validate(
            obj,
            instead=self._type_errors(obj),
            metadata=validate_object_meta(meta, namespaced=self.namespaced, name_validator=name_is_dns_subdomain),
            scale=self._spec_scale_errors(obj) + self._status_scale_errors(obj),
        )

    def before_update(self, obj: Object, old: Object) -> list[FieldError]:
        meta, old_meta = obj["metadata"], old["metadata"]
        keep_system_metadata(meta, old_meta)
        self._prepare_for_update(obj, old)
        errors = validate_common_update(obj["metadata"], old_meta, namespaced=self.namespaced)
        # Upstream asks for the metadata's errors twice, and tells those that there are twice.
        again = validate_object_meta_update(obj["metadata"], old_meta) if errors else []
        return errors + self._judge_update(obj, old, again)

    def _prepare_for_update(self, obj: Object, old: Object) -> None:
        if self.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        if not same_content(obj, old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def _judge_update(self, obj: Object, old: Object, metadata: list[FieldError]) -> list[FieldError]:
        return self.pipeline.validate(
            obj,
            old,
            instead=self._type_errors(obj),
            metadata=metadata,
            scale=self._spec_scale_errors(obj) + self._status_scale_errors(obj),
        )

    def first_warnings(self, obj: Object) -> list[str]:
        return []

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        finalizers = obj["metadata"].get("finalizers") or []
        known = (old or {"metadata": {}})["metadata"].get("finalizers") or []
        return finalizer_warnings(name for name in finalizers if name not in known)

    def track(self, live: Object | None, new: Object, writer: Writer, now: str) -> list[Object] | None:
        return track_update(
            live,
            new,
            writer,
            view=self.type_view,
            api_version=self.gvk.api_version,
            now=now,
            reset=self.reset,
            versions=self.versions,
            fits=self._fits(new) and (live is None or self._fits(live)),
        )

    def _fits(self, obj: Object) -> bool:
        """Whether an object has the types that field ownership needs; what the schema takes mostly has them."""
        if obj.get("kind") != self.gvk.kind:
            return False
        if self.pipeline.implies_types and self.pipeline.is_valid(obj):
            return True
        return not validate(self.type_view, untracked(obj), allow_duplicates=True)

    def apply(self, live: Object | None, config: Object, writer: Writer, now: str, *, force: bool) -> Object:
        return server_side.apply(
            live,
            config,
            writer,
            kind=self.gvk.kind,
            view=self.type_view,
            api_version=self.gvk.api_version,
            now=now,
            force=force,
            reset=self.reset,
            versions=self.versions,
            complete=self._complete,
        )

    def _complete(self, merged: Object) -> Object:
        obj: Object = codec.copy(merged)
        obj["metadata"], _ = coerce_object_meta(obj.get("metadata") or {})
        self.pipeline.default(obj)
        return obj

    def holds_deletion(self, obj: Object) -> bool:
        return False

    def deletion_finalizers(self, obj: Object) -> tuple[str, ...]:
        return ()

    def mark_deleting(self, obj: Object, now: str) -> None:
        mark_deleting(obj["metadata"], now)

    def _type_errors(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if obj.get("kind") != self.gvk.kind:
            errors.append(fe.invalid("kind", obj.get("kind"), f"must be {self.gvk.kind}"))
        if obj.get("apiVersion") != self.gvk.api_version:
            errors.append(fe.invalid("apiVersion", obj.get("apiVersion"), f"must be {self.gvk.api_version}"))
        return errors

    def _spec_scale_errors(self, obj: Object) -> list[FieldError]:
        return _replicas_errors(obj, self.scale.spec_replicas) if self.scale else []

    def _status_scale_errors(self, obj: Object) -> list[FieldError]:
        if self.scale is None:
            return []
        errors = _replicas_errors(obj, self.scale.status_replicas)
        if self.scale.selector is not None:
            try:
                nested_text(obj, self.scale.selector)
            except AccessError as error:
                errors.append(fe.invalid(_field(self.scale.selector), "", str(error)))
        return errors


def _replicas_errors(obj: Object, path: tuple[str, ...]) -> list[FieldError]:
    try:
        replicas = nested_int(obj, path) or 0
    except AccessError as error:
        return [fe.invalid(_field(path), 0, str(error))]
    if replicas < 0:
        return [fe.invalid(_field(path), replicas, "should be a non-negative integer")]
    if replicas > _MAX_INT32:
        return [fe.invalid(_field(path), replicas, f"should be less than or equal to {_MAX_INT32}")]
    return []


def _field(path: tuple[str, ...]) -> str:
    return "." + ".".join(path)


class CustomStatusStrategy(CustomStrategy):
    """Writes to /status: only `status` changes."""

    def _reset(self, with_status: tuple[str, ...]) -> dict[str, FieldSet]:
        return dict.fromkeys(with_status, _ALL_BUT_STATUS)

    def _prepare_for_update(self, obj: Object, old: Object) -> None:
        status, sent = obj.get("status"), obj["metadata"]
        has_status = "status" in obj
        obj.clear()
        obj.update(old)
        obj["metadata"] = dict(old["metadata"])
        if "managedFields" in sent:
            obj["metadata"]["managedFields"] = sent["managedFields"]
        else:
            obj["metadata"].pop("managedFields", None)
        if has_status:
            obj["status"] = status
        else:
            obj.pop("status", None)

    def _judge_update(self, obj: Object, old: Object, metadata: list[FieldError]) -> list[FieldError]:
        return self.pipeline.validate_status(obj, old, metadata=metadata, scale=self._status_scale_errors(obj))


def keep_system_metadata(meta: Object, old: Object) -> None:
    """What clients cannot change in metadata, from the stored object."""
    meta["generation"] = old.get("generation", 0)
    for key in ("uid", "deletionGracePeriodSeconds"):
        if key in old and not meta.get(key):
            meta[key] = old[key]
    for key in ("creationTimestamp", "deletionTimestamp"):
        if key in old:
            meta[key] = old[key]
    meta.pop("selfLink", None)


def same_content(a: Object, b: Object) -> bool:
    """Whether two objects are equal but for their metadata, as Go compares them: 1 is neither true nor 1.0."""
    left, right = ({k: v for k, v in obj.items() if k != "metadata"} for obj in (a, b))
    return left == right and codec.identity(left) == codec.identity(right)
