"""The checks of the baseline level, which the restricted level has as well: known ways to more privileges.

Source: pod-security-admission `policy/check_*.go`, the file of each check's name.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman._util.gotext import quote
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

_APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
PROFILES = frozenset({"RuntimeDefault", "Localhost"})
"""The profiles of seccomp and AppArmor that everybody may have."""
_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)


def type_of(context: Object, key: str) -> str | None:
    """The type of a profile in a securityContext; None where there is no profile."""
    profile = context.get(key)
    return None if profile is None else str(profile.get("type") or "")


def has_bad_type(context: Object, key: str) -> bool:
    return type_of(context, key) not in (None, *PROFILES)


def bad_types(spec: Object, key: str) -> list[str]:
    """The types of profiles, of the Pod and its containers, that not everybody may have."""
    contexts = (security(spec), *map(security, containers(spec)))
    return sorted({type_of(context, key) or "" for context in contexts if has_bad_type(context, key)})


def app_armor_profile(metadata: Object, spec: Object) -> Violation | None:
    pod = has_bad_type(security(spec), "appArmorProfile")
    names = bad(spec, lambda context: has_bad_type(context, "appArmorProfile"))
    annotations = sorted(
        f"{key}={quote(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APPARMOR_ANNOTATION) and value not in ("", "runtime/default")
        if not value.startswith("localhost/")
    )
    who = [setters(pod, names)] if pod or names else []
    if annotations:
        who.append(counted("annotation", annotations))
    if not who:
        return None
    values = [*bad_types(spec, "appArmorProfile"), *annotations]
    detail = f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}"
    return Violation(counted("forbidden AppArmor profile", values), detail)


def capabilities(metadata: Object, spec: Object) -> Violation | None:
    names = bad(spec, lambda context: not _CAPABILITIES.issuperset(added(context)))
    if not names:
        return None
    found = sorted({each for item in containers(spec) for each in added(security(item))} - _CAPABILITIES)
    detail = f"{named(names)} must not include {quoted(found)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def added(context: Object) -> list[str]:
    return list((context.get("capabilities") or {}).get("add") or ())


def host_namespaces(metadata: Object, spec: Object) -> Violation | None:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def host_path_volumes(metadata: Object, spec: Object) -> Violation | None:
    found = [name(volume) for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{counted('volume', found)} {quoted(found)}") if found else None


def _host_ports(container: Object) -> list[str]:
    return [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]


def host_ports(metadata: Object, spec: Object) -> Violation | None:
    names = [name(container) for container in containers(spec) if _host_ports(container)]
    if not names:
        return None
    ports = sorted({port for container in containers(spec) for port in _host_ports(container)})
    return Violation("hostPort", f"{named(names)} {uses(names)} {counted('hostPort', ports)} {', '.join(ports)}")


def _hosts(container: Object) -> Iterator[str]:
    """The hosts that a container's probes and lifecycle handlers name."""
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [lifecycle.get(key) for key in ("postStart", "preStop")]
    for handler in handlers:
        for way in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(way) or {}).get("host")
            if host:
                yield host


def handler_hosts(metadata: Object, spec: Object) -> Violation | None:
    names = sorted({name(container) for container in containers(spec) if any(_hosts(container))})
    if not names:
        return None
    hosts = sorted({host for container in containers(spec) for host in _hosts(container)})
    word = counted("probe or lifecycle host", hosts)
    return Violation("probe or lifecycle host", f"{named(names)} {uses(names)} {word} {quoted(hosts)}")


def privileged(metadata: Object, spec: Object) -> Violation | None:
    names = bad(spec, lambda context: bool(context.get("privileged")))
    return Violation("privileged", f"{named(names)} must not set securityContext.privileged=true") if names else None


def proc_mount(metadata: Object, spec: Object) -> Violation | None:
    names = bad(spec, lambda context: _proc_mount(context) != "Default")
    if not names:
        return None
    found = sorted({_proc_mount(security(container)) for container in containers(spec)} - {"Default"})
    return Violation("procMount", f"{named(names)} must not set securityContext.procMount to {quoted(found)}")


def _proc_mount(context: Object) -> str:
    kind = context.get("procMount")
    return "Default" if kind is None else str(kind)


def _se_linux(context: Object, allowed: frozenset[str]) -> tuple[str, bool, bool] | None:
    """What is bad about the options: their type ("" if it may be so), that a user is set, or a role."""
    options = context.get("seLinuxOptions") or {}
    kind = options.get("type") or ""
    found = ("" if kind in allowed else kind, bool(options.get("user")), bool(options.get("role")))
    return found if any(found) else None


def se_linux_options(*types: str) -> Check:
    """These types and no others; nobody sets a user or a role."""
    allowed = frozenset({"", *types})

    def check(metadata: Object, spec: Object) -> Violation | None:
        pod = _se_linux(security(spec), allowed)
        names = bad(spec, lambda context: _se_linux(context, allowed) is not None)
        if not (pod or names):
            return None
        every = [pod, *(_se_linux(security(container), allowed) for container in containers(spec))]
        found = [each for each in every if each]
        kinds = sorted({kind for kind, _, _ in found if kind})
        told = [f"{counted('type', kinds)} {quoted(kinds)}"] if kinds else []
        told += ["user may not be set"] if any(user for _, user, _ in found) else []
        told += ["role may not be set"] if any(role for _, _, role in found) else []
        detail = f"{setters(pod, names)} set forbidden securityContext.seLinuxOptions: {'; '.join(told)}"
        return Violation("seLinuxOptions", detail)

    return check


def seccomp_annotations(metadata: Object, spec: Object) -> Violation | None:
    """Before v1.19: the annotations that became fields."""
    annotations = metadata.get("annotations") or {}
    keys = {_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{name(container)}" for container in containers(spec))}
    found = sorted(
        f"{key}={quote(annotations[key])}"
        for key in keys & annotations.keys()
        if annotations[key] not in ("runtime/default", "docker/default")
        if not annotations[key].startswith("localhost/")
    )
    if not found:
        return None
    return Violation("seccompProfile", f"forbidden {counted('annotation', found)} {', '.join(found)}")


def seccomp_profile(metadata: Object, spec: Object) -> Violation | None:
    pod = has_bad_type(security(spec), "seccompProfile")
    names = bad(spec, lambda context: has_bad_type(context, "seccompProfile"))
    if not (pod or names):
        return None
    types = quoted(bad_types(spec, "seccompProfile"))
    return Violation(
        "seccompProfile", f"{setters(pod, names)} must not set securityContext.seccompProfile.type to {types}"
    )


def sysctls(*names: str) -> Check:
    """These sysctls and no others."""
    allowed = frozenset(names)

    def check(metadata: Object, spec: Object) -> Violation | None:
        given = map(name, security(spec).get("sysctls") or ())
        found = [each for each in given if each not in allowed]
        return Violation("forbidden sysctls", ", ".join(found)) if found else None

    return check


def _on_host(context: Object) -> bool:
    return bool((context.get("windowsOptions") or {}).get("hostProcess"))


def windows_host_process(metadata: Object, spec: Object) -> Violation | None:
    who = setters(_on_host(security(spec)), bad(spec, _on_host))
    return (
        Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None
    )
