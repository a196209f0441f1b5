"""A store that others write, too: what they have written is read as if it had been written here.

kube-apiserver keeps custom resources as JSON of Go's making, and built-in kinds as protobuf.
Source: apimachinery `pkg/runtime/serializer/{json/json.go,protobuf/protobuf.go}`.
"""

from __future__ import annotations

import logging

import orjson

from steersman.api import defaults
from steersman.api.apiextensions import v1beta1
from steersman.api.kinds import BuiltinKind, builtin_kind, protobuf_schema
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import protobuf
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.gvk import split_api_version
from steersman.apiserver.strategy import Object
from steersman.apiserver.wrapped_stores import TransformedStore

log = logging.getLogger("steersman.apiserver.store")
_OWN_START = b'{"apiVersion":"'
_ENDS_LINE = b"\n"


class UnreadableValue(ValueError):
    """What is stored is no object. `unknown`: it is something of a kind that is not served here."""

    def __init__(self, why: str, *, unknown: bool = False) -> None:
        super().__init__(why)
        self.unknown = unknown


def canonical(value: bytes) -> bytes:
    """An object's bytes as they are written here. Raises UnreadableValue."""
    if value.startswith(_OWN_START) and not value.endswith(_ENDS_LINE):
        return value
    try:
        obj = _protobuf(value) if value.startswith(protobuf.MAGIC) else codec.decode(value)
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
            raise UnreadableValue("it is no object with metadata")
        if obj.get("apiVersion") == v1beta1.API_VERSION:
            obj = v1beta1.to_v1(obj)
        kind = _kind(obj)
        return codec.encode_object(obj if kind is None else _complete(kind, obj))
    except protobuf.UnknownKindError as error:
        raise UnreadableValue(f"the kind {error} is not known", unknown=True) from None
    except (protobuf.ProtobufError, codec.JsonError, orjson.JSONEncodeError, ApiError, KeyError, TypeError) as error:
        raise UnreadableValue(str(error)) from None


def _complete(kind: BuiltinKind, obj: Object) -> Object:
    """With what upstream fills in when it reads what is stored."""
    found, fill = kind.decode(obj)[0], defaults.filler(kind.type)
    return kind.stored_form(found if fill is None else fill(found))


def _protobuf(value: bytes) -> Object:
    return protobuf.decode(protobuf.envelope(value), protobuf_schema())


def _kind(obj: Object) -> BuiltinKind | None:
    group, version = split_api_version(str(obj["apiVersion"]))
    try:
        return builtin_kind(group, version, str(obj["kind"]))
    except KeyError:
        return None


class TranslatedStore(TransformedStore):
    """A store through which every value looks as if it had been written here."""

    def _read(self, key: bytes, value: bytes, revision: int) -> bytes | None:
        try:
            return canonical(value)
        except UnreadableValue as error:
            log.log(
                logging.DEBUG if error.unknown else logging.WARNING,
                "what is stored cannot be read, and is left out",
                extra={"key": key.decode(errors="replace"), "revision": revision, "error": str(error)},
            )
            return None
