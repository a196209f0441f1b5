"""Rules of `spec.conversion`.

Source: apiextensions `pkg/apis/apiextensions/validation/validation.go`; apiserver `pkg/util/webhook/validation.go`;
client-go `transport/transport.go` (CA bundles).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.urls import parse_url

REVIEW_VERSIONS = ("v1", "v1beta1")
_PEM = re.compile(rb"-----BEGIN ([^-]+)-----\s*(.*?)-----END \1-----", re.DOTALL)
_URL_FORM = "; desired format: https://host[/path]"


def conversion_errors(
    conversion: Mapping[str, Any] | None, path: str, *, require_known_review: bool, allow_bad_ca: bool
) -> list[FieldError]:
    """What is wrong with a conversion; None is fine.

    `require_known_review` asks for a ConversionReview version that the server speaks; `allow_bad_ca` lets an
    unusable caBundle pass.
    """
    if conversion is None:
        return []
    strategy = conversion.get("strategy") or ""
    errors = enum_errors(strategy, ("None", "Webhook"), f"{path}.strategy")
    webhook = conversion.get("webhook") or {}
    config = webhook.get("clientConfig")
    versions = webhook.get("conversionReviewVersions") or []
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if config is not None:
            errors.append(fe.forbidden(f"{path}.webhookClientConfig", detail))
        if versions:
            errors.append(fe.forbidden(f"{path}.conversionReviewVersions", detail))
        return errors
    if config is None:
        detail = "required when strategy is set to Webhook"
        errors.append(fe.required(f"{path}.webhookClientConfig", detail))
    else:
        errors += _client_config_errors(config, f"{path}.webhookClientConfig", allow_bad_ca=allow_bad_ca)
    return errors + review_version_errors(
        versions, f"{path}.conversionReviewVersions", require_known=require_known_review
    )


def enum_errors(value: str, accepted: Sequence[str], path: str) -> list[FieldError]:
    """A required text that must be one of a few."""
    if not value:
        return [fe.required(path)]
    return [] if value in accepted else [fe.not_supported(path, value, accepted)]


def knows_review_version(versions: Sequence[str]) -> bool:
    """Whether the server speaks one of the versions; none at all will do too."""
    return not versions or any(version in REVIEW_VERSIONS for version in versions)


def _client_config_errors(config: Mapping[str, Any], path: str, *, allow_bad_ca: bool) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        errors = [fe.required(path, "exactly one of url or service is required")]
    elif url is not None:
        errors = url_errors(url, f"{path}.url")
    else:
        errors = service_errors(service or {}, f"{path}.service")
    bundle = config.get("caBundle")
    if bundle and not allow_bad_ca:
        reason = ca_bundle_error(bundle)
        errors += [fe.invalid(f"{path}.caBundle", bundle, reason)] if reason else []
    return errors


def url_errors(text: str, path: str) -> list[FieldError]:
    """What is wrong with a webhook's URL."""
    try:
        url = parse_url(text)
    except ValueError as error:
        return [fe.required(path, f"url must be a valid URL: {error}{_URL_FORM}")]
    errors = []
    if url.scheme != "https":
        errors.append(fe.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    if not url.host:
        errors.append(fe.invalid(path, "", f"host must be specified{_URL_FORM}"))
    if url.user is not None:
        errors.append(fe.invalid(path, url.user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(fe.invalid(path, unquote(url.fragment), "fragments are not permitted in the URL"))
    if url.query:
        errors.append(fe.invalid(path, url.query, "query parameters are not permitted in the URL"))
    return errors


def service_errors(service: Mapping[str, Any], path: str) -> list[FieldError]:
    """What is wrong with the reference to a webhook's Service."""
    # upstream hands name and namespace over in each other's place, so each is reported as the other
    errors = [
        fe.required(f"{path}.{shown}")
        for shown, key in (("name", "namespace"), ("namespace", "name"))
        if not service.get(key)
    ]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(fe.invalid(f"{path}.port", port, detail))
    return errors + _path_errors(service.get("path"), f"{path}.path")


def _path_errors(text: str | None, path: str) -> list[FieldError]:
    if not text or text == "/":
        return []
    if text == "//":
        return [fe.invalid(path, text, "segment[0] may not be empty")]
    errors = []
    if not text.startswith("/"):
        errors.append(fe.invalid(path, text, "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(fe.invalid(path, text, f"segment[{index}] may not be empty"))
        errors += [
            fe.invalid(path, text, f"segment[{index}]: {reason}") for reason in names.dns1123_subdomain(step) if step
        ]
    return errors


def review_version_errors(
    versions: Sequence[str], path: str, *, require_known: bool, detail: str = ""
) -> list[FieldError]:
    """What is wrong with the versions of a review that a webhook takes; `detail` says which there are."""
    if not versions:
        return [fe.required(path, detail)]
    errors = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(fe.invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        errors += [fe.invalid(f"{path}[{index}]", version, reason) for reason in names.dns1035_label(version)]
    if require_known and not knows_review_version(versions):
        detail = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(fe.invalid(path, list(versions), detail))
    return errors


def ca_bundle_error(bundle: str) -> str:
    """Why a caBundle (base64 of PEM) holds no certificate that can be trusted; "" when it does."""
    from cryptography import x509  # deferred: its import would take a good part of the server's start

    try:
        pem = base64.b64decode(bundle)
    except (ValueError, binascii.Error):
        pem = b""
    reason = "unable to parse bytes as PEM block"
    for match in _PEM.finditer(pem):
        body = match[2]
        if match[1] != b"CERTIFICATE" or b":" in body:
            reason = "no valid certificate authority data seen"
            continue
        try:
            x509.load_der_x509_certificate(base64.b64decode(body))
        except ValueError as error:
            reason = f"failed to parse certificate: {error}"
            continue
        return ""
    return f"unable to load root certificates: {reason}"
