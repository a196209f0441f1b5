"""EndpointSlices.

Source: kubernetes `pkg/registry/discovery/endpointslice/strategy.go`, `pkg/apis/discovery/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman._util.gotext import quote
from steersman.api import checks
from steersman.api.address_warnings import ip_warnings
from steersman.api.builtin import BuiltinStrategy
from steersman.api.core.containers import PROTOCOLS
from steersman.api.core.service_rules import endpoint_ip_errors
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_labels

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_OWN_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_MAX_ENDPOINTS, _MAX_PORTS, _MAX_ADDRESSES, _MAX_HINTS, _SHOWN = 1000, 20000, 100, 8, 3


class EndpointSliceStrategy(BuiltinStrategy):
    def validate_create(self, obj: Object) -> list[FieldError]:
        kind = obj.get("addressType") or ""
        return [*self.validate_meta(obj), *_content_errors(obj), *_endpoints_errors(obj.get("endpoints") or [], kind)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [*self.validate_meta(new), *_content_errors(new)]
        endpoints = new.get("endpoints") or []
        if endpoints != (old.get("endpoints") or []):
            errors += _endpoints_errors(endpoints, new.get("addressType") or "")
        return errors

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        errors = []
        if old is not None and new.get("addressType") != old.get("addressType"):
            errors.append(fe.invalid("addressType", None, "field is immutable"))
        return errors + [
            fe.required(f"endpoints[{index}].addresses")
            for index, endpoint in enumerate(new.get("endpoints") or ())
            if not endpoint.get("addresses")
        ]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        found = ["spec.addressType: FQDN endpoints are deprecated"] if _is_new_with_names(obj, old) else []
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _OWN_CONTROLLERS:
            return found
        return found + [
            warning
            for index, endpoint in enumerate(obj.get("endpoints") or ())
            for number, address in enumerate(endpoint.get("addresses") or ())
            for warning in ip_warnings(f"endpoints[{index}].addresses[{number}]", address)
        ]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        ports = [_port_text(port) for port in obj.get("ports") or ()]
        addresses = [address for item in obj.get("endpoints") or () for address in item.get("addresses") or ()]
        return [
            meta.get("name") or "",
            obj.get("addressType") or "",
            _some(ports),
            _some(addresses),
            age(meta.get("creationTimestamp"), now),
        ]


def _is_new_with_names(obj: Object, old: Object | None) -> bool:
    return old is None and obj.get("addressType") == "FQDN"


def _content_errors(obj: Object) -> list[FieldError]:
    errors = checks.one_of(obj.get("addressType"), ADDRESS_TYPES, "addressType")
    return errors + _ports_errors(obj.get("ports") or [])


def _port_text(port: Object) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return "*" if port.get("name") is None else str(port["name"])


def _some(items: list[str]) -> str:
    if not items:
        return "<unset>"
    more = f" + {len(items) - _SHOWN} more..." if len(items) > _SHOWN else ""
    return ",".join(items[:_SHOWN]) + more


def _ports_errors(ports: list[Object]) -> list[FieldError]:
    if len(ports) > _MAX_PORTS:
        return [fe.too_many("ports", len(ports), _MAX_PORTS)]
    errors, seen = [], set()
    for index, port in enumerate(ports):
        place, name = f"ports[{index}]", port.get("name") or ""
        if name:
            errors += checks.dns_label(name, f"{place}.name")
        if name in seen:
            errors.append(fe.duplicate(f"{place}.name", name))
        seen.add(name)
        errors += checks.one_of(port.get("protocol"), PROTOCOLS, f"{place}.protocol")
        if port.get("appProtocol") is not None:
            errors += checks.qualified_name(port["appProtocol"], f"{place}.appProtocol")
    return errors


def _endpoints_errors(endpoints: list[Object], kind: str) -> list[FieldError]:
    if len(endpoints) > _MAX_ENDPOINTS:
        return [fe.too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)]
    errors: list[FieldError] = []
    for index, endpoint in enumerate(endpoints):
        place = f"endpoints[{index}]"
        addresses = endpoint.get("addresses") or []
        if len(addresses) > _MAX_ADDRESSES:
            errors.append(fe.too_many(f"{place}.addresses", len(addresses), _MAX_ADDRESSES))
        for number, address in enumerate(addresses):
            errors += _address_errors(address, kind, f"{place}.addresses", number)
        if endpoint.get("nodeName") is not None:
            errors += checks.dns_subdomain(endpoint["nodeName"], f"{place}.nodeName")
        topology = f"{place}.deprecatedTopology"
        errors += validate_labels(endpoint.get("deprecatedTopology") or {}, topology)
        if endpoint.get("hostname") is not None:
            errors += checks.dns_label(endpoint["hostname"], f"{place}.hostname")
        errors += _hints_errors(endpoint.get("hints") or {}, f"{place}.hints")
    return errors


def _address_errors(address: str, kind: str, place: str, index: int) -> list[FieldError]:
    field = f"{place}[{index}]"
    if kind == "FQDN":
        return [fe.invalid(field, address, text) for text in names.dns1123_subdomain(address)] or _domain(
            address, field
        )
    if kind not in ("IPv4", "IPv6"):
        return []
    if errors := checks.ip(address, field):
        return errors
    parsed = checks.parse_ip(address)
    if kind == "IPv6" and address != str(parsed):
        return [fe.invalid(field, address, f"must be in canonical form ({quote(str(parsed))})")]
    version = 4 if kind == "IPv4" else 6
    if parsed is not None and parsed.version != version:
        errors.append(fe.invalid(place, address, f"must be an {kind} address"))
    return errors + endpoint_ip_errors(address, field)


def _domain(address: str, field: str) -> list[FieldError]:
    if "." in address:
        return []
    return [fe.invalid(field, address, "should be a domain with at least two segments separated by dots")]


def _hints_errors(hints: Object, place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    rules = (("forZones", names.label_value), ("forNodes", lambda name: names.name_is_dns_subdomain(name, False)))
    for key, rule in rules:
        given, seen = hints.get(key) or (), set()
        if len(given) > _MAX_HINTS:
            return [*errors, fe.too_many(f"{place}.{key}", len(given), _MAX_HINTS)]
        for index, hint in enumerate(given):
            field, name = f"{place}.{key}[{index}].name", hint.get("name") or ""
            if name in seen:
                errors.append(fe.duplicate(field, name))
            seen.add(name)
            errors += [fe.invalid(field, name, text) for text in rule(name)]
    return errors
