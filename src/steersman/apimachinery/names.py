"""The syntax of names: DNS labels and subdomains, label keys and values.

Every function returns what is wrong, in upstream's words; an empty list means the text is fine.

Source: apimachinery `pkg/util/validation/validation.go` and `pkg/api/validate/content`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_KEY_EXAMPLES = ("MyName", "my.name", "123-abc")
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_label = re.compile(_LABEL).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_key = re.compile(_KEY).fullmatch
_value = re.compile(_VALUE).fullmatch


def regex_error(rule: str, pattern: str, examples: Sequence[str] = ()) -> str:
    """`rule (e.g. 'a',  or 'b', regex used for validation is 'pattern')`."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def dns1123_label(text: str) -> list[str]:
    errors = [] if len(text.encode()) <= 63 else ["must be no more than 63 characters"]
    if not _label(text):
        rule = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(regex_error(rule, _LABEL, ("my-name", "123-abc")))
    return errors


def dns1123_subdomain(text: str) -> list[str]:
    errors = [] if len(text.encode()) <= 253 else ["must be no more than 253 characters"]
    if not _subdomain(text):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(regex_error(rule, _SUBDOMAIN, ("example.com",)))
    return errors


def dns1035_label(text: str) -> list[str]:
    errors = [] if len(text.encode()) <= 63 else ["must be no more than 63 characters"]
    if not _label_1035(text):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(regex_error(rule, _LABEL_1035, ("my-name", "abc-123")))
    return errors


def qualified_name(text: str) -> list[str]:
    """A label key: `name` or `example.com/name`."""
    errors = []
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        rule = regex_error(f"a valid label key {_KEY_RULE}", _KEY, _KEY_EXAMPLES)
        return [f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors.extend(f"prefix part {error}" for error in dns1123_subdomain(prefix))
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        errors.append("name part must be no more than 63 bytes")
    if not _key(name):
        errors.append("name part " + regex_error(_KEY_RULE, _KEY, _KEY_EXAMPLES))
    return errors


def label_value(text: str) -> list[str]:
    errors = [] if len(text.encode()) <= 63 else ["must be no more than 63 bytes"]
    if not _value(text):
        rule = f"a valid label must be an empty string or {_KEY_RULE.removeprefix('must ')}"
        errors.append(regex_error(rule, _VALUE, ("MyValue", "my_value", "12345")))
    return errors


def path_segment(text: str) -> list[str]:
    """A name that can be one segment of a URL's path."""
    for forbidden in (".", ".."):
        if text == forbidden:
            return [f"may not be '{forbidden}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in text]
