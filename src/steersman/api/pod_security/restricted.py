"""The further checks of the restricted level: what hardened Pods say and do without.

Source: pod-security-admission `policy/check_*.go`, the file of each check's name.
"""

from __future__ import annotations

from steersman.api.pod_security.baseline import added, has_bad_type, seccomp_profile
from steersman.api.pod_security.parts import (
    Check,
    Object,
    Violation,
    bad,
    containers,
    counted,
    name,
    named,
    quoted,
    security,
    setters,
    uses,
)

_VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_OTHER_VOLUMES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def unless_windows(check: Check) -> Check:
    """The check, from which Pods for Windows are free: they cannot set what it asks for."""

    def relaxed(metadata: Object, spec: Object) -> Violation | None:
        return None if (spec.get("os") or {}).get("name") == "windows" else check(metadata, spec)

    return relaxed


def unless_own_users(check: Check) -> Check:
    """The check, from which Pods with a user namespace of their own are free (KEP-127)."""

    def relaxed(metadata: Object, spec: Object) -> Violation | None:
        return None if spec.get("hostUsers") is False else check(metadata, spec)

    return relaxed


def privilege_escalation(metadata: Object, spec: Object) -> Violation | None:
    names = bad(spec, lambda context: context.get("allowPrivilegeEscalation") is not False)
    if not names:
        return None
    detail = f"{named(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def _drops_all(context: Object) -> bool:
    return "ALL" in ((context.get("capabilities") or {}).get("drop") or ())


def _forbidden(context: Object) -> list[str]:
    return [each for each in added(context) if each != "NET_BIND_SERVICE"]


def capabilities(metadata: Object, spec: Object) -> Violation | None:
    told = []
    if keeping := bad(spec, lambda context: not _drops_all(context)):
        told.append(f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding := bad(spec, lambda context: bool(_forbidden(context))):
        found = sorted({each for item in containers(spec) for each in _forbidden(security(item))})
        told.append(f"{named(adding)} must not include {quoted(found)} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(told)) if told else None


def volume_types(metadata: Object, spec: Object) -> Violation | None:
    volumes = [item for item in spec.get("volumes") or () if all(item.get(key) is None for key in _VOLUMES)]
    if not volumes:
        return None
    names = [name(volume) for volume in volumes]
    types = sorted({_type_of(volume) for volume in volumes})
    kinds = f"{counted('restricted volume type', types)} {quoted(types)}"
    return Violation("restricted volume types", f"{counted('volume', names)} {quoted(names)} {uses(names)} {kinds}")


def _type_of(volume: Object) -> str:
    return next((key for key in _OTHER_VOLUMES if volume.get(key) is not None), "unknown")


def run_as_non_root(metadata: Object, spec: Object) -> Violation | None:
    pod = security(spec).get("runAsNonRoot")
    who = setters(pod is False, bad(spec, lambda context: context.get("runAsNonRoot") is False))
    if who:
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [] if pod else bad(spec, lambda context: context.get("runAsNonRoot") is None)
    if not silent:
        return None
    return Violation("runAsNonRoot != true", f"pod or {named(silent)} must set securityContext.runAsNonRoot=true")


def _is_root(context: Object) -> bool:
    return context.get("runAsUser") == 0


def run_as_user(metadata: Object, spec: Object) -> Violation | None:
    who = setters(_is_root(security(spec)), bad(spec, _is_root))
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_required(metadata: Object, spec: Object) -> Violation | None:
    """From v1.19 on: a profile that everybody may have must be set."""
    if violation := seccomp_profile(metadata, spec):
        return violation
    pod = security(spec)
    if pod.get("seccompProfile") is not None and not has_bad_type(pod, "seccompProfile"):
        return None
    silent = bad(spec, lambda context: context.get("seccompProfile") is None)
    if not silent:
        return None
    asked = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {named(silent)} {asked}")
