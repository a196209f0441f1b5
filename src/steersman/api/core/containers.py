"""Containers: images, ports, environment, mounts, probes, lifecycle.

Source: kubernetes `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

from steersman._util.dataclass import dataclass
from steersman.api import checks
from steersman.api.core.environment import env_errors, env_from_errors
from steersman.api.core.paths import descending_path, without_backsteps
from steersman.api.core.resources import requirement_errors
from steersman.api.core.security import container_security_errors
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_MAX_RULES = 20
_HEADER = "a valid HTTP header must consist of alphanumeric characters or '-'"
_NO_CLAIM = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
_SIDECAR_ONLY = "may not be set for init containers without restartPolicy=Always"


@dataclass(frozen=True)
class PodFacts:
    """What containers refer to in their pod: its volumes by name, resource claims, restart, grace and user settings."""

    volumes: Mapping[str, Object] = field(default_factory=dict)
    claims: frozenset[str] = frozenset()
    restart_policy: str = ""
    grace: int | None = None
    host_users: bool = True


def containers_errors(containers: Sequence[Object], place: str, pod: PodFacts) -> list[FieldError]:
    """The regular containers: at least one, with names of their own and host ports that do not clash."""
    if not containers:
        return [fe.required(place)]
    errors, seen = [], set()
    for index, container in enumerate(containers):
        here = f"{place}[{index}]"
        errors += container_errors(container, here, pod)
        name = container.get("name") or ""
        if name in seen:
            errors.append(fe.duplicate(f"{here}.name", name))
        seen.add(name)
        errors += running_errors(container, here, pod)
        errors += _restart_policy_errors(container, here)
    return errors + _host_port_conflicts(containers, place)


def init_containers_errors(
    containers: Sequence[Object], place: str, pod: PodFacts, regular: Collection[str]
) -> list[FieldError]:
    """Init containers run one by one; those with restartPolicy Always are sidecars and may have probes."""
    errors, seen = [], set(regular)
    for index, container in enumerate(containers):
        here = f"{place}[{index}]"
        errors += container_errors(container, here, pod)
        errors += _init_restart_errors(container, here)
        name = container.get("name") or ""
        if name in seen:
            errors.append(fe.duplicate(f"{here}.name", name))
        if name:
            seen.add(name)
        errors += _host_port_conflicts([container], place)
        if container.get("restartPolicy") == "Always":
            errors += running_errors(container, here, pod)
        else:
            for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(key) is not None:
                    errors.append(fe.forbidden(f"{here}.{key}", _SIDECAR_ONLY))
    return errors


def container_errors(container: Object, place: str, pod: PodFacts) -> list[FieldError]:
    """What holds for containers of every sort."""
    errors = []
    name = container.get("name") or ""
    errors += checks.dns_label(name, f"{place}.name") if name else [fe.required(f"{place}.name")]
    if not container.get("image"):
        errors.append(fe.required(f"{place}.image"))
    policy = container.get("terminationMessagePolicy")
    errors += checks.one_of(policy, _MESSAGE_POLICIES, f"{place}.terminationMessagePolicy")
    errors += ports_errors(container.get("ports") or (), f"{place}.ports")
    errors += env_errors(container.get("env") or (), f"{place}.env")
    errors += env_from_errors(container.get("envFrom") or (), f"{place}.envFrom")
    errors += _mounts_errors(container, pod.volumes, place)
    errors += _devices_errors(container, pod.volumes, f"{place}.volumeDevices")
    errors += checks.one_of(container.get("imagePullPolicy"), PULL_POLICIES, f"{place}.imagePullPolicy")
    errors += requirement_errors(container.get("resources") or {}, f"{place}.resources", claims=pod.claims)
    errors += _resize_errors(container.get("resizePolicy") or (), f"{place}.resizePolicy", pod)
    context = container.get("securityContext")
    return errors + container_security_errors(context, f"{place}.securityContext", host_users=pod.host_users)


def ports_errors(ports: Sequence[Object], place: str) -> list[FieldError]:
    errors, seen = [], set()
    for index, port in enumerate(ports):
        here = f"{place}[{index}]"
        if name := port.get("name"):
            found = checks.port_name(name, f"{here}.name")
            errors += found or ([fe.duplicate(f"{here}.name", name)] if name in seen else [])
            seen.add(name)
        number = port.get("containerPort") or 0
        if number:
            errors += checks.port_number(number, f"{here}.containerPort")
        else:
            errors.append(fe.required(f"{here}.containerPort"))
        if port.get("hostPort"):
            errors += checks.port_number(port["hostPort"], f"{here}.hostPort")
        errors += checks.one_of(port.get("protocol"), PROTOCOLS, f"{here}.protocol")
    return errors


def _host_port_conflicts(containers: Sequence[Object], place: str) -> list[FieldError]:
    errors, seen = [], set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            text = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if text in seen:
                errors.append(fe.duplicate(f"{place}[{index}].ports[{number}].hostPort", text))
            seen.add(text)
    return errors


def _mounts_errors(container: Object, volumes: Mapping[str, Object], place: str) -> list[FieldError]:
    errors, seen = [], set()
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here = f"{place}.volumeMounts[{index}]"
        name, path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(fe.required(f"{here}.name"))
        if name not in volumes:
            errors.append(fe.not_found(f"{here}.name", name))
        if not path:
            errors.append(fe.required(f"{here}.mountPath"))
        if path in seen:
            errors.append(fe.invalid(f"{here}.mountPath", path, "must be unique"))
        seen.add(path)
        if name in devices:
            errors.append(fe.invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if path in devices.values():
            text = "must not already exist as a path in volumeDevices"
            errors.append(fe.invalid(f"{here}.mountPath", path, text))
        errors += _sub_path_errors(mount, here, f"{place}.volumeMounts")
        errors += _propagation_errors(mount, container, f"{place}.volumeMounts")
    return errors


def _devices_errors(container: Object, volumes: Mapping[str, Object], place: str) -> list[FieldError]:
    """Block devices, which claims are mounted as."""
    errors, names_seen, paths_seen = [], set(), set()
    mounts = {mount.get("name") or "": mount.get("mountPath") or "" for mount in container.get("volumeMounts") or ()}
    for index, device in enumerate(container.get("volumeDevices") or ()):
        here, name, path = f"{place}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        if not name:
            errors.append(fe.required(f"{here}.name"))
        if name in names_seen:
            errors.append(fe.invalid(f"{here}.name", name, "must be unique"))
        if name not in volumes:
            errors.append(fe.not_found(f"{here}.name", name))
        elif all(volumes[name].get(key) is None for key in ("persistentVolumeClaim", "ephemeral")):
            errors.append(fe.invalid(f"{here}.name", name, _NO_CLAIM))
        if not path:
            errors.append(fe.required(f"{here}.devicePath"))
        if path in paths_seen:
            errors.append(fe.invalid(f"{here}.devicePath", path, "must be unique"))
        if without_backsteps(path, here):
            errors.append(fe.invalid(f"{here}.devicePath", path, "can not contain backsteps ('..')"))
        else:
            paths_seen.add(path)
        if name in mounts:
            errors.append(fe.invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if path in mounts.values():
            text = "must not already exist as a path in volumeMounts"
            errors.append(fe.invalid(f"{here}.devicePath", path, text))
        if name:
            names_seen.add(name)
    return errors


def _propagation_errors(mount: Object, container: Object, place: str) -> list[FieldError]:
    errors = []
    propagation, read_only = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None:
        allowed = ("Bidirectional", "HostToContainer", "None")
        errors += checks.supported(propagation, allowed, f"{place}.mountPropagation")
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(fe.forbidden(f"{place}.mountPropagation", text))
    if read_only is None or read_only == "Disabled":
        return errors
    field = f"{place}.recursiveReadOnly"
    if read_only not in ("Enabled", "IfPossible"):
        return [*errors, fe.not_supported(field, read_only, ("Disabled", "Enabled", "IfPossible"))]
    if not mount.get("readOnly"):
        errors.append(fe.forbidden(field, "may only be specified when readOnly is true"))
    if propagation not in (None, "None"):
        errors.append(fe.forbidden(field, "may only be specified when mountPropagation is None or not specified"))
    return errors


def _sub_path_errors(mount: Object, here: str, place: str) -> list[FieldError]:
    errors = []
    path, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    if path:
        errors += descending_path(path, f"{place}.subPath")
    if expression:
        if path:
            text = "subPathExpr and subPath are mutually exclusive"
            errors.append(fe.invalid(f"{here}.subPathExpr", expression, text))
        errors += descending_path(expression, f"{place}.subPathExpr")
    return errors


def _resize_errors(policies: Sequence[Object], place: str, pod: PodFacts) -> list[FieldError]:
    errors, seen = [], set()
    for index, policy in enumerate(policies):
        name = policy.get("resourceName") or ""
        if name in seen:
            errors.append(fe.duplicate(f"{place}[{index}]", name))
        seen.add(name)
        errors += checks.one_of(name, ("cpu", "memory"), place)
        errors += checks.one_of(policy.get("restartPolicy"), ("NotRequired", "RestartContainer"), place)
        if pod.restart_policy == "Never" and policy.get("restartPolicy") != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(fe.invalid(place, policy.get("restartPolicy") or "", text))
    return errors


def _init_restart_errors(container: Object, place: str) -> list[FieldError]:
    """Without a policy, rules of an init container are not looked at."""
    errors = _restart_policy_errors(container, place)
    return errors if container.get("restartPolicy") is not None else errors[:1]


def _restart_policy_errors(container: Object, place: str) -> list[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    errors: list[FieldError] = []
    if policy is None and rules:
        errors.append(fe.required(f"{place}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    elif policy is not None:
        errors += checks.supported(policy, ("Always", "Never", "OnFailure"), f"{place}.restartPolicy")
    if len(rules) > _MAX_RULES:
        errors.append(fe.too_many(f"{place}.restartPolicyRules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _restart_rule_errors(rule, f"{place}.restartPolicyRules[{index}]")
    return errors


def _restart_rule_errors(rule: Object, place: str) -> list[FieldError]:
    errors = checks.supported(rule.get("action"), ("Restart", "RestartAllContainers"), f"{place}.action")
    codes = rule.get("exitCodes")
    if codes is None:
        return [*errors, fe.required(f"{place}.exitCodes", "must be specified")]
    errors += checks.supported(codes.get("operator"), ("In", "NotIn"), f"{place}.exitCodes.operator")
    count = len(codes.get("values") or ())
    return errors + ([fe.too_many(f"{place}.exitCodes.values", count, 255)] if count > 255 else [])


def running_errors(container: Object, place: str, pod: PodFacts) -> list[FieldError]:
    """Lifecycle and probes, which only containers have that keep running."""
    errors = []
    lifecycle = container.get("lifecycle") or {}
    for key in ("postStart", "preStop"):
        if lifecycle.get(key) is not None:
            errors += _handler_errors(lifecycle[key], f"{place}.lifecycle.{key}", pod)
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(key) is not None:
            errors += _probe_errors(key, container[key], f"{place}.{key}", pod)
    return errors


def _probe_errors(kind: str, probe: Object, place: str, pod: PodFacts) -> list[FieldError]:
    errors = _handler_errors(probe, place, pod)
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    for key in numbers:
        errors += checks.nonnegative(probe.get(key) or 0, f"{place}.{key}")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(fe.invalid(f"{place}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if kind == "readinessProbe":
        if grace is not None:
            text = "must not be set for readinessProbes"
            errors.append(fe.invalid(f"{place}.terminationGracePeriodSeconds", grace, text))
    elif probe.get("successThreshold") != 1:
        errors.append(fe.invalid(f"{place}.successThreshold", probe.get("successThreshold") or 0, "must be 1"))
    return errors


def _handler_errors(handler: Object, place: str, pod: PodFacts) -> list[FieldError]:
    given = [key for key in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if handler.get(key) is not None]
    if not given:
        return [fe.required(place, "must specify a handler type")]
    errors = _HANDLERS[given[0]](handler[given[0]], f"{place}.{given[0]}", pod)
    return errors + [fe.forbidden(f"{place}.{key}", "may not specify more than 1 handler type") for key in given[1:]]


def _exec_errors(action: Object, place: str, pod: PodFacts) -> list[FieldError]:
    return [] if action.get("command") else [fe.required(f"{place}.command")]


def _http_errors(action: Object, place: str, pod: PodFacts) -> list[FieldError]:
    errors = [] if action.get("path") else [fe.required(f"{place}.path")]
    errors += checks.port(action.get("port"), f"{place}.port")
    errors += checks.supported(action.get("scheme"), ("HTTP", "HTTPS"), f"{place}.scheme")
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        if not name or not all(char.isascii() and (char.isalnum() or char == "-") for char in name):
            text = names.regex_message(_HEADER, "[-A-Za-z0-9]+", "X-Header-Name")
            errors.append(fe.invalid(f"{place}.httpHeaders", name, text))
    return errors


def _socket_errors(action: Object, place: str, pod: PodFacts) -> list[FieldError]:
    return checks.port(action.get("port"), f"{place}.port")


def _sleep_errors(action: Object, place: str, pod: PodFacts) -> list[FieldError]:
    seconds = action.get("seconds") or 0
    if pod.grace is not None and not 0 <= seconds <= pod.grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({pod.grace})"
        return [fe.invalid(place, seconds, text)]
    return []


_HANDLERS: Mapping[str, Callable[[Object, str, PodFacts], list[FieldError]]] = {
    "exec": _exec_errors,
    "httpGet": _http_errors,
    "tcpSocket": _socket_errors,
    "grpc": _socket_errors,
    "sleep": _sleep_errors,
}
