"""Security contexts of pods and containers.

Source: kubernetes `pkg/apis/core/validation/validation.go` (validatePodSpecSecurityContext, ValidateSecurityContext).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import re2

from steersman.api import checks
from steersman.api.core.paths import descending_path
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_MAX_SYSCTL, _MAX_PROFILE = 253, 4095
_CHOICES = (
    ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ("seLinuxChangePolicy", ("MountOption", "Recursive")),
)
_SHARED_MEMORY = ("shm", "shmall", "shmmax", "shmmni", "shm_rmid_forced")
_IPC = frozenset(f"kernel.{name}" for name in ("sem", "msg", "msgmax", "msgmnb", "msgmni", *_SHARED_MEMORY))
_FIELDS: tuple[str, ...] = (
    "privileged",
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "readOnlyRootFilesystem",
    "allowPrivilegeEscalation",
    "procMount",
    "seccompProfile",
    "appArmorProfile",
)
_STRUCTS = {
    "seLinuxOptions": ("user", "role", "type", "level"),
    "windowsOptions": ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName", "hostProcess"),
    "seccompProfile": ("type", "localhostProfile"),
    "appArmorProfile": ("type", "localhostProfile"),
}
_sysctl = re2.compile(_SYSCTL)


def pod_security_errors(spec: Object, place: str) -> list[FieldError]:
    """The security context of a pod's spec at `place`."""
    context = spec.get("securityContext") or {}
    errors = _ids_errors(context, ("fsGroup", "runAsUser", "runAsGroup"), place)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += checks.in_range(group, 0, checks.MAX_INT32, f"{place}.supplementalGroups[{index}]")
    errors += _sysctls_errors(context.get("sysctls") or (), spec, f"{place}.sysctls")
    if (policy := context.get("fsGroupChangePolicy")) is not None:
        errors += checks.supported(policy, ("Always", "OnRootMismatch"), f"{place}.fsGroupChangePolicy")
    errors += _seccomp_errors(context.get("seccompProfile"), f"{place}.seccompProfile")
    errors += _app_armor_errors(context.get("appArmorProfile"), f"{place}.appArmorProfile")
    for key, allowed in _CHOICES:
        if context.get(key) is not None:
            errors += checks.supported(context[key], allowed, f"{place}.{key}")
    return errors


def container_security_errors(context: Object | None, place: str, *, host_users: bool) -> list[FieldError]:
    """The security context of a container; `host_users` is the pod's, true unless it is set."""
    if context is None:
        return []
    errors = _ids_errors(context, ("runAsUser", "runAsGroup"), place)
    mount = context.get("procMount")
    if mount is not None:
        errors += checks.supported(mount, ("Default", "Unmasked"), f"{place}.procMount")
        if host_users and mount == "Unmasked":
            errors.append(fe.invalid(f"{place}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _seccomp_errors(context.get("seccompProfile"), f"{place}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        errors += _escalation_errors(context, place)
    return errors + _app_armor_errors(context.get("appArmorProfile"), f"{place}.appArmorProfile")


def _escalation_errors(context: Object, place: str) -> list[FieldError]:
    shown, errors = _internal(context), []
    denied = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        errors.append(fe.invalid(place, shown, f"{denied} `privileged` to true"))
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        errors.append(fe.invalid(place, shown, f"{denied} `capabilities.Add` CAP_SYS_ADMIN"))
    return errors


def _internal(context: Object) -> fe.Struct:
    """A container's security context as errors quote it."""
    capabilities = context.get("capabilities")
    if capabilities is not None:
        capabilities = fe.Struct(Add=capabilities.get("add"), Drop=capabilities.get("drop"))
    names = {key: _upper(key) for key in _FIELDS} | {"seLinuxOptions": "SELinuxOptions"}
    return fe.Struct(Capabilities=capabilities, **{names[key]: _quoted(key, context.get(key)) for key in _FIELDS})


def _quoted(key: str, value: Any) -> Any:
    """A field of a security context as errors quote it."""
    if value is None or key not in _STRUCTS:
        return value
    absent = "" if key == "seLinuxOptions" else None
    return fe.Struct({_upper(name): value.get(name, absent) for name in _STRUCTS[key]})


def _upper(name: str) -> str:
    return "GMSA" + name[4:] if name.startswith("gmsa") else name[0].upper() + name[1:]


def _ids_errors(context: Object, keys: Sequence[str], place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in keys:
        if context.get(key) is not None:
            errors += checks.in_range(context[key], 0, checks.MAX_INT32, f"{place}.{key}")
    return errors


def _sysctls_errors(sysctls: Sequence[Object], spec: Object, place: str) -> list[FieldError]:
    errors, seen = [], set()
    for index, item in enumerate(sysctls):
        field, name = f"{place}[{index}].name", item.get("name") or ""
        if not name:
            errors.append(fe.required(field))
        elif len(name.encode()) > _MAX_SYSCTL or not _sysctl.fullmatch(name):
            text = f"must have at most {_MAX_SYSCTL} characters and match regex ^{_SYSCTL}$"
            errors.append(fe.invalid(field, name, text))
        elif name in seen:
            errors.append(fe.duplicate(field, name))
        seen.add(name)
        errors += _host_errors(name, spec, field)
    return errors


def _host_errors(name: str, spec: Object, field: str) -> list[FieldError]:
    """What belongs to a namespace that the pod shares with its host is not the pod's to set."""
    dotted = _dotted(name)
    if spec.get("hostNetwork") and dotted.startswith("net."):
        return [fe.invalid(field, name, "may not be specified when 'hostNetwork' is true")]
    if spec.get("hostIPC") and (dotted in _IPC or dotted.startswith("fs.mqueue.")):
        return [fe.invalid(field, name, "may not be specified when 'hostIPC' is true")]
    return []


def _dotted(name: str) -> str:
    """A sysctl's name with dots between its parts: what separates them comes first in it, a dot or a slash."""
    if name.find("/") < 0 or 0 <= name.find(".") < name.find("/"):
        return name
    return name.translate(str.maketrans("./", "/."))


def _seccomp_errors(profile: Object | None, place: str) -> list[FieldError]:
    if profile is None:
        return []
    kind, path = profile.get("type") or "", profile.get("localhostProfile")
    errors, field = [], f"{place}.localhostProfile"
    if not kind:
        errors.append(fe.required(f"{place}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(fe.not_supported(f"{place}.type", kind, _PROFILES))
    if kind == "Localhost":
        if path is None:
            return [*errors, fe.required(field, "must be set when seccomp type is Localhost")]
        return errors + descending_path(path, field)
    if path is not None:
        shown = fe.Struct(Type=kind, LocalhostProfile=path)
        errors.append(fe.invalid(field, shown, "can only be set when seccomp type is Localhost"))
    return errors


def _app_armor_errors(profile: Object | None, place: str) -> list[FieldError]:
    if profile is None:
        return []
    kind, path = profile.get("type") or "", profile.get("localhostProfile")
    field = f"{place}.localhostProfile"
    if not kind:
        return [fe.required(f"{place}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [fe.not_supported(f"{place}.type", kind, _PROFILES)]
    if kind != "Localhost":
        text = "can only be set when AppArmor type is Localhost"
        return [] if path is None else [fe.invalid(field, path, text)]
    errors = []
    if path is not None and path.strip() != path:
        errors.append(fe.invalid(field, path, "must not be padded with whitespace"))
    elif not path:
        errors.append(fe.required(field, "must be set when AppArmor type is Localhost"))
    if len((path or "").encode()) > _MAX_PROFILE:
        errors.append(fe.too_long(field, _MAX_PROFILE))
    return errors
