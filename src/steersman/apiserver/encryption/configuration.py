"""EncryptionConfiguration: which resources are encrypted, how, and with which keys, from a file.

Source: apiserver `pkg/apis/apiserver/{types_encryption.go,validation/validation_encryption.go}`,
`pkg/server/options/encryptionconfig/config.go`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError, Struct
from steersman.apimachinery.go_types import TypeTable
from steersman.apiserver.config_files import ConfigFileError, decode_config
from steersman.apiserver.encryption.ciphers import AESCBC, AESGCM, Cipher, FirstOf, Identity, Secretbox

GroupResource = tuple[str, str]
Ciphers = Mapping[GroupResource, Cipher]

_KIND = "EncryptionConfiguration"
_KEYED: Mapping[str, tuple[bytes, Callable[[bytes], Cipher], tuple[int, ...], str]] = {
    "aesgcm": (b"k8s:enc:aesgcm:v1:", AESGCM, (16, 24, 32), "AES"),
    "aescbc": (b"k8s:enc:aescbc:v1:", AESCBC, (16, 24, 32), "AES"),
    "secretbox": (b"k8s:enc:secretbox:v1:", Secretbox, (32,), "Secretbox"),
}
"""Providers that have keys: what their values begin with, the cipher, the lengths of its keys, its name in texts."""
_PROVIDERS = (*_KEYED, "identity", "kms")
_TYPES: dict[str, Any] = {
    _KIND: [["kind", 1, "string"], ["apiVersion", 1, "string"], ["resources", 0, "[]ResourceConfiguration"]],
    "ResourceConfiguration": [["resources", 0, "[]string"], ["providers", 0, "[]ProviderConfiguration"]],
    "ProviderConfiguration": [
        ["aesgcm", 1, "*KeysConfiguration"],
        ["aescbc", 1, "*KeysConfiguration"],
        ["secretbox", 1, "*KeysConfiguration"],
        ["identity", 1, "*IdentityConfiguration"],
        ["kms", 1, "*KMSConfiguration"],
    ],
    "KeysConfiguration": [["keys", 0, "[]Key"]],
    "Key": [["name", 0, "string"], ["secret", 0, "string"]],
    "IdentityConfiguration": [],
    "KMSConfiguration": [
        ["apiVersion", 1, "string"],
        ["name", 0, "string"],
        ["cachesize", 1, "*int32"],
        ["endpoint", 0, "string"],
        ["timeout", 1, "string"],
    ],
}
_TABLE = TypeTable(_TYPES)
_ANY: GroupResource = ("*", "*")
_WITHOUT_API = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")

Object = Mapping[str, Any]


def read_configuration(raw: bytes, path: str = "") -> Ciphers:
    """How the objects of resources are encrypted, as a file's bytes say; `path` is named in errors.

    Raises ConfigFileError.
    """
    if not raw:
        raise _unparsed(f"error while loading file: encryption provider configuration file {quote(path)} is empty")
    try:
        config = decode_config(raw, _KIND, ("v1",), _TABLE)
    except ConfigFileError as error:
        raise _unparsed(f"error decoding encryption provider configuration file {quote(path)}: {error}") from None
    entries = config.get("resources") or []
    if errors := _validate(entries):
        raise _unparsed(fe.aggregate(errors))
    return _ciphers(entries)


def cipher_of(ciphers: Ciphers, resource: GroupResource) -> Cipher | None:
    """The one for a resource; None where nothing is said of it."""
    return ciphers.get(resource) or ciphers.get((resource[0], "*")) or ciphers.get(_ANY)


def _unparsed(why: str) -> ConfigFileError:
    return ConfigFileError(f"error while parsing file: {why}")


def _parse(text: str) -> GroupResource:
    resource, _, group = text.partition(".")
    return group, resource


def _shown(resource: GroupResource) -> str:
    group, name = resource
    return f"{name}." if not group and name == "*" else f"{name}.{group}" if group else name


def _ciphers(entries: Sequence[Object]) -> Ciphers:
    found: dict[GroupResource, list[tuple[bytes, Cipher]]] = {}
    for entry in entries:
        providers = [_provider(each) for each in entry["providers"]]
        for resource in map(_parse, entry["resources"]):
            for masking in ((resource[0], "*"), _ANY):
                if masking in found:
                    why = f"resource {quote(_shown(resource))} is masked by earlier rule {quote(_shown(masking))}"
                    raise ConfigFileError(f"error while building transformers: {why}")
            found.setdefault(resource, []).extend(providers)
    return {resource: FirstOf(providers, "no matching prefix found") for resource, providers in found.items()}


def _provider(provider: Object) -> tuple[bytes, Cipher]:
    """What the values of a provider begin with, and its cipher."""
    for name, (prefix, cipher, _, title) in _KEYED.items():
        if provider.get(name) is not None:
            unknown = f"no matching key was found for the provided {title} transformer"
            return prefix, FirstOf([_keyed(cipher, key) for key in provider[name]["keys"]], unknown)
    if provider.get("kms") is not None:
        raise ConfigFileError("this server has no KMS providers; use aesgcm, secretbox or aescbc")
    return b"", Identity()


def _keyed(cipher: Callable[[bytes], Cipher], key: Object) -> tuple[bytes, Cipher]:
    try:
        return f"{key['name']}:".encode(), cipher(_secret(key["secret"]))
    except ImportError:
        raise ConfigFileError("secretbox needs one more package: pip install 'steersman[secretbox]'") from None


def _secret(text: str) -> bytes:
    """Raises ValueError for what is no base64."""
    return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)


def _validate(entries: Sequence[Object]) -> list[FieldError]:
    if not entries:
        return [fe.required("resources", "at least one resources is required")]
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        where = f"resources[{index}]"
        resources, providers = entry.get("resources") or [], entry.get("providers") or []
        if not resources:
            errors.append(fe.required(f"{where}.resources", f"at least one {where}.resources is required"))
        errors += _overlaps(resources, f"{where}.resources")
        for number, name in enumerate(resources):
            if why := _wrong_name(name):
                errors.append(fe.invalid(f"{where}.resources[{number}]", name, why))
        if not providers:
            errors.append(fe.required(f"{where}.providers", f"at least one {where}.providers is required"))
        for number, provider in enumerate(providers):
            errors += _provider_errors(provider, f"{where}.providers[{number}]")
    return errors


def _overlaps(resources: list[str], path: str) -> list[FieldError]:
    parsed = [_parse(each) for each in resources]
    pairs = [(one, other) for i, one in enumerate(parsed) for j, other in enumerate(parsed) if i != j]
    # Of equal ones the first pair counts as equal, further pairs as overlapping where they are wildcards.
    equal = next((number for number, (one, other) in enumerate(pairs) if one == other), None)
    errors = []
    if equal is not None:
        errors.append(fe.invalid(path, resources, "the same resource cannot be specified multiple times"))
    rest = [pair for number, pair in enumerate(pairs) if number != equal]
    if any(one == _ANY or (one[0] == other[0] and "*" in (one[1], other[1])) for one, other in rest):
        why = (
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they "
            "will be masked"
        )
        errors.append(fe.invalid(path, resources, why))
    return errors


def _wrong_name(name: str) -> str:
    group, resource = _parse(name)
    if name.lower() != name:
        return "resource name should not contain capital letters"
    if name == "*":
        return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    if name in _WITHOUT_API:
        return "resources which do not have REST API/s cannot be encrypted"
    if group == "events.k8s.io":
        return (
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the "
            "config file"
        )
    if group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if group == "*" and resource != "*":
        return "encrypting the same resource across groups is not supported"
    return ""


def _provider_errors(provider: Object, path: str) -> list[FieldError]:
    given = [name for name in _PROVIDERS if provider.get(name) is not None]
    if len(given) != 1:
        why = (
            "more than one provider specified in a single element, should split into different list elements"
            if given
            else "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
        )
        shown = Struct({each: _without_secrets(provider.get(key)) for each, key in _SHOWN.items()})
        errors = [fe.invalid(path, shown, why)]
    else:
        errors = []
    for name in ("kms", *_KEYED):
        if name in given:
            return errors + (
                [] if name == "kms" else _key_errors(provider[name], f"{path}.{name}.keys", _KEYED[name][2])
            )
    return errors


def _without_secrets(config: Object | None) -> Object | None:
    """A provider as an error shows it: upstream shows the keys' secrets, too."""
    if not config or "keys" not in config:
        return config
    return Struct(Keys=[Struct(Name=key.get("name"), Secret="REDACTED") for key in config["keys"] or ()] or None)  # noqa: S106


_SHOWN = {"AESGCM": "aesgcm", "AESCBC": "aescbc", "Secretbox": "secretbox", "Identity": "identity", "KMS": "kms"}


def _key_errors(config: Object, path: str, lengths: tuple[int, ...]) -> list[FieldError]:
    keys = config.get("keys") or ()
    if not keys:
        return [fe.required(path, "at least one keys is required")]
    errors = []
    for index, key in enumerate(keys):
        where = f"{path}[{index}]"
        if not key.get("name"):
            errors.append(fe.required(f"{where}.name", "name is a mandatory field for a key"))
        if not key.get("secret"):
            errors.append(fe.required(f"{where}.secret", "secret is a mandatory field for a key"))
        elif why := _wrong_secret(key["secret"], lengths):
            errors.append(fe.invalid(f"{where}.secret", "REDACTED", why))
    return errors


def _wrong_secret(text: str, lengths: tuple[int, ...]) -> str:
    try:
        length = len(_secret(text))
    except (binascii.Error, ValueError):
        return "secrets must be base64 encoded"
    expected = " ".join(map(str, lengths))
    fits = length in lengths
    return "" if fits else f"secret is not of the expected length, got {length}, expected one of [{expected}]"
