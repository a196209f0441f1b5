"""What a pod may have of its host: what its operating system knows, users, and processes of the host itself.

Source: kubernetes `pkg/apis/core/validation/validation.go` (validateLinux, validateWindows, validateHostUsers,
validateWindowsHostProcessPod).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
_NOT_OF_LINUX = "windows options cannot be set for a linux pod"
_NOT_OF_WINDOWS = "cannot be set for a windows pod"
_PROFILES = ("appArmorProfile", "seLinuxOptions", "seccompProfile")
_POD_SECURITY = (
    *_PROFILES,
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_SECURITY = (
    *_PROFILES,
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_USERS = "when `hostUsers` is false"


def containers(spec: Object, place: str) -> Iterator[tuple[Object, str]]:
    """All containers of a pod's spec at `place`, and where each is."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            yield container, f"{place}.{key}[{index}]"


def system_errors(spec: Object, place: str) -> list[FieldError]:
    """What a pod's spec at `place` sets that the operating system that it names does not have."""
    system = (spec.get("os") or {}).get("name")
    if system == "linux":
        every = [(spec, place), *containers(spec, place)]
        fields = [f"{path}.securityContext.windowsOptions" for holder, path in every if _has_windows(holder)]
        return [fe.forbidden(field, _NOT_OF_LINUX) for field in fields]
    return [fe.forbidden(field, _NOT_OF_WINDOWS) for field in _linux_fields(spec, place)] if system == "windows" else []


def _has_windows(holder: Object) -> bool:
    return (holder.get("securityContext") or {}).get("windowsOptions") is not None


def _linux_fields(spec: Object, place: str) -> Iterator[str]:
    context = spec.get("securityContext") or {}
    for key in _POD_SECURITY:
        if context.get(key) is not None and (key != "sysctls" or context[key]):
            yield f"{place}.securityContext.{key}"
    for key in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        if spec.get(key) if key in ("hostPID", "hostIPC") else spec.get(key) is not None:
            yield f"{place}.{key}"
    for container, path in containers(spec, place):
        own = container.get("securityContext") or {}
        yield from (f"{path}.securityContext.{key}" for key in _CONTAINER_SECURITY if own.get(key) is not None)


def host_users_errors(spec: Object, place: str) -> list[FieldError]:
    """What does not go with users of the pod's own."""
    if spec.get("hostUsers") is not False:
        return []
    keys = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    errors = [fe.forbidden(f"{place}.{shown}", _USERS) for key, shown in keys if spec.get(key)]
    for container, path in containers(spec, place):
        if container.get("volumeDevices"):
            errors.append(fe.forbidden(f"{path}.volumeDevices", _USERS))
    return errors


def host_process_errors(spec: Object, place: str) -> list[FieldError]:
    """Where containers of a pod's spec at `place` are processes of a Windows host, all are, on the host's network."""
    common, errors, on_host, count = _host_process(spec), [], 0, 0
    for container, path in containers(spec, place):
        own, count = _host_process(container), count + 1
        if common is not None and own is not None and common != own:
            text = f"pod hostProcess value must be identical if both are specified, was {fe.format_value(common)}"
            errors.append(fe.invalid(f"{path}.securityContext.windowsOptions.hostProcess", own, text))
        on_host += bool(common if own is None else own)
    if on_host and on_host != count:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(fe.invalid(place, "", text))
    if on_host and not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(fe.invalid(f"{place}.hostNetwork", False, text))
    return errors


def _host_process(holder: Object) -> bool | None:
    found = ((holder.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    return None if found is None else bool(found)
