"""The rules of annotations that name profiles of seccomp and AppArmor: well formed, and the same as the fields.

Source: kubernetes `pkg/apis/core/validation/validation.go` (ValidatePodSpecificAnnotations,
ValidatePodSpecificAnnotationUpdates, validateSeccompAnnotationsAndFields,
validateAppArmorAnnotationsAndFieldsMatchOnCreate).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman._util.gotext import quote
from steersman.api.core.paths import descending_path
from steersman.api.core.pod_host import containers
from steersman.api.core.profiles import APP_ARMOR, SECCOMP, SECCOMP_POD
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
_PLAIN = frozenset({"runtime/default", "unconfined"})
_LOCAL = "localhost/"
_FIELDS = {"seccomp": "securityContext.seccompProfile", "apparmor": "securityContext.appArmorProfile"}


def annotation_errors(annotations: Mapping[str, str], spec: Object, place: str) -> list[FieldError]:
    """The annotations of a Pod or a template, at `place`, by themselves."""
    errors = _seccomp_errors(annotations[SECCOMP_POD], f"{place}.{SECCOMP_POD}") if SECCOMP_POD in annotations else []
    for key in sorted(annotations):
        if key.startswith(SECCOMP):
            errors += _seccomp_errors(annotations[key], f"{place}.{key}")
    names = {container.get("name") or "" for container, _ in containers(spec, "")}
    for key in sorted(annotations):
        if key.startswith(APP_ARMOR):
            errors += _app_armor_errors(annotations[key], key.removeprefix(APP_ARMOR), names, f"{place}[{key}]")
    return errors


def _seccomp_errors(value: str, place: str) -> list[FieldError]:
    if value in _PLAIN or value == "docker/default":
        return []
    if value.startswith(_LOCAL):
        return descending_path(value.removeprefix(_LOCAL), place)
    return [fe.invalid(place, value, "must be a valid seccomp profile")]


def _app_armor_errors(value: str, name: str, names: set[str], place: str) -> list[FieldError]:
    errors = [] if name in names else [fe.invalid(place, name, "container not found")]
    if value and value not in _PLAIN and not value.startswith(_LOCAL):
        errors.append(fe.invalid(place, value, f"invalid AppArmor profile name: {quote(value)}"))
    return errors


def annotation_changes(new: Object, old: Object) -> list[FieldError]:
    """What an update of a Pod may not change of its annotations, and what is wrong with them."""
    annotations, before = (pod["metadata"].get("annotations") or {} for pod in (new, old))
    errors = []
    for key in sorted(annotations.keys() | before.keys()):
        if key.startswith(APP_ARMOR) and annotations.get(key) != before.get(key):
            verb = "remove or update" if key in before else "add"
            errors.append(fe.forbidden(f"metadata.annotations[{key}]", f"may not {verb} AppArmor annotations"))
    return errors + annotation_errors(annotations, new.get("spec") or {}, "metadata.annotations")


def mismatches(annotations: Mapping[str, str], spec: Object, place: str) -> list[FieldError]:
    """Where annotations of a Pod or a template name other profiles than the fields of its spec, at `place`."""
    if not annotations:
        return []
    errors = _differs(
        annotations.get(SECCOMP_POD), _profile(spec, "seccomp"), f"{place}.{_FIELDS['seccomp']}", "seccomp"
    )
    for container, path in containers(spec, place):
        annotation = annotations.get(f"{SECCOMP}{container.get('name') or ''}")
        errors += _differs(annotation, _profile(container, "seccomp"), f"{path}.{_FIELDS['seccomp']}", "seccomp")
    if (spec.get("os") or {}).get("name") == "windows":
        return errors
    for container, path in containers(spec, place):
        profile = _profile(container, "apparmor") or _profile(spec, "apparmor")
        annotation = annotations.get(f"{APP_ARMOR}{container.get('name') or ''}")
        errors += _differs(annotation, profile, f"{path}.{_FIELDS['apparmor']}", "apparmor")
    return errors


def _profile(holder: Object, what: str) -> Object | None:
    found: Object | None = (holder.get("securityContext") or {}).get(_FIELDS[what].partition(".")[2])
    return found


def _differs(annotation: str | None, profile: Object | None, place: str, what: str) -> list[FieldError]:
    if annotation is None or profile is None:
        return []
    kind, wrong = profile.get("type"), fe.forbidden(f"{place}.type", f"{what} type in annotation and field must match")
    if kind == "Localhost":
        if not annotation.startswith(_LOCAL):
            return [wrong]
        if annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
            text = f"{what} profile in annotation and field must match"
            return [fe.forbidden(f"{place}.localhostProfile", text)]
        return []
    allowed = {"Unconfined": {"unconfined"}, "RuntimeDefault": {"runtime/default"}}.get(kind or "")
    if what == "seccomp" and kind == "RuntimeDefault":
        allowed = {"runtime/default", "docker/default"}
    return [wrong] if allowed is not None and annotation not in allowed else []
