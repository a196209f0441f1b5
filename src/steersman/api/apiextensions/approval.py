"""CRDs in the community's groups (*.k8s.io, *.kubernetes.io) need an approval annotation.

Source: apiextensions `pkg/apihelpers/helpers.go` (KEP-1111).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery.schema.urls import UrlError, parse_request_uri

ANNOTATION = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


class Approval(Enum):
    """States of approval; the value is the reason of the KubernetesAPIApprovalPolicyConformant condition."""

    INVALID = "InvalidAnnotation"
    APPROVED = "ApprovedAnnotation"
    BYPASSED = "UnapprovedAnnotation"
    MISSING = "MissingAnnotation"


def is_protected_group(group: str) -> bool:
    """Whether a group belongs to the community."""
    return any(group == domain or group.endswith(f".{domain}") for domain in ("k8s.io", "kubernetes.io"))


def approval_state(crd: Mapping[str, Any]) -> tuple[Approval, str]:
    """What the annotation says, and the text for it."""
    annotations = (crd.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(ANNOTATION) or ""
    if not text:
        return Approval.MISSING, f"protected groups must have approval annotation {quote(ANNOTATION)}, {_SEE}"
    if text.startswith("unapproved"):
        return Approval.BYPASSED, f"not approved: {quote(text)}"
    if _is_address(text):
        return Approval.APPROVED, f"approved in {text}"
    wanted = 'with either a URL or a reason starting with "unapproved"'
    return Approval.INVALID, f"protected groups must have approval annotation {quote(ANNOTATION)} {wanted}, {_SEE}"


def _is_address(text: str) -> bool:
    try:
        url = parse_request_uri(text)
    except UrlError:
        return False
    return bool(url.scheme and url.host)
