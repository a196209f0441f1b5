"""What projected volumes take from trust bundles and pod certificates.

Source: kubernetes `pkg/apis/core/validation/validation.go` (validateProjectionSources, ValidateSignerName,
ValidateUserAnnotations), `names.go` (ValidateClusterTrustBundleName).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman._util.gotext import quote
from steersman.api.core.paths import local_path
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, selectors
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_SHORTEST, _LONGEST, _LONGEST_OF_KUBERNETES = 3600, 91 * 86400, 86400
_MAX_SIGNER = 571
_SIGNER = "must be a fully qualified domain and path of the form 'example.com/signer-name'"


def bundle_errors(source: Object, place: str) -> list[FieldError]:
    """A projection of one trust bundle, or of all of one signer."""
    name, signer, path = source.get("name"), source.get("signerName"), source.get("path") or ""
    errors: list[FieldError] = []
    if name is not None and signer is not None:
        errors.append(fe.invalid(place, _bundle(source), "only one of name and signerName may be used"))
    elif name is not None:
        errors += _bundle_name_errors(name, f"{place}.name")
        if source.get("labelSelector") is not None:
            text = "labelSelector must be unset if name is specified"
            errors.append(fe.invalid(f"{place}.labelSelector", source["labelSelector"], text))
    elif signer is not None:
        if not signer:
            errors.append(fe.required(f"{place}.signerName", "must be a valid signer name"))
        errors += signer_errors(signer, f"{place}.signerName")
        errors += selectors.validate_object(source.get("labelSelector"), f"{place}.labelSelector")
    else:
        errors.append(fe.required(place, "either name or signerName must be specified"))
    if not path:
        errors.append(fe.required(f"{place}.path"))
    return errors + local_path(path, f"{place}.path")


def _bundle(source: Object) -> fe.Struct:
    keys = ("name", "signerName", "labelSelector", "optional", "path", "user")
    values = {key[0].upper() + key[1:]: source.get(key) for key in keys}
    return fe.Struct({**values, "Path": source.get("path") or ""})


def _bundle_name_errors(name: str, field: str) -> list[FieldError]:
    errors = [] if name else [fe.required(field, "must be a valid object name")]
    texts = names.name_is_dns_subdomain(name.rpartition(":")[2], False)
    return errors + [fe.invalid(field, name, f"not a valid clustertrustbundlename: {text}") for text in texts]


def certificate_errors(source: Object, place: str) -> list[FieldError]:
    """A projection of a key with its certificate."""
    signer, kind = source.get("signerName") or "", source.get("keyType") or ""
    errors = signer_errors(signer, f"{place}.signerName")
    for key in sorted(source.get("userAnnotations") or ()):
        errors += _prefixed_key_errors(key.lower(), f"{place}.userAnnotations")
    if kind not in KEY_TYPES:
        errors.append(fe.not_supported(f"{place}.keyType", kind, KEY_TYPES))
    errors += _lifetime_errors(source.get("maxExpirationSeconds"), signer, f"{place}.maxExpirationSeconds")
    given = [key for key in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(key)]
    for key in given:
        errors += local_path(source[key], f"{place}.{key}")
    if not given:
        text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(fe.required(place, text))
    return errors


def _prefixed_key_errors(key: str, field: str) -> list[FieldError]:
    if not key:
        return [fe.required(field)]
    errors = [fe.invalid(field, key, text) for text in names.qualified_name(key)]
    if not errors and "/" not in key:
        errors.append(fe.invalid(field, key, 'must be a domain-prefixed key (such as "acme.io/foo")'))
    return errors


def _lifetime_errors(seconds: int | None, signer: str, field: str) -> list[FieldError]:
    if seconds is None:
        return []
    errors, most = [], _LONGEST_OF_KUBERNETES if signer.startswith("kubernetes.io/") else _LONGEST
    if seconds < _SHORTEST:
        text = f"if provided, maxExpirationSeconds must be >= {_SHORTEST}"
        errors.append(fe.invalid(field, seconds, text))
    if seconds > most:
        errors.append(fe.invalid(field, seconds, f"if provided, maxExpirationSeconds must be <= {most}"))
    return errors


def signer_errors(signer: str, field: str) -> list[FieldError]:
    """The name of a signer of certificates: a domain, a slash, and a dotted path."""
    if not signer:
        return [fe.required(field)]
    domain, slash, path = signer.partition("/")
    if not slash or "/" in path:
        return [fe.invalid(field, signer, _SIGNER)]
    errors = [fe.too_long(field, names.MAX_NAME)] if len(domain.encode()) > names.MAX_NAME else []
    errors += _labels_errors(domain, names.dns1123_label, field)
    if "." not in domain:
        errors.append(fe.invalid(field, domain, "should be a domain with at least two segments separated by dots"))
    errors += _labels_errors(path, names.dns1123_subdomain, field)
    if len(signer.encode()) > _MAX_SIGNER:
        errors.append(fe.too_long(field, _MAX_SIGNER))
    return errors


def _labels_errors(dotted: str, rule: Callable[[str], list[str]], field: str) -> list[FieldError]:
    """What is wrong with the first part that is wrong."""
    for label in dotted.split("."):
        if texts := rule(label):
            return [fe.invalid(field, dotted, f"validating label {quote(label)}: {text}") for text in texts]
    return []
