"""Which names, label keys, label values and map keys the API takes, and what it says about the others.

Every check returns the messages for what is wrong with the value, in upstream's order; an empty list is a valid value.
Source: apimachinery `pkg/util/validation`, `pkg/api/validate/content`, `pkg/api/validation/generic.go`;
apiserver `pkg/storage/names/generate.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Protocol

import re2

NameValidator = Callable[[str, bool], list[str]]
"""Judges a metadata.name; the flag says that the value is a generateName, to which characters are appended."""

MAX_NAME = 253
MAX_LABEL = 63
MAX_GENERATED_BASE = 58
RANDOM_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
RANDOM_LENGTH = 5
_MAX_REMEMBERED = 320

_LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123 = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORE = rf"{_LABEL_UNDERSCORE}(\.{_LABEL_UNDERSCORE})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"

_label_1123 = re2.compile(_LABEL_1123)
_subdomain_1123 = re2.compile(_SUBDOMAIN_1123)
_subdomain_underscore = re2.compile(_SUBDOMAIN_UNDERSCORE)
_label_1035 = re2.compile(_LABEL_1035)
_label_key = re2.compile(_LABEL_KEY)
_label_value = re2.compile(_LABEL_VALUE)
_config_key = re2.compile(_CONFIG_KEY)
_c_identifier = re2.compile(_C_IDENTIFIER)

_LABEL_1123_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_1123_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
_LABEL_KEY_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_CONFIG_KEY_MESSAGE = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_C_IDENTIFIER_MESSAGE = (
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'"
)


class RandomSource(Protocol):
    """Where generated names take their random part from; `random.Random` and `secrets.SystemRandom` are such."""

    def choice(self, seq: str, /) -> str: ...


def regex_message(message: str, pattern: str, *examples: str) -> str:
    """What is demanded, with examples and the regular expression, as upstream's RegexError words it."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


def _size(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def _remembering(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The check with its last answers kept; they are asked for the same few names again and again."""
    known = lru_cache(maxsize=4096)(lambda value: tuple(check(value)))

    @wraps(check)
    def remembered(value: str) -> list[str]:
        return list(known(value)) if len(value) <= _MAX_REMEMBERED else check(value)

    return remembered


def _subdomain(value: str, unit: str) -> list[str]:
    out = []
    if _size(value) > MAX_NAME:
        out.append(f"must be no more than {MAX_NAME} {unit}")
    if not _subdomain_1123.fullmatch(value):
        out.append(regex_message(_SUBDOMAIN_1123_MESSAGE, _SUBDOMAIN_1123, "example.com"))
    return out


@_remembering
def dns1123_subdomain(value: str) -> list[str]:
    """Lower-case labels joined by dots, 253 bytes at most."""
    return _subdomain(value, "characters")


def dns1123_subdomain_with_underscores(value: str) -> list[str]:
    """What is wrong with a domain that names services, too, as `_http._tcp.example.com`."""
    out = []
    if _size(value) > MAX_NAME:
        out.append(f"must be no more than {MAX_NAME} characters")
    if not _subdomain_underscore.fullmatch(value):
        message = _SUBDOMAIN_1123_MESSAGE.replace("'-' or '.'", "'_', '-' or '.'")
        out.append(regex_message(message, _SUBDOMAIN_UNDERSCORE, "example.com"))
    return out


@_remembering
def dns1123_label(value: str) -> list[str]:
    """One lower-case label, 63 bytes at most."""
    out = []
    if _size(value) > MAX_LABEL:
        out.append(f"must be no more than {MAX_LABEL} characters")
    if not _label_1123.fullmatch(value):
        if _subdomain_1123.fullmatch(value):
            out.append("must not contain dots")
        else:
            out.append(regex_message(_LABEL_1123_MESSAGE, _LABEL_1123, "my-name", "123-abc"))
    return out


def dns1035_label(value: str) -> list[str]:
    """One lower-case label that starts with a letter, 63 bytes at most."""
    out = []
    if _size(value) > MAX_LABEL:
        out.append(f"must be no more than {MAX_LABEL} characters")
    if not _label_1035.fullmatch(value):
        out.append(regex_message(_LABEL_1035_MESSAGE, _LABEL_1035, "my-name", "abc-123"))
    return out


def c_identifier(value: str) -> list[str]:
    """An identifier of C."""
    if _c_identifier.fullmatch(value):
        return []
    return [regex_message(_C_IDENTIFIER_MESSAGE, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


@_remembering
def qualified_name(value: str) -> list[str]:
    """A label key: `name` or `dns.prefix/name`, the name of 63 bytes at most."""
    key_rule = regex_message(_LABEL_KEY_MESSAGE, _LABEL_KEY, "MyName", "my.name", "123-abc")
    parts = value.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {key_rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    out = []
    if len(parts) == 2:
        if not parts[0]:
            out.append("prefix part must be non-empty")
        else:
            out.extend(f"prefix part {message}" for message in _subdomain(parts[0], "bytes"))
    name = parts[-1]
    if not name:
        out.append("name part must be non-empty")
    elif _size(name) > MAX_LABEL:
        out.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not _label_key.fullmatch(name):
        out.append(f"name part {key_rule}")
    return out


@_remembering
def label_value(value: str) -> list[str]:
    """A label's value: empty, or 63 bytes at most that start and end alphanumerically."""
    out = []
    if _size(value) > MAX_LABEL:
        out.append(f"must be no more than {MAX_LABEL} bytes")
    if not _label_value.fullmatch(value):
        out.append(regex_message(_LABEL_VALUE_MESSAGE, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return out


@_remembering
def config_map_key(value: str) -> list[str]:
    """A key of a ConfigMap's or a Secret's data: a file name of 253 bytes at most that is not `..` nor starts so."""
    out = []
    if _size(value) > MAX_NAME:
        out.append(f"must be no more than {MAX_NAME} characters")
    if not _config_key.fullmatch(value):
        out.append(regex_message(_CONFIG_KEY_MESSAGE, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        out.append(f"must not be '{value}'")
    elif value.startswith(".."):
        out.append("must not start with '..'")
    return out


def path_segment_prefix(value: str) -> list[str]:
    """A name's beginning that can stand in a URL path."""
    return [f"may not contain '{bad}'" for bad in ("/", "%") if bad in value]


def path_segment_name(value: str) -> list[str]:
    """A name that can stand in a URL path; RBAC demands no more of its objects."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return path_segment_prefix(value)


def _mask_trailing_dash(value: str) -> str:
    """As upstream: the last two characters give way to one safe one, since a suffix follows."""
    return value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value


def name_is_dns_subdomain(name: str, prefix: bool) -> list[str]:
    """The rule of most kinds."""
    return dns1123_subdomain(_mask_trailing_dash(name) if prefix else name)


def name_is_dns_label(name: str, prefix: bool) -> list[str]:
    """The rule of Namespaces and Services."""
    return dns1123_label(_mask_trailing_dash(name) if prefix else name)


def name_is_dns1035_label(name: str, prefix: bool) -> list[str]:
    """A label that starts with a letter."""
    return dns1035_label(_mask_trailing_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    """The rule of RBAC objects, and the least that is demanded of every object."""
    return path_segment_prefix(name) if prefix else path_segment_name(name)


def generate_name(base: str, source: RandomSource) -> str:
    """`base` (metadata.generateName), cut to 58 characters, and five random ones, without vowels and look-alikes."""
    suffix = "".join(source.choice(RANDOM_ALPHABET) for _ in range(RANDOM_LENGTH))
    return base[:MAX_GENERATED_BASE] + suffix
