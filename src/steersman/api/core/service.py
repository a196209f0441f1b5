"""Services: how their linked fields are brought together, and their rules.

Addresses and ports are given out by the server; see `ServiceAllocator` there.
Source: kubernetes `pkg/registry/core/service/{strategy.go,storage/storage.go}`,
`pkg/apis/core/validation/validation.go`, `pkg/api/service/warnings.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.address_warnings import cidr_warnings, ip_warnings
from steersman.api.apps.pod_sets import labels_text
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.core.containers import PROTOCOLS
from steersman.api.core.service_rules import (
    address_errors,
    endpoint_ip_errors,
    ingress_status_errors,
    is_headless,
    upgrade_errors,
)
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_labels

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_USE_TOPOLOGY_MODE = (
    f"annotation {_TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
)
_LB_ONLY = "may only be used when `type` is 'LoadBalancer'"


class ServiceStrategy(BuiltinStrategy):
    def prepare_for_update(self, new: Object, old: Object) -> None:
        super().prepare_for_update(new, old)
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        new["spec"] = _without_type_dependent(spec, before)
        if spec.get("type") != "LoadBalancer":
            new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}

    def validate_create(self, obj: Object) -> list[FieldError]:
        return [*self.validate_meta(obj), *_service_errors(obj, None)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = [*self.validate_meta_update(new, old), *upgrade_errors(spec, before)]
        if spec.get("type") == "LoadBalancer" == before.get("type"):
            old_class, new_class = before.get("loadBalancerClass"), spec.get("loadBalancerClass")
            if old_class != new_class:
                errors.append(fe.invalid("spec.loadBalancerClass", new_class, "may not change once set"))
        if needs_health_check(spec) and needs_health_check(before):
            port = spec.get("healthCheckNodePort") or 0
            if port != (before.get("healthCheckNodePort") or 0):
                errors.append(fe.forbidden("spec.healthCheckNodePort", "field is immutable"))
        return errors + _service_errors(new, old)

    def canonicalize(self, obj: Object) -> None:
        spec = obj.get("spec") or {}
        if spec.get("type") == "ExternalName" and spec.get("internalTrafficPolicy") is not None:
            obj["spec"] = {key: value for key, value in spec.items() if key != "internalTrafficPolicy"}

    def subresource(self, name: str) -> Strategy:
        return ServiceStatusStrategy(self) if name == "status" else super().subresource(name)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        deprecated = _TOPOLOGY_HINTS in (obj["metadata"].get("annotations") or {})
        return ([_USE_TOPOLOGY_MODE] if deprecated else []) + _warnings(obj.get("spec") or {})

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        return [
            meta.get("name") or "",
            spec.get("type") or "",
            (spec.get("clusterIPs") or ["<none>"])[0],
            _external(spec, obj.get("status") or {}),
            ",".join(map(_port_text, spec.get("ports") or ())) or "<none>",
            age(meta.get("creationTimestamp"), now),
            labels_text(spec.get("selector")),
        ]


class ServiceStatusStrategy(StatusStrategy):
    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        ingress, known = (
            ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [] for item in (new, old)
        )
        place = "status.loadBalancer.ingress"
        if ingress and (new.get("spec") or {}).get("type") != "LoadBalancer":
            return [*errors, fe.forbidden(place, "may only be used when `spec.type` is 'LoadBalancer'")]
        errors += ingress_status_errors(ingress, known, place)
        for index, item in enumerate(ingress):
            mode, field = item.get("ipMode"), f"{place}[{index}].ipMode"
            if mode is not None and not item.get("ip"):
                errors.append(fe.forbidden(field, "may not be specified when `ip` is not set"))
            elif mode not in (None, "Proxy", "VIP"):
                errors.append(fe.not_supported(field, mode, ("Proxy", "VIP")))
        return errors


def externally_accessible(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def carry_over(spec: Object, old: Object | None) -> Object:
    """The spec with clusterIP and clusterIPs in step, and with what was allocated before and is not named now."""
    out = dict(spec)
    if old is None:
        if out.get("clusterIP") and not out.get("clusterIPs"):
            out["clusterIPs"] = [out["clusterIP"]]
        return out
    if "ExternalName" not in (spec.get("type"), old.get("type")):
        for key in ("clusterIP", "clusterIPs"):
            if not out.get(key) and old.get(key):
                out[key] = old[key]
    if _needs_node_port(spec) and _needs_node_port(old):
        out["ports"] = _with_old_node_ports(spec.get("ports") or [], old.get("ports") or [])
    if needs_health_check(spec) and needs_health_check(old) and not out.get("healthCheckNodePort"):
        out["healthCheckNodePort"] = old.get("healthCheckNodePort") or 0
    return _in_step(out, old)


def _in_step(out: Object, old: Object) -> Object:
    """A changed clusterIP changes the first of clusterIPs, unless the client sent both."""
    single, before = out.get("clusterIP") or "", old.get("clusterIP") or ""
    several, known = out.get("clusterIPs") or [], old.get("clusterIPs") or []
    if known and not several and single == before:
        out["clusterIPs"] = known
    elif single != before:
        if before and not single and several == known:
            out["clusterIPs"] = []
        elif single and several == known:
            out["clusterIPs"] = [single, *known[1:]]
    return out


def _needs_node_port(spec: Object) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _with_old_node_ports(ports: list[Object], old: list[Object]) -> list[Object]:
    kept = {port["nodePort"] for port in ports if port.get("nodePort")} & {port.get("nodePort") for port in old}
    named = {port.get("name"): port.get("nodePort") for port in old}
    out = []
    for port in ports:
        known = named.get(port.get("name"))
        out.append({**port, "nodePort": known} if not port.get("nodePort") and known and known not in kept else port)
    return out


def _without_type_dependent(spec: Object, old: Object) -> Object:
    """What only made sense for the type that the Service had, and was left as it was, goes."""
    out = dict(spec)
    if old.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        if spec.get("clusterIP") == old.get("clusterIP") and spec.get("clusterIPs") == old.get("clusterIPs"):
            out.update(clusterIP="", clusterIPs=None)
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(key) == old.get(key):
                out[key] = None
    if _needs_node_port(old) and not _needs_node_port(spec):
        known = {port.get("nodePort") for port in old.get("ports") or ()}
        ports = spec.get("ports") or []
        if all(not port.get("nodePort") or port["nodePort"] in known for port in ports):
            out["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in ports]
    for key, needs in (
        ("healthCheckNodePort", needs_health_check),
        ("allocateLoadBalancerNodePorts", _is_load_balancer),
        ("loadBalancerClass", _is_load_balancer),
        ("externalTrafficPolicy", externally_accessible),
    ):
        if needs(old) and not needs(spec) and spec.get(key) == old.get(key):
            out.pop(key, None)
    return out


def _is_load_balancer(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer"


def _service_errors(obj: Object, old: Object | None) -> list[FieldError]:
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    kind, headless = spec.get("type") or "", is_headless(spec)
    ports = spec.get("ports") or []
    errors = [] if ports or headless or kind == "ExternalName" else [fe.required("spec.ports")]
    errors += _type_errors(spec, kind, headless)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        errors += _port_errors(port, f"spec.ports[{index}]", seen, named=len(ports) > 1)
    errors += validate_labels(spec.get("selector") or {}, "spec.selector")
    errors += _affinity_errors(spec)
    errors += address_errors(spec, before)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        field = f"spec.externalIPs[{index}]"
        wrong = checks.ip(address, field, before.get("externalIPs") or ())
        errors += wrong or endpoint_ip_errors(address, field)
    errors += checks.one_of(kind, TYPES, "spec.type")
    errors += _port_clashes(ports, kind)
    errors += _load_balancer_errors(spec, before)
    return errors + _traffic_errors(spec)


def _type_errors(spec: Object, kind: str, headless: bool) -> list[FieldError]:
    if kind in ("LoadBalancer", "NodePort") and headless:
        text = f"may not be set to 'None' for {kind} services"
        return [fe.invalid("spec.clusterIPs[0]", (spec.get("clusterIPs") or ["None"])[0], text)]
    if kind != "ExternalName":
        return []
    errors = [
        fe.forbidden(f"spec.{key}", "may not be set for ExternalName services")
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(key)
    ]
    name = (spec.get("externalName") or "").removesuffix(".")
    return errors + (checks.dns_subdomain(name, "spec.externalName") if name else [fe.required("spec.externalName")])


def _port_errors(port: Object, place: str, seen: set[str], *, named: bool) -> list[FieldError]:
    errors, name = [], port.get("name") or ""
    if name:
        errors += checks.dns_label(name, f"{place}.name")
        if name in seen:
            errors.append(fe.duplicate(f"{place}.name", name))
        seen.add(name)
    elif named:
        errors.append(fe.required(f"{place}.name"))
    errors += checks.port_number(port.get("port") or 0, f"{place}.port")
    errors += checks.one_of(port.get("protocol"), PROTOCOLS, f"{place}.protocol")
    errors += checks.port(port.get("targetPort"), f"{place}.targetPort")
    if port.get("appProtocol") is not None:
        errors += checks.qualified_name(port["appProtocol"], f"{place}.appProtocol")
    return errors


def _affinity_errors(spec: Object) -> list[FieldError]:
    affinity, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    errors = checks.one_of(affinity, ("ClientIP", "None"), "spec.sessionAffinity")
    field = "spec.sessionAffinityConfig"
    if affinity == "None" and config is not None:
        errors.append(fe.forbidden(field, "must not be set when session affinity is None"))
    if affinity == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds") or 0
        if not 0 < seconds <= 86400:
            text = "must be greater than 0 and less than 86400"
            errors.append(fe.invalid(f"{field}.clientIP.timeoutSeconds", seconds, text))
    return errors


def _port_clashes(ports: list[Object], kind: str) -> list[FieldError]:
    errors = []
    if kind == "ClusterIP":
        text = "may not be used when `type` is 'ClusterIP'"
        errors += [
            fe.forbidden(f"spec.ports[{index}].nodePort", text)
            for index, port in enumerate(ports)
            if port.get("nodePort")
        ]
    node_ports, numbers = set(), set()
    for index, port in enumerate(ports):
        if port.get("nodePort"):
            key = (port.get("protocol"), port["nodePort"])
            if key in node_ports:
                errors.append(fe.duplicate(f"spec.ports[{index}].nodePort", port["nodePort"]))
            node_ports.add(key)
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in numbers:
            errors.append(fe.duplicate(f"spec.ports[{index}]", _internal_port(port)))
        numbers.add(key)
    return errors


def _internal_port(port: Object) -> fe.Struct:
    """A protocol and port as errors show them: a ServicePort under its Go names."""
    return fe.Struct(
        {
            "Name": "",
            "Protocol": port.get("protocol") or "",
            "AppProtocol": None,
            "Port": port.get("port") or 0,
            "TargetPort": 0,
            "NodePort": 0,
        }
    )


def _load_balancer_errors(spec: Object, before: Object) -> list[FieldError]:
    balanced = spec.get("type") == "LoadBalancer"
    errors = []
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and not balanced:
        errors.append(fe.forbidden("spec.LoadBalancerSourceRanges", _LB_ONLY))
    known = [text.strip() for text in before.get("loadBalancerSourceRanges") or ()]
    for index, text in enumerate(ranges):
        errors += checks.cidr(text.strip(), f"spec.LoadBalancerSourceRanges[{index}]", known)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        errors.append(fe.forbidden("spec.allocateLoadBalancerNodePorts", _LB_ONLY))
    name = spec.get("loadBalancerClass")
    if name is not None:
        field = "spec.loadBalancerClass"
        errors += checks.qualified_name(name, field) if balanced else [fe.forbidden(field, _LB_ONLY)]
    return errors


def _traffic_errors(spec: Object) -> list[FieldError]:
    errors, policy = [], spec.get("externalTrafficPolicy") or ""
    field = "spec.externalTrafficPolicy"
    if externally_accessible(spec):
        errors += checks.one_of(policy, _POLICIES, field)
    elif policy:
        errors.append(fe.invalid(field, policy, "may only be set for externally-accessible services"))
    port, field = spec.get("healthCheckNodePort") or 0, "spec.healthCheckNodePort"
    if needs_health_check(spec):
        errors += checks.port_number(port, field) if port else [fe.required(field)]
    elif port:
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(fe.invalid(field, port, text))
    internal = spec.get("internalTrafficPolicy")
    if internal is not None:
        errors += checks.supported(internal, _POLICIES, "spec.internalTrafficPolicy")
    elif spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer"):
        errors.append(fe.required("spec.internalTrafficPolicy"))
    distribution = spec.get("trafficDistribution")
    if distribution is not None:
        errors += checks.supported(distribution, _DISTRIBUTIONS, "spec.trafficDistribution")
    return errors


def _warnings(spec: Object) -> list[str]:
    found: list[str] = []
    external = spec.get("externalIPs") or []
    if (spec.get("clusterIP") or "None") != "None":
        for index, address in enumerate(spec.get("clusterIPs") or ()):
            found += ip_warnings(f"spec.clusterIPs[{index}]", address)
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    if headless:
        if spec.get("loadBalancerIP"):
            found.append("spec.loadBalancerIP is ignored for headless services")
        if external:
            found.append("spec.externalIPs is ignored for headless services")
        if spec.get("sessionAffinity") != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
    for index, address in enumerate(external):
        found += ip_warnings(f"spec.externalIPs[{index}]", address)
    named = spec.get("type") == "ExternalName"
    if external and not headless and not named:
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        found += ip_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, network in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        found += cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", network)
    if external and named:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.get("externalName") and not named:
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _external(spec: Object, status: Object) -> str:
    kind, external = spec.get("type"), spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName") or "")
    if kind == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
        found = sorted({item.get("ip") or item.get("hostname") for item in ingress} - {None, ""})
        return ",".join([*found, *external]) or "<pending>"
    return ",".join(external) or "<none>"


def _port_text(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol')}"
