"""Endpoints, the deprecated form of EndpointSlices.

Source: kubernetes `pkg/registry/core/endpoint/strategy.go`, `pkg/apis/core/validation/validation.go`; endpoints
`util.go` (RepackSubsets).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.address_warnings import ip_warnings
from steersman.api.builtin import BuiltinStrategy
from steersman.api.core.containers import PROTOCOLS
from steersman.api.core.service_rules import endpoint_ip_errors
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

_SHOWN = 3
_MANAGED_BY = "endpoints.kubernetes.io/managed-by"


class EndpointsStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        errors = []
        for index, subset in enumerate(obj.get("subsets") or ()):
            errors += _subset_errors(subset, f"subsets[{index}]")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [*self.validate_meta_update(new, old), *self.validate_meta(new)]
        unchanged = new.get("subsets") == old.get("subsets")
        return errors if unchanged else errors + self.validate_content(new)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) == "endpoint-controller":
            return []
        return [
            warning
            for index, subset in enumerate(obj.get("subsets") or ())
            for key in ("addresses", "notReadyAddresses")
            for number, address in enumerate(subset.get(key) or ())
            for warning in ip_warnings(f"subsets[{index}].{key}[{number}].ip", address.get("ip") or "")
        ]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        return [meta.get("name") or "", _text(obj.get("subsets") or ()), age(meta.get("creationTimestamp"), now)]


def _subset_errors(subset: Object, place: str) -> list[FieldError]:
    ready, other = subset.get("addresses") or (), subset.get("notReadyAddresses") or ()
    errors: list[FieldError] = []
    if not ready and not other:
        errors.append(fe.required(place, "must specify `addresses` or `notReadyAddresses`"))
    for key, addresses in (("addresses", ready), ("notReadyAddresses", other)):
        for index, address in enumerate(addresses):
            errors += _address_errors(address, f"{place}.{key}[{index}]")
    ports = subset.get("ports") or ()
    for index, port in enumerate(ports):
        here, name = f"{place}.ports[{index}]", port.get("name") or ""
        if name:
            errors += checks.dns_label(name, f"{here}.name")
        elif len(ports) > 1:
            errors.append(fe.required(f"{here}.name"))
        errors += checks.port_number(port.get("port") or 0, f"{here}.port")
        errors += checks.one_of(port.get("protocol"), PROTOCOLS, f"{here}.protocol")
        if port.get("appProtocol") is not None:
            errors += checks.qualified_name(port["appProtocol"], f"{here}.appProtocol")
    return errors


def _address_errors(address: Object, place: str) -> list[FieldError]:
    ip = address.get("ip") or ""
    errors = checks.ip(ip, f"{place}.ip")
    if address.get("hostname"):
        errors += checks.dns_label(address["hostname"], f"{place}.hostname")
    if address.get("nodeName") is not None:
        errors += checks.dns_subdomain(address["nodeName"], f"{place}.nodeName")
    return errors + endpoint_ip_errors(ip, f"{place}.ip")


def _text(subsets: Any) -> str:
    if not subsets:
        return "<none>"
    found = []
    for subset in subsets:
        addresses = [address.get("ip") or "" for address in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            found += addresses
        for port in ports or ():
            found += [f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in addresses]
    more = f" + {len(found) - _SHOWN} more..." if len(found) > _SHOWN else ""
    return ",".join(found[:_SHOWN]) + more
