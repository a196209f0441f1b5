"""Warnings about pods and pod templates: what is accepted, and does not do what it seems to say.

Source: kubernetes `pkg/api/pod/warnings.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steersman._util.gotext import quote
from steersman.api.address_warnings import ip_warnings
from steersman.api.core.path_warnings import overlap_warnings
from steersman.api.core.profiles import APP_ARMOR, DEPRECATED, SECCOMP, SECCOMP_POD, app_armor_of
from steersman.api.node_labels import deprecation, term_warnings
from steersman.apimachinery import names, quantity

Object = Mapping[str, Any]
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_VOLUME_NAMES = {"storageos": "storageOS"}  # where a warning spells the field in another way
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_WHOLE_BYTES = ("memory", "ephemeral-storage")
POD_NAMES = "Pod names and hostnames"
_HOSTNAMES = "which can result in surprising behavior; a DNS label is recommended"


def name_warnings(name: str, used: str) -> list[str]:
    """Of the name of an object that names pods; `used` tells where it goes."""
    found = names.dns1123_label(name)
    return [f"metadata.name: this is used in {used}, {_HOSTNAMES}: [{' '.join(found)}]"] if found else []


def generation_changed(new: Object, old: Object) -> bool:
    """Whether an update changed what is judged: else nothing is said of it again."""
    return bool(new["metadata"].get("generation") != old["metadata"].get("generation"))


def template_warnings(template: Object | None, place: str) -> list[str]:
    """Of a pod template at `place`."""
    return [] if template is None else _warnings(template, f"{place}.", is_template=True)


def pod_warnings(pod: Object) -> list[str]:
    """Of a Pod that is new."""
    return _warnings(pod, "", is_template=False)


def claim_warnings(spec: Object, place: str) -> list[str]:
    """Of the spec of a volume claim."""
    resources = spec.get("resources") or {}
    return [
        warning
        for key in ("requests", "limits")
        for warning in _fractions(resources.get(key), f"{place}.resources.{key}", ("storage",))
    ]


def volume_warning(place: str, key: str) -> str:
    """Of a kind of volume that is no longer supported."""
    return f"{place}.{_VOLUME_NAMES.get(key, key)}: {_VOLUMES[key]}"


def _warnings(pod: Object, place: str, *, is_template: bool) -> list[str]:
    spec, annotations = pod.get("spec") or {}, (pod.get("metadata") or {}).get("annotations") or {}
    here, there = f"{place}spec", f"{place}metadata.annotations"
    found = _placement(spec, here)
    found += [f"{there}[{key}]: {text}" for key, text in _ANNOTATIONS.items() if key in annotations]
    found += _volumes(spec.get("volumes") or (), f"{here}.volumes")
    found += _repeated(spec.get("hostAliases") or (), "ip", f"{here}.hostAliases")
    found += _pull_secrets(spec.get("imagePullSecrets") or (), f"{here}.imagePullSecrets")
    found += _fractions(spec.get("overhead"), f"{here}.overhead", _WHOLE_BYTES)
    context = spec.get("securityContext") or {}
    if context.get("seccompProfile") is None and SECCOMP_POD in annotations:
        found.append(f"{there}[{SECCOMP_POD}]: {_SECCOMP}")
    for container, path in _containers(spec, here):
        found += _profile_annotations(container, annotations, there, context if is_template else None)
        resources = container.get("resources") or {}
        for name in _WHOLE_BYTES:
            for key in ("limits", "requests"):
                found += _fractions(resources.get(key), f"{path}.resources.{key}", (name,))
        found += _hidden_variables(container.get("env") or (), f"{path}.env")
    found += _ports(spec, here) + _port_names(spec, here)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{here}.terminationGracePeriodSeconds: {text}")
    return found + _pod_affinity(spec.get("affinity") or {}, f"{here}.affinity") + _addresses(spec, here)


def _containers(spec: Object, place: str) -> Iterator[tuple[Object, str]]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            yield container, f"{place}.{key}[{index}]"


def _placement(spec: Object, place: str) -> list[str]:
    """Of labels of nodes that have another name now, and constraints that match nothing."""
    labels = ((label, deprecation(label)) for label in sorted(spec.get("nodeSelector") or ()))
    found = [f"{place}.nodeSelector[{label}]: {text}" for label, text in labels if text]
    affinity, field = (spec.get("affinity") or {}).get("nodeAffinity") or {}, f"{place}.affinity.nodeAffinity"
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate((affinity.get(key) or {}).get("nodeSelectorTerms") or ()):
        found += term_warnings(term, f"{field}.{key}.nodeSelectorTerms[{index}]", check_values=False)
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, weighted in enumerate(affinity.get(key) or ()):
        found += term_warnings(
            weighted.get("preference") or {}, f"{field}.{key}[{index}].preference", check_values=True
        )
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        field, topology = f"{place}.topologySpreadConstraints[{index}]", constraint.get("topologyKey") or ""
        if text := deprecation(topology):
            found.append(f"{field}.topologyKey: {topology} is {text}")
        if constraint.get("labelSelector") is None:
            found.append(f"{field}.labelSelector: {_NULL_SELECTOR}")
    return found


def _volumes(volumes: Sequence[Object], place: str) -> list[str]:
    found = []
    for index, volume in enumerate(volumes):
        for key in _VOLUMES:
            if volume.get(key) is None:
                continue
            field = f"{place}[{index}]"
            if key != "ephemeral":
                found.append(volume_warning(field, key))
            elif (template := volume[key].get("volumeClaimTemplate")) is not None:
                found += claim_warnings(template.get("spec") or {}, f"{field}.ephemeral.volumeClaimTemplate.spec")
    return found + overlap_warnings(volumes)


def _repeated(items: Sequence[Object], key: str, place: str) -> list[str]:
    found, seen = [], set()
    for index, item in enumerate(items):
        value = item.get(key) or ""
        if value in seen:
            found.append(f"{place}[{index}].{key}: duplicate {key} {quote(value)}")
        seen.add(value)
    return found


def _pull_secrets(secrets: Sequence[Object], place: str) -> list[str]:
    return _repeated(secrets, "name", place) + [
        f'{place}[{index}].name: invalid empty name ""'
        for index, secret in enumerate(secrets)
        if not secret.get("name")
    ]


def _fractions(amounts: Object | None, place: str, resources: Sequence[str]) -> list[str]:
    """Of amounts that are counted in bytes, and are no whole number of them."""
    found = []
    for name in resources:
        if (amounts or {}).get(name) is not None:
            parsed = quantity.parse(str((amounts or {})[name]))
            if parsed.rounded_up(-3) % 1000:
                text = f"fractional byte value {quote(str(parsed))} is invalid, must be an integer"
                found.append(f"{place}[{name}]: {text}")
    return found


def _profile_annotations(container: Object, annotations: Object, place: str, pod: Object | None) -> list[str]:
    """Of profiles in annotations that a field names now; `pod` is the security context of a template's pods."""
    context, name = container.get("securityContext") or {}, container.get("name") or ""
    found = []
    key = f"{SECCOMP}{name}"
    if context.get("seccompProfile") is None and key in annotations:
        found.append(f"{place}[{key}]: {_SECCOMP}")
    key = f"{APP_ARMOR}{name}"
    if pod is not None and context.get("appArmorProfile") is None and key in annotations:
        profile = pod.get("appArmorProfile")
        if profile is None or profile != app_armor_of(annotations[key]):
            found.append(f"{place}[{key}]: {DEPRECATED}")
    return found


def _hidden_variables(variables: Sequence[Object], place: str) -> list[str]:
    """Of variables that come twice, unless the second uses the first."""
    found, seen = [], set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        if name not in seen:
            seen.add(name)
        elif variable.get("valueFrom") is not None or value == reference or reference not in value:
            text = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            found.append(f"{place}[{index}]: {text}")
    return found


def _all_ports(spec: Object, place: str) -> Iterator[tuple[Object, str]]:
    for container, path in _containers(spec, place):
        for index, port in enumerate(container.get("ports") or ()):
            yield port, f"{path}.ports[{index}]"


def _ports(spec: Object, place: str) -> list[str]:
    """Of ports of all containers that are the same, or may be."""
    found: list[str] = []
    known: dict[tuple[int, str], list[tuple[str, str, int]]] = {}
    for port, field in _all_ports(spec, place):
        ip, host = port.get("hostIP") or "", port.get("hostPort") or 0
        if ip and not host:
            found.append(f"{field}: hostIP set without hostPort: {_shown(port)}")
        others = known.setdefault((port.get("containerPort") or 0, port.get("protocol") or ""), [])
        for other, other_ip, other_host in others:
            if kind := _clash(ip, host, other_ip, other_host):
                found.append(f"{field}: {kind} port definition with {other}")
        others.append((field, ip, host))
    return found


def _clash(ip: str, host: int, other_ip: str, other_host: int) -> str:
    if ip == other_ip and host == other_host:
        return "duplicate"
    if not host or not other_host:
        return "overlapping"
    return "dangerously ambiguous" if host == other_host and bool(ip) != bool(other_ip) else ""


def _shown(port: Object) -> str:
    """A container's port as Go prints it."""
    fields = {"Name": "name", "HostPort": "hostPort", "ContainerPort": "containerPort"}
    fields |= {"Protocol": "protocol", "HostIP": "hostIP"}
    shown = (f"{name}:{port.get(key) or (0 if 'Port' in name else '')}" for name, key in fields.items())
    return f"{{{' '.join(shown)}}}"


def _port_names(spec: Object, place: str) -> list[str]:
    found = []
    known: dict[str, str] = {}
    for port, field in _all_ports(spec, place):
        if not (name := port.get("name")):
            continue
        if (other := known.setdefault(name, field)) != field:
            text = f"services and probes that select ports by name will use {other}"
            found.append(f"{field}: duplicate port name {quote(name)} with {other}, {text}")
    return found


def _pod_affinity(affinity: Object, place: str) -> list[str]:
    found = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        field = f"{place}.{kind}.requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
            if term.get("labelSelector") is None:
                found.append(f"{field}[{index}].labelSelector: {_NULL_SELECTOR}")
        field = f"{place}.{kind}.preferredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                found.append(f"{field}[{index}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}")
    return found


def _addresses(spec: Object, place: str) -> list[str]:
    found: list[str] = []
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        found += ip_warnings(f"{place}.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += ip_warnings(f"{place}.hostAliases[{index}].ip", alias.get("ip") or "")
    return found
