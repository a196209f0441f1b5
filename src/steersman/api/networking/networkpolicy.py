"""NetworkPolicies.

Source: kubernetes `pkg/registry/networking/networkpolicy/strategy.go`, `pkg/apis/networking/validation/validation.go`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.address_warnings import cidr_warnings
from steersman.api.apps.pod_sets import selector_text
from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import selectors
from steersman.apimachinery.field_errors import FieldError

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


class NetworkPolicyStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        return _spec_errors(obj.get("spec") or {}, ())

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        known = {text for _, text in _placed(old.get("spec") or {})}
        return [*self.validate_meta_update(new, old), *_spec_errors(new.get("spec") or {}, known)]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return [warning for field, text in _placed(obj.get("spec") or {}) for warning in cidr_warnings(field, text)]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        selector = selector_text((obj.get("spec") or {}).get("podSelector"))
        return [meta.get("name") or "", selector, age(meta.get("creationTimestamp"), now)]


def _placed(spec: Object) -> Iterator[tuple[str, str]]:
    """All networks of a spec, with their fields."""
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            for number, peer in enumerate(rule.get(peers) or ()):
                place = f"spec.{direction}[{index}].{peers}[{number}].ipBlock"
                if (block := peer.get("ipBlock")) is not None:
                    yield f"{place}.cidr", block.get("cidr") or ""
                    for at, text in enumerate(block.get("except") or ()):
                        yield f"{place}.except[{at}]", text


def _spec_errors(spec: Object, known: Collection[str]) -> list[FieldError]:
    errors = selectors.validate_object(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            place = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                errors += _port_errors(port, f"{place}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                errors += _peer_errors(peer, f"{place}.{peers}[{number}]", known)
    kinds = spec.get("policyTypes") or []
    if len(kinds) > len(_TYPES):
        return [*errors, fe.invalid("spec.policyTypes", kinds, "may not specify more than two policyTypes")]
    for index, kind in enumerate(kinds):
        errors += checks.supported(kind, _TYPES, f"spec.policyTypes[{index}]")
    return errors


def _port_errors(port: Object, place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.get("protocol") is not None:
        errors += checks.supported(port["protocol"], _PROTOCOLS, f"{place}.protocol")
    value, end, field = port.get("port"), port.get("endPort"), f"{place}.endPort"
    if value is not None:
        errors += checks.port(value, f"{place}.port") if not isinstance(value, str) else []
    if end is not None:
        if value is None:
            errors.append(fe.invalid(field, end, "may not be specified when `port` is not specified"))
        elif isinstance(value, str):
            errors.append(fe.invalid(field, end, "may not be specified when `port` is non-numeric"))
        else:
            if end < value:
                errors.append(fe.invalid(field, end, "must be greater than or equal to `port`"))
            errors += checks.port_number(end, field)
    return errors + (checks.port_name(value, f"{place}.port") if isinstance(value, str) else [])


def _peer_errors(peer: Object, place: str, known: Collection[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    given = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    for key in given:
        if key == "ipBlock":
            errors += _block_errors(peer[key], f"{place}.ipBlock", known)
        else:
            errors += selectors.validate_object(peer[key], f"{place}.{key}")
    if not given:
        errors.append(fe.required(place, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        errors.append(fe.forbidden(place, "may not specify both ipBlock and another peer"))
    return errors


def _block_errors(block: Object, place: str, known: Collection[str]) -> list[FieldError]:
    text = block.get("cidr") or ""
    if not text:
        return [fe.required(f"{place}.cidr")]
    errors = checks.cidr(text, f"{place}.cidr", known)
    network = _network(text)
    if network is None:
        return errors
    for index, excepted in enumerate(block.get("except") or ()):
        field = f"{place}.except[{index}]"
        errors += checks.cidr(excepted, field, known)
        inner = _network(excepted)
        if inner is not None and not _strictly_inside(inner, network):
            errors.append(fe.invalid(field, excepted, "must be a strict subset of `cidr`"))
    return errors


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    parsed = checks.parse_network(text)
    return None if parsed is None else ipaddress.ip_network(parsed, strict=False)


def _strictly_inside(inner: Any, outer: Any) -> bool:
    return bool(inner.version == outer.version and inner.prefixlen > outer.prefixlen and inner.subnet_of(outer))
