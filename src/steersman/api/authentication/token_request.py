"""Rules of TokenRequest, which a service account's token is asked for with.

Source: kubernetes `pkg/apis/authentication/validation/validation.go`, `pkg/apis/authentication/v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.kinds import BuiltinKind
from steersman.api.strategy import Object
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.names import dns1123_subdomain

DEFAULT_SECONDS, MIN_SECONDS, MAX_SECONDS = 3600, 600, 1 << 32
ATTESTATION = "admissionReviewAPIGroups"
_WEBHOOKS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


class TokenRequestStrategy(BuiltinStrategy):
    """Decoding and defaults; `validate` judges what the server has completed."""

    def default(self, obj: Object) -> None:
        spec = obj.get("spec") or {}
        if spec.get("expirationSeconds") is None:
            obj["spec"] = {**spec, "expirationSeconds": DEFAULT_SECONDS}


@cache
def token_request_kind() -> BuiltinKind:
    """The kind: it has no resource of its own, only `serviceaccounts/token`."""
    return BuiltinKind(
        "authentication.k8s.io",
        "v1",
        "TokenRequest",
        "tokenrequests",
        "tokenrequest",
        True,
        ("create",),
        type="api/authentication/v1.TokenRequest",
    )


def binds_webhook(reference: Mapping[str, Any] | None) -> bool:
    """Whether a boundObjectRef is to a webhook configuration."""
    return (
        reference is not None
        and reference.get("kind") in _WEBHOOKS
        and reference.get("apiVersion") == "admissionregistration.k8s.io/v1"
    )


def validate(request: Mapping[str, Any]) -> list[FieldError]:
    """What is wrong with a TokenRequest that has its defaults and audiences."""
    spec = request["spec"]
    seconds = spec["expirationSeconds"]
    errors: list[FieldError] = []
    if seconds < MIN_SECONDS:
        why = "may not specify a duration less than 10 minutes"
        errors.append(fe.invalid("spec.expirationSeconds", seconds, why))
    if seconds > MAX_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
        errors.append(fe.invalid("spec.expirationSeconds", seconds, why))
    attestations, field = spec.get("attestations"), "spec.attestations"
    if binds_webhook(spec.get("boundObjectRef")):
        if len(spec["audiences"]) != 1:
            why = "must be length 1 when bound to a webhook config"
            errors.append(fe.invalid("spec.audiences", spec["audiences"], why))
        return errors + _attestation_errors(attestations, field)
    if attestations:
        why = "attestations may only be specified with a webhook bound object reference"
        return [fe.invalid(field, attestations, why)]
    return errors


def _attestation_errors(attestations: Mapping[str, list[str]] | None, field: str) -> list[FieldError]:
    if attestations is None or len(attestations) != 1:
        why = f"webhook bound requests require exactly one {ATTESTATION} attestation"
        return [fe.invalid(field, attestations, why)]
    [(key, groups)] = attestations.items()
    field = f"{field}[{key}]"
    if key != ATTESTATION:
        return [fe.not_supported(field, key, [ATTESTATION])]
    if len(groups or ()) != 1:
        return [fe.invalid(field, groups, "must specify a single value")]
    group = groups[0]
    if not group:
        return [fe.invalid(f"{field}[0]", group, "may not be an empty string")]
    reasons = [] if group == "*" else dns1123_subdomain(group)
    return [fe.invalid(f"{field}[0]", group, f"must specify a valid API Group: {reason}") for reason in reasons]
