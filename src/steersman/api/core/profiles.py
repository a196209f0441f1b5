"""Profiles of AppArmor and seccomp in annotations, where they stood before there were fields.

Source: kubernetes `pkg/registry/core/pod/strategy.go` (applyAppArmorVersionSkew), `pkg/api/pod/util.go`
(ApparmorFieldForAnnotation), KEP-24.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
"""The annotations' keys, but for the name of the container."""
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
DEPRECATED = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_LONGEST = 4095


def app_armor_of(annotation: str) -> Object | None:
    """The AppArmor profile that an annotation names; None if it names none."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    local = annotation.removeprefix("localhost/")
    return {"type": "Localhost", "localhostProfile": local} if local and local != annotation else None


def adopt(pod: Object) -> None:
    """Give the containers of a new Pod the profiles that only annotations name. The Pod's top level is the caller's."""
    profiles = {name: profile for name, profile in _annotated(pod) if profile is not None}
    if not profiles:
        return
    spec = pod["spec"] = dict(pod["spec"])
    for key in ("initContainers", "containers"):
        if key in spec:
            spec[key] = [_with(container, profiles.get(container.get("name") or "")) for container in spec[key] or ()]


def adoption_warnings(pod: Object) -> list[str]:
    """Of annotations whose profiles the containers of a new Pod will get, or that name none."""
    return [f"metadata.annotations[{APP_ARMOR}{name}]: {DEPRECATED}" for name, _ in _annotated(pod)]


def _with(container: Object, profile: Object | None) -> Object:
    if profile is None:
        return container
    return {**container, "securityContext": {**(container.get("securityContext") or {}), "appArmorProfile": profile}}


def _annotated(pod: Object) -> Iterator[tuple[str, Object | None]]:
    """The containers that only an annotation gives a profile, which is not the Pod's, and the profile if it is one."""
    spec, annotations = pod.get("spec") or {}, pod["metadata"].get("annotations") or {}
    if not any(key.startswith(APP_ARMOR) for key in annotations) or (spec.get("os") or {}).get("name") == "windows":
        return
    common = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        name = container.get("name") or ""
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        if own is not None or f"{APP_ARMOR}{name}" not in annotations:
            continue
        profile = _valid(app_armor_of(annotations[f"{APP_ARMOR}{name}"]))
        if profile is None or profile != common:
            yield name, profile


def _valid(profile: Object | None) -> Object | None:
    path = (profile or {}).get("localhostProfile") or ""
    return None if path.strip() != path or len(path.encode()) > _LONGEST else profile
