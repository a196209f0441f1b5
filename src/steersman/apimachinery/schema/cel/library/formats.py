"""Named formats of strings.

Source: apiserver `pkg/cel/library/format.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from steersman.apimachinery import names
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.values import NONE, Opaque, Optional
from steersman.apimachinery.schema.formats import string_format
from steersman.apimachinery.schema.urls import UrlError, parse_request_uri

_UUID_SIZE, _DATE_TIME_SIZE, _URI_SIZE, _BASE64_SIZE = 70, 71, 1103, 84
"""Lengths of upstream's patterns, by which it reckons cost."""


@dataclass(frozen=True, slots=True)
class NamedFormat(Opaque):
    """A format; `check` gives what is wrong with a string, `regex_size` goes into the cost."""

    name: str
    check: Callable[[str], list[str]]
    regex_size: int
    cel_type = t.NAMED_FORMAT
    go_type = "*cel.Format"

    def equals(self, other: object) -> bool:
        if not isinstance(other, NamedFormat):
            return Opaque.equals(self, other)
        return self.name == other.name


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except UrlError as error:
        return [str(error)]
    return []


def _schema_format(name: str, message: str) -> Callable[[str], list[str]]:
    check = string_format(name)
    assert check is not None
    return lambda text: [] if check(text) else [message]


_FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", partial(names.name_is_dns_label, prefix=False), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", partial(names.name_is_dns_subdomain, prefix=False), 60),
    "dns1035Label": NamedFormat("DNS1035Label", partial(names.name_is_dns1035_label, prefix=False), 30),
    "qualifiedName": NamedFormat("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", partial(names.name_is_dns_label, prefix=True), 30),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", partial(names.name_is_dns_subdomain, prefix=True), 60
    ),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", partial(names.name_is_dns1035_label, prefix=True), 30),
    "labelValue": NamedFormat("LabelValue", names.label_value, 40),
    "uri": NamedFormat("URI", _uri, _URI_SIZE),
    "uuid": NamedFormat("uuid", _schema_format("uuid", "does not match the UUID format"), _UUID_SIZE),
    "byte": NamedFormat("byte", _schema_format("byte", "invalid base64"), _BASE64_SIZE),
    "date": NamedFormat("date", _schema_format("date", "invalid date"), _DATE_TIME_SIZE),
    "datetime": NamedFormat("datetime", _schema_format("datetime", "invalid datetime"), _DATE_TIME_SIZE),
}


def _constant(value: NamedFormat) -> Function:
    return lambda: value


def _named(name: str) -> Optional:
    known = _FORMATS.get(name)
    return NONE if known is None else Optional(known)


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.check(text)
    return Optional(problems) if problems else NONE


OVERLOADS: dict[str, Function] = {
    **{f"format.{name}": _constant(value) for name, value in _FORMATS.items()},
    "format-named": _named,
    "format-validate": _validate,
}
