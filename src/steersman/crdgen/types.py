"""The schemas of Python's and pydantic's plain types."""

from __future__ import annotations

import enum
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any, Literal, get_args
from uuid import UUID

import pydantic
from pydantic.networks import UrlConstraints
from pydantic.types import Base64Encoder, EncodedBytes

from steersman.crdgen.constraints import url_keywords
from steersman.crdgen.errors import SchemaError
from steersman.crdgen.markers import Node

INT64: Node = {"type": "integer", "format": "int64"}

_PLAIN: dict[Any, Node] = {
    bool: {"type": "boolean"},
    int: INT64,
    float: {"type": "number"},
    str: {"type": "string"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
    IPv4Address: {"type": "string", "format": "ipv4"},
    IPv6Address: {"type": "string", "format": "ipv6"},
    IPv4Network: {"type": "string", "format": "cidr", "pattern": r"\."},
    IPv6Network: {"type": "string", "format": "cidr", "pattern": ":"},
    pydantic.IPvAnyAddress: {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    pydantic.IPvAnyNetwork: {"type": "string", "format": "cidr"},
    pydantic.SecretStr: {"type": "string", "format": "password"},
    pydantic.EmailStr: {"type": "string", "format": "email"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
    pydantic.JsonValue: {"x-kubernetes-preserve-unknown-fields": True},
}

_ADVICE: dict[Any, str] = {
    timedelta: "pydantic writes it as ISO 8601, which the server does not read: use steersman.Duration",
    Decimal: "use steersman.Quantity, or str with a pattern",
    bytes: "JSON has no bytes: use pydantic.Base64Bytes",
    time: "there is no such format: use str with a pattern",
    complex: "JSON has no complex numbers",
    object: "use Any, which keeps what there is",
}


def plain(kind: Any, where: str) -> Node | None:
    """A new schema of a type that has no parts; None for other types. Raises SchemaError for one that cannot be."""
    try:
        known = _PLAIN.get(kind)
    except TypeError:
        return None
    if known is not None:
        return {**known}
    if kind in _ADVICE:
        raise SchemaError(where, f"{kind.__name__} cannot be said in a schema: {_ADVICE[kind]}")
    if not isinstance(kind, type):
        return None
    if issubclass(kind, enum.Flag):
        raise SchemaError(where, f"{kind.__name__} has sums of its values, too: use int, or a set of an Enum")
    if issubclass(kind, enum.Enum):
        return enumeration([each.value for each in kind], where)
    if issubclass(kind, PurePath):
        return {"type": "string"}
    constraints = getattr(kind, "_constraints", None)
    if isinstance(constraints, UrlConstraints):
        return {"type": "string", "format": "uri", **url_keywords(constraints)}
    for base in (str, int, float):
        if issubclass(kind, base):
            raise SchemaError(where, f"{kind.__name__} is a {base.__name__} of its own: use {base.__name__}")
    return None


def is_base64(metadata: list[Any]) -> bool:
    """Whether bytes are written as base64, as `pydantic.Base64Bytes` says."""
    return any(isinstance(each, EncodedBytes) and each.encoder is Base64Encoder for each in metadata)


def literal(kind: Any, where: str) -> Node:
    """The schema of a Literal; None among its values makes it nullable."""
    values = [each.value if isinstance(each, enum.Enum) else each for each in _values(kind)]
    found = enumeration([each for each in values if each is not None], where)
    return found | ({"nullable": True} if None in values else {})


def _values(kind: Any) -> list[Any]:
    return [
        value
        for each in get_args(kind)
        for value in (_values(each) if getattr(each, "__origin__", None) is Literal else [each])
    ]


def enumeration(values: list[Any], where: str) -> Node:
    """The schema of some values of one type."""
    types = {
        type(value) if not isinstance(value, str | int) or isinstance(value, bool) else _base(value) for value in values
    }
    if types == {str}:
        return {"type": "string", "enum": [str(each) for each in values]}
    if types == {int}:
        return {"type": "integer", "format": "int64", "enum": [int(each) for each in values]}
    if types == {bool}:
        return {"type": "boolean", "enum": values}
    if types == {float}:
        return {"type": "number", "enum": values}
    names = ", ".join(sorted(each.__name__ for each in types)) or "nothing"
    raise SchemaError(where, f"the values of an enumeration are all texts or all numbers, not {names}")


def _base(value: Any) -> type:
    return str if isinstance(value, str) else int
