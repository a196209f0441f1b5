"""Events of both APIs, which are one object: stored as core/v1, shown as events.k8s.io/v1 under other names.

Source: kubernetes `pkg/apis/core/validation/events.go`, `pkg/apis/events/v1/conversion.go`,
`pkg/registry/core/event/strategy.go`, `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import UNKNOWN, age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_immutable, validate_label_name
from steersman.apimachinery.selectors import SelectorError

MAX_INSTANCE = 128
MAX_ACTION = 128
MAX_REASON = 128
MAX_NOTE = 1024

_NEW_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_TO_NEW = {core: new for new, core in _NEW_TO_CORE.items()}
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_CORE_LABELS = {f"involvedObject.{key}": f"involvedObject.{key}" for key in _INVOLVED} | {
    key: key for key in ("reason", "reportingComponent", "source", "type", "metadata.name", "metadata.namespace")
}
_NEW_LABELS = {f"regarding.{key}": f"involvedObject.{key}" for key in _INVOLVED} | {
    "reportingController": "reportingComponent",
    **{key: key for key in ("reason", "type", "metadata.name", "metadata.namespace")},
}
_GO_REFERENCE = (
    ("Kind", "kind"),
    ("Namespace", "namespace"),
    ("Name", "name"),
    ("UID", "uid"),
    ("APIVersion", "apiVersion"),
    ("ResourceVersion", "resourceVersion"),
    ("FieldPath", "fieldPath"),
)
_GO_FIELDS = {
    "involvedObject": _GO_REFERENCE,
    "related": _GO_REFERENCE,
    "source": (("Component", "component"), ("Host", "host")),
}
_IMMUTABLE = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type")
_IMMUTABLE_LATE = ("eventTime", "action", "related", "reportingController", "reportingInstance")


class EventStrategy(BuiltinStrategy):
    """core/v1: little is demanded, since old clients send little."""

    default_delete_policy: ClassVar[str] = "unsupported"
    labels: ClassVar[Mapping[str, str]] = _CORE_LABELS
    controller_field: ClassVar[str] = "reportingComponent"

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _legacy_errors(self.to_storage(obj), self.controller_field)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def convert_field(self, label: str, value: str) -> tuple[str, str]:
        if label not in self.labels:
            raise SelectorError(f"field label not supported: {label}")
        return self.labels[label], value

    def field(self, obj: Object, label: str) -> str:
        if label == "source":
            return super().field(obj, "source.component") or super().field(obj, "reportingComponent")
        return super().field(obj, label)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        return _row(self.to_storage(obj), now)


class NewEventStrategy(EventStrategy):
    """events.k8s.io/v1: complete events only, of which little but the series may change."""

    labels: ClassVar[Mapping[str, str]] = _NEW_LABELS
    controller_field: ClassVar[str] = "reportingController"

    def to_storage(self, obj: Object) -> Object:
        renamed = {_NEW_TO_CORE.get(key, key): value for key, value in obj.items()}
        return self.kind.storage_kind.decode(renamed)[0]

    def from_storage(self, obj: Object) -> Object:
        return self.kind.decode({_CORE_TO_NEW.get(key, key): value for key, value in obj.items()})[0]

    def field(self, obj: Object, label: str) -> str:
        head, dot, rest = label.partition(".")
        return super().field(obj, _CORE_TO_NEW.get(head, head) + dot + rest)

    def validate_create(self, obj: Object) -> list[FieldError]:
        event = self.to_storage(obj)
        errors = [*super().validate_create(obj), *self.validate_meta(obj), *_series_errors(event)]
        if event.get("eventTime") is None:
            errors.append(fe.required("eventTime"))
        if (event.get("type") or "") not in ("Normal", "Warning"):
            errors.append(fe.invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
        deprecated = ("firstTimestamp", "lastTimestamp", "count", "source")
        return errors + [fe.invalid(key, "", "needs to be unset") for key in deprecated if event.get(key)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        event, before = self.to_storage(new), self.to_storage(old)
        errors = [*super().validate_create(new), *self.validate_meta_update(new, old)]
        if event.get("series") != before.get("series"):
            errors += _series_errors(event)
        for name in (*_IMMUTABLE, *_IMMUTABLE_LATE):
            key = _NEW_TO_CORE.get(name, name)
            errors += validate_immutable(_quoted(name, event.get(key)), _quoted(name, before.get(key)), name)
        return errors


def _quoted(name: str, value: Any) -> Any:
    """A struct of upstream's internal API, which errors quote with all of its fields by their Go names."""
    fields = _GO_FIELDS.get(name)
    if fields is None or value is None:
        return value
    return fe.Struct((go_name, value.get(key) or "") for go_name, key in fields)


def _series_errors(event: Object) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors: list[FieldError] = []
    if (series.get("count") or 0) < 2:
        errors.append(fe.invalid("series.count", "", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        errors.append(fe.required("series.lastObservedTime"))
    return errors


def _legacy_errors(event: Object, controller_field: str) -> list[FieldError]:
    """What every event must satisfy; those with an eventTime are held to more."""
    namespace = event["metadata"].get("namespace") or ""
    involved = (event.get("involvedObject") or {}).get("namespace") or ""
    mismatch = [fe.invalid("involvedObject.namespace", involved, "does not match event.namespace")]
    if event.get("eventTime") is None:
        agrees = namespace == involved if involved else namespace in ("", "default")
        return [] if agrees else mismatch
    errors = mismatch if not involved and namespace not in ("default", "kube-system") else []
    controller = event.get("reportingComponent") or ""
    if not controller:
        errors.append(fe.required(controller_field))
    errors += validate_label_name(controller, controller_field)
    for field, maximum in (("reportingInstance", MAX_INSTANCE), ("action", MAX_ACTION), ("reason", MAX_REASON)):
        text = event.get(field) or ""
        if not text:
            errors.append(fe.required(field))
        errors += _length_error(field, text, maximum)
    return errors + _length_error("message", event.get("message") or "", MAX_NOTE)


def _length_error(field: str, text: str, maximum: int) -> list[FieldError]:
    too_long = len(text.encode()) > maximum
    return [fe.invalid(field, "", f"can have at most {maximum} characters")] if too_long else []


def _row(event: Object, now: datetime) -> list[Any]:
    first = age(event.get("firstTimestamp"), now)
    if first == UNKNOWN:
        first = age(event.get("eventTime"), now)
    last = age(event.get("lastTimestamp"), now)
    last = first if last == UNKNOWN else last
    series = event.get("series")
    count = event.get("count") or 1
    if series is not None:
        last, count = age(series.get("lastObservedTime"), now), series.get("count") or 0
    involved = event.get("involvedObject") or {}
    kind, name = (involved.get("kind") or "").lower(), involved.get("name") or ""
    return [
        last,
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{name}" if name else kind,
        involved.get("fieldPath") or "",
        _source(event),
        (event.get("message") or "").strip(),
        first,
        count,
        event["metadata"].get("name") or "",
    ]


def _source(event: Object) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component
