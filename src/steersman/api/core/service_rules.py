"""The addresses of Services: families, allocated addresses, what may be changed.

Source: kubernetes `pkg/apis/core/validation/validation.go` (ValidateServiceClusterIPsRelatedFields).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.api import checks
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ONCE = "may not change once set"


def is_headless(spec: Object) -> bool:
    several = spec.get("clusterIPs") or []
    return several == ["None"] or (not several and spec.get("clusterIP") == "None")


def family_of(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def address_errors(spec: Object, before: Object) -> list[FieldError]:
    """clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy, which belong together."""
    if spec.get("type") == "ExternalName":
        return []
    single, several = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    errors: list[FieldError] = []
    if single and not several:
        errors.append(fe.required("spec.clusterIPs"))
    elif single and several[0] != single:
        errors.append(fe.invalid("spec.clusterIPs", several, "first value must match `clusterIP`"))
    elif several and not single:
        errors.append(fe.invalid("spec.clusterIPs", several, "must be empty when `clusterIP` is not specified"))
    errors += _family_errors(spec)
    wrong = _values_errors(several, before.get("clusterIPs") or ())
    errors += wrong
    if len(several) > 2:
        errors.append(fe.invalid("spec.clusterIPs", several, "may only hold up to 2 values"))
    if wrong:
        return errors
    return errors + _match_errors(spec, several)


def _family_errors(spec: Object) -> list[FieldError]:
    errors, seen = [], set()
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        field = f"spec.ipFamilies[{index}]"
        errors += checks.supported(family, FAMILIES, field)
        if family in seen:
            errors.append(fe.duplicate(field, family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None:
        errors += checks.supported(policy, _FAMILY_POLICIES, "spec.ipFamilyPolicy")
    return errors


def _values_errors(several: list[str], known: Sequence[str]) -> list[FieldError]:
    errors = []
    for index, address in enumerate(several):
        if index == 0 and address == "None":
            if len(several) > 1:
                errors.append(fe.invalid("spec.clusterIPs", several, "'None' must be the first and only value"))
            continue
        errors += checks.ip(address, f"spec.clusterIPs[{index}]", known)
    return errors


def _match_errors(spec: Object, several: list[str]) -> list[FieldError]:
    errors = []
    found = [family_of(address) for address in several if address != "None"]
    if len(found) == 2 and found[0] == found[1]:
        text = "may specify no more than one IP for each IP family"
        errors.append(fe.invalid("spec.clusterIPs", several, text))
    families = spec.get("ipFamilies") or []
    for index, (address, family) in enumerate(zip(several, families, strict=False)):
        if address != "None" and family != family_of(address):
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(fe.invalid(f"spec.clusterIPs[{index}]", address, text))
    return errors


def upgrade_errors(spec: Object, before: Object) -> list[FieldError]:
    """Addresses and families may be added to and taken away, but the first stays."""
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return []
    headless, was = is_headless(spec), is_headless(before)
    if headless and was:
        return []
    errors = _kept_errors("clusterIPs", spec, before, indexed=True)
    return errors if headless != was else errors + _kept_errors("ipFamilies", spec, before, indexed=False)


def _kept_errors(key: str, spec: Object, before: Object, *, indexed: bool) -> list[FieldError]:
    new, old = spec.get(key) or [], before.get(key) or []
    if len(new) == len(old):
        return [
            fe.invalid(f"spec.{key}[{index if indexed else 0}]", new, _ONCE)
            for index, (value, was) in enumerate(zip(new, old, strict=True))
            if value != was
        ]
    errors = []
    if len(old) > len(new) and not new:
        what = "clusterIP" if key == "clusterIPs" else "ipFamily"
        errors.append(fe.invalid(f"spec.{key}[0]", new or None, f"primary {what} can not be unset"))
    if new and old and new[0] != old[0]:
        errors.append(fe.invalid(f"spec.{key}[0]", new, _ONCE))
    if len(old) > len(new) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        what = "clusterIP" if key == "clusterIPs" else "ipFamily"
        text = f"must be set to 'SingleStack' when releasing the secondary {what}"
        errors.append(fe.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
    return errors


def ingress_status_errors(ingress: Sequence[Object], known: Sequence[Object], place: str) -> list[FieldError]:
    """The addresses and names that a load balancer is reached by; addresses that were there before stay valid."""
    errors: list[FieldError] = []
    before = [item.get("ip") or "" for item in known]
    for index, item in enumerate(ingress):
        if item.get("ip"):
            errors += checks.ip(item["ip"], f"{place}[{index}].ip", before)
        if name := item.get("hostname"):
            errors += checks.dns_subdomain(name, f"{place}[{index}].hostname")
            if checks.parse_ip(name) is not None:
                text = "must be a DNS name, not an IP address"
                errors.append(fe.invalid(f"{place}[{index}].hostname", name, text))
    return errors


def endpoint_ip_errors(address: str, field: str) -> list[FieldError]:
    """An address that traffic may be sent to."""
    parsed = checks.parse_ip(address)
    if parsed is None:
        return [fe.invalid(field, address, "must be a valid IP address")]
    errors = []
    if parsed.is_unspecified:
        errors.append(fe.invalid(field, address, f"may not be unspecified ({address})"))
    if parsed.is_loopback:
        errors.append(fe.invalid(field, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if parsed.is_link_local:
        text = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        errors.append(fe.invalid(field, address, text))
    packed = parsed.packed
    if packed[:3] == b"\xe0\x00\x00" or packed[:2] == b"\xff\x02":
        text = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(fe.invalid(field, address, text))
    return errors
