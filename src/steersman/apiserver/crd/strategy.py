"""Rules of custom resources: what the CRD's schema and the API's conventions demand of every object.

Source: apiextensions-apiserver `pkg/registry/customresource/{strategy,status_strategy,validator}.go`.
"""

from __future__ import annotations

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.apply.fieldset import FieldSet
from steersman.apimachinery.apply.managers import Writer, track_update
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import BadRequest, quote
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.go_values import DecodeError
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.meta import finalizer_warnings, validate_object_meta, validate_object_meta_update
from steersman.apimachinery.names import name_is_dns_subdomain
from steersman.apimachinery.object_meta import coerce_object_meta
from steersman.apimachinery.schema.embedded import SchemaDecodeError
from steersman.apimachinery.schema.pipeline import SchemaPipeline
from steersman.apiserver.scope import ScaleMapping
from steersman.apiserver.strategy import Object

_STATUS = FieldSet.of(("status",))
_ALL_BUT_STATUS = FieldSet.of(("metadata",), ("spec",))  # upstream leaves other top-level fields out


class CustomStrategy:
    """The rules of one version of a custom resource, for writes to the object itself.

    `has_status` says that /status is a subresource of its own: then other writes leave `status` alone.
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
        *,
        namespaced: bool,
        has_status: bool,
        scale: ScaleMapping | None,
    ) -> None:
        self.gvk = gvk
        self.pipeline = pipeline
        self.type_view = view
        self.namespaced = namespaced
        self.has_status = has_status
        self.scale = scale

    @property
    def reset_fields(self) -> FieldSet:
        return _STATUS if self.has_status else FieldSet()

    def normalise(self, obj: Object) -> list[str]:
        try:
            obj["metadata"], strange = coerce_object_meta(obj.get("metadata") or {})
            return self.pipeline.prune(obj) + strange
        except (DecodeError, SchemaDecodeError) as error:
            kind, version = self.gvk.kind, self.gvk.version
            raise BadRequest(f"{kind} in version {quote(version)} cannot be handled as a {kind}: {error}") from None

    def default(self, obj: Object) -> None:
        self.pipeline.default(obj)

    def prepare_for_create(self, obj: Object) -> None:
        if self.has_status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def validate(self, obj: Object) -> list[FieldError]:
        if errors := self._type_errors(obj):
            return errors
        errors = validate_object_meta(
            obj["metadata"], namespaced=self.namespaced, name_validator=name_is_dns_subdomain
        )
        return errors + self.pipeline.validate(obj) + self._scale_errors(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        if self.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        if not same_content(obj, old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        if errors := self._type_errors(obj):
            return errors
        errors = validate_object_meta_update(obj["metadata"], old["metadata"])
        return errors + self.pipeline.validate(obj, old) + self._scale_errors(obj)

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
            reset=self.reset_fields,
        )

    def holds_deletion(self, obj: Object) -> bool:
        return False

    def mark_deleting(self, obj: Object, now: str) -> None:
        """A custom resource has no other sign of its deletion."""

    def _type_errors(self, obj: Object) -> list[FieldError]:
        errors = []
        if obj.get("kind") != self.gvk.kind:
            errors.append(fe.invalid("kind", obj.get("kind"), f"must be {self.gvk.kind}"))
        if obj.get("apiVersion") != self.gvk.api_version:
            errors.append(fe.invalid("apiVersion", obj.get("apiVersion"), f"must be {self.gvk.api_version}"))
        return errors

    def _scale_errors(self, obj: Object) -> list[FieldError]:
        if self.scale is None:
            return []
        errors = []
        for path in (self.scale.spec_replicas, self.scale.status_replicas):
            value = obj
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None  # type: ignore[assignment]
            if isinstance(value, int) and not isinstance(value, bool) and value < 0:
                field = "." + ".".join(path)
                errors.append(fe.invalid(field, value, "should be a non-negative integer"))
        return errors


class CustomStatusStrategy(CustomStrategy):
    """Writes to /status: only `status` changes."""

    @property
    def reset_fields(self) -> FieldSet:
        return _ALL_BUT_STATUS

    def prepare_for_update(self, obj: Object, old: Object) -> None:
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

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        errors = validate_object_meta_update(obj["metadata"], old["metadata"])
        if errors:
            return errors
        return self.pipeline.validate_status(obj, old) + self._scale_errors(obj)


def same_content(a: Object, b: Object) -> bool:
    """Whether two objects are equal but for their metadata (JSON's equality: 1 is not true)."""
    left, right = ({k: v for k, v in obj.items() if k != "metadata"} for obj in (a, b))
    return left == right and codec.encode(left) == codec.encode(right)
