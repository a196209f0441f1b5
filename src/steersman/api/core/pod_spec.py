"""The rules of pod specs and pod templates.

Source: kubernetes `pkg/apis/core/validation/validation.go` (ValidatePodSpec, ValidatePodTemplateSpec).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.api import checks
from steersman.api.core.affinity import affinity_errors, spread_errors, tolerations_errors
from steersman.api.core.claim_spec import claim_template_errors
from steersman.api.core.containers import (
    PodFacts,
    container_errors,
    containers_errors,
    init_containers_errors,
)
from steersman.api.core.pod_host import host_process_errors, host_users_errors, system_errors
from steersman.api.core.profile_annotations import annotation_errors, mismatches
from steersman.api.core.resources import requirement_errors
from steersman.api.core.security import pod_security_errors
from steersman.api.core.volumes import volumes_errors
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_annotations, validate_labels

Object = dict[str, Any]
RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_HOSTNAME = 64
_MAX_SEARCHES, _MAX_SEARCH_LIST = 32, 2048
_HOST_PORT = "must match `containerPort` when `hostNetwork` is true"


def template_errors(template: Object, place: str) -> list[FieldError]:
    """A pod template: labels and annotations, and its spec."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = validate_labels(meta.get("labels") or {}, f"{place}.labels")
    errors += validate_annotations(meta.get("annotations") or {}, f"{place}.annotations")
    errors += annotation_errors(meta.get("annotations") or {}, spec, f"{place}.annotations")
    errors += pod_spec_errors(spec, f"{place}.spec")
    errors += mismatches(meta.get("annotations") or {}, spec, f"{place}.spec")
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        errors.append(fe.forbidden(f"{place}.spec.ephemeralContainers", text))
    return errors


def pod_spec_errors(spec: Object, place: str, *, pod_name: str = "", is_pod: bool = False) -> list[FieldError]:
    """A pod's spec; `is_pod` tells a Pod from a template."""
    grace = spec.get("terminationGracePeriodSeconds")
    errors = [fe.required(f"{place}.terminationGracePeriodSeconds")] if grace is None else []
    volumes, found = volumes_errors(spec.get("volumes") or (), f"{place}.volumes", pod_name, claim_template_errors)
    claims = frozenset(claim.get("name") or "" for claim in spec.get("resourceClaims") or ())
    found += _claims_errors(spec.get("resourceClaims") or (), f"{place}.resourceClaims")
    pod = PodFacts(volumes, claims, spec.get("restartPolicy") or "", grace, spec.get("hostUsers") is not False)
    regular, initial = spec.get("containers") or (), spec.get("initContainers") or ()
    regular_names = {container.get("name") or "" for container in regular}
    errors += found
    errors += containers_errors(regular, f"{place}.containers", pod)
    errors += init_containers_errors(initial, f"{place}.initContainers", pod, regular_names)
    errors += _ephemeral_errors(spec, f"{place}.ephemeralContainers", pod)
    if spec.get("resources") is not None:
        if spec["resources"].get("claims") is not None:
            text = "claims may not be set for Resources at pod-level"
            errors.append(fe.forbidden(f"{place}.resources.claims", text))
        errors += requirement_errors(spec["resources"], f"{place}.resources", claims=claims)
    errors += _host_network_errors(spec, place, is_pod=is_pod)
    errors += checks.one_of(spec.get("restartPolicy"), RESTART_POLICIES, f"{place}.restartPolicy")
    errors += checks.one_of(spec.get("dnsPolicy"), DNS_POLICIES, f"{place}.dnsPolicy")
    errors += validate_labels(spec.get("nodeSelector") or {}, f"{place}.nodeSelector")
    errors += pod_security_errors(spec, f"{place}.securityContext")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(fe.invalid(f"{place}.shareProcessNamespace", True, text))
    errors += affinity_errors(spec.get("affinity") or {}, f"{place}.affinity")
    errors += _dns_errors(spec, f"{place}.dnsConfig")
    errors += _gates_errors(spec, place)
    errors += spread_errors(spec.get("topologySpreadConstraints") or (), f"{place}.topologySpreadConstraints")
    errors += host_process_errors(spec, place) + host_users_errors(spec, place)
    errors += _hostname_errors(spec, f"{place}.hostnameOverride")
    return errors + _names_errors(spec, place) + _last_errors(spec, place) + _file_errors(spec, place)


def _claims_errors(claims: Sequence[Object], place: str) -> list[FieldError]:
    errors, seen = [], set()
    for index, claim in enumerate(claims):
        here, name = f"{place}[{index}]", claim.get("name") or ""
        if not name:
            errors.append(fe.required(f"{here}.name"))
        elif name in seen:
            errors.append(fe.duplicate(f"{here}.name", name))
        else:
            errors += checks.dns_label(name, f"{here}.name")
        seen.add(name)
        given = {key: claim.get(key) for key in ("resourceClaimName", "resourceClaimTemplateName")}
        if len(set(map(type, given.values()))) == 1:  # both, or none
            both = claim.get("resourceClaimName") is not None
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            text = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified" if both else text
            )
            shown = {"Name": name} | {key[0].upper() + key[1:]: value for key, value in given.items()}
            errors.append(fe.invalid(here, fe.Struct(shown), text))
        for key, value in given.items():
            texts = [] if value is None else names.name_is_dns_subdomain(value, False)
            errors += [fe.invalid(f"{here}.{key}", value, text) for text in texts]
    return errors


def _hostname_errors(spec: Object, place: str) -> list[FieldError]:
    hostname = spec.get("hostnameOverride")
    if hostname is None:
        return []
    others = ("setHostnameAsFQDN", "hostNetwork")
    errors = [fe.forbidden(place, f"may not be specified when {key} is true") for key in others if spec.get(key)]
    if len(hostname.encode()) > _MAX_HOSTNAME:
        errors.append(fe.too_long(place, _MAX_HOSTNAME))
    return errors + checks.dns_subdomain(hostname, place)


def _host_network_errors(spec: Object, place: str, *, is_pod: bool) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    errors = []
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort") or 0
            if (is_pod or host) and host != (port.get("containerPort") or 0):
                field = f"{place}.containers[{index}].ports[{number}].hostPort"
                errors.append(fe.invalid(field, host, _HOST_PORT))
    return errors


def _ephemeral_errors(spec: Object, place: str, pod: PodFacts) -> list[FieldError]:
    errors: list[FieldError] = []
    others = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    seen = {container.get("name") or "" for container in others}
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        here, name = f"{place}[{index}]", container.get("name") or ""
        errors += container_errors(container, here, pod)
        if name in seen:
            errors.append(fe.duplicate(f"{here}.name", name))
        seen.add(name)
        target = container.get("targetContainerName")
        if target and all(other.get("name") != target for other in others):
            errors.append(fe.not_found(f"{here}.targetContainerName", target))
        for key in ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
            if container.get(key):
                text = "cannot be set for an Ephemeral Container"
                errors.append(fe.forbidden(f"{here}.{key}", text))
    return errors


def _file_errors(spec: Object, place: str) -> list[FieldError]:
    """Variables are read from files of the pod's own empty volumes only."""
    volumes = {volume.get("name") or "": volume for volume in spec.get("volumes") or ()}
    errors = []
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            for number, variable in enumerate(container.get("env") or ()):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is None:
                    continue
                field = f"{place}.{kind}[{index}].env[{number}].valueFrom.fileKeyRef.volumeName"
                name = reference.get("volumeName") or ""
                if name not in volumes:
                    errors.append(fe.not_found(field, name))
                elif volumes[name].get("emptyDir") is None:
                    errors.append(fe.invalid(field, name, "referenced volume must be of type emptyDir"))
    return errors


def _dns_errors(spec: Object, place: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [fe.required(place, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [fe.required(f"{place}.nameservers", text)]
    errors = []
    if len(servers) > 3:
        errors.append(fe.invalid(f"{place}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, server in enumerate(servers):
        errors += checks.ip(server, f"{place}.nameservers[{index}]")
    errors += _searches_errors((config or {}).get("searches") or [], f"{place}.searches")
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            errors.append(fe.required(f"{place}.options[{index}]", "must not be empty"))
    return errors


def _searches_errors(searches: list[str], place: str) -> list[FieldError]:
    errors = []
    if len(searches) > _MAX_SEARCHES:
        errors.append(fe.invalid(place, searches, f"must not have more than {_MAX_SEARCHES} search paths"))
    if len(" ".join(searches).encode()) > _MAX_SEARCH_LIST:
        text = f"must not have more than {_MAX_SEARCH_LIST} characters (including spaces) in the search list"
        errors.append(fe.invalid(place, searches, text))
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            texts = names.dns1123_subdomain_with_underscores(domain)
            errors += [fe.invalid(f"{place}[{index}]", domain, text) for text in texts]
    return errors


def _gates_errors(spec: Object, place: str) -> list[FieldError]:
    errors = []
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        errors += checks.qualified_name(
            gate.get("conditionType") or "", f"{place}.readinessGates[{index}].conditionType"
        )
    seen = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        field, name = f"{place}.schedulingGates[{index}]", gate.get("name") or ""
        errors += checks.qualified_name(name, field)
        if name in seen:
            errors.append(fe.duplicate(field, name))
        seen.add(name)
    return errors


def _names_errors(spec: Object, place: str) -> list[FieldError]:
    errors = []
    for key in ("serviceAccountName", "nodeName"):
        if name := spec.get(key):
            errors += checks.dns_subdomain(name, f"{place}.{key}")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        errors += checks.in_range(deadline, 1, checks.MAX_INT32, f"{place}.activeDeadlineSeconds")
    for key in ("hostname", "subdomain"):
        if name := spec.get(key):
            errors += checks.dns_label(name, f"{place}.{key}")
    return errors


def _last_errors(spec: Object, place: str) -> list[FieldError]:
    errors = tolerations_errors(spec.get("tolerations") or (), f"{place}.tolerations")
    errors += _aliases_errors(spec.get("hostAliases") or (), f"{place}.hostAliases")
    for key in ("priorityClassName", "runtimeClassName"):
        if spec.get(key) is not None and (key == "runtimeClassName" or spec[key]):
            texts = names.name_is_dns_subdomain(spec[key], False)
            errors += [fe.invalid(f"{place}.{key}", spec[key], text) for text in texts]
    preemption = spec.get("preemptionPolicy")
    if preemption is not None:
        errors += checks.one_of(preemption, ("PreemptLowerPriority", "Never"), f"{place}.preemptionPolicy")
    if spec.get("overhead") is not None:
        errors += requirement_errors({"limits": spec["overhead"]}, f"{place}.overhead")
    if spec.get("os") is not None:
        known, name = ("linux", "windows"), spec["os"].get("name")
        errors += checks.supported(name, known, f"{place}.os") if name else [fe.required(f"{place}.os.name")]
    return errors + system_errors(spec, place)


def _aliases_errors(aliases: Sequence[Object], place: str) -> list[FieldError]:
    errors = []
    for index, alias in enumerate(aliases):
        errors += checks.ip(alias.get("ip") or "", f"{place}[{index}].ip")
        for number, hostname in enumerate(alias.get("hostnames") or ()):
            errors += checks.dns_subdomain(hostname, f"{place}[{index}].hostnames[{number}]")
    return errors
