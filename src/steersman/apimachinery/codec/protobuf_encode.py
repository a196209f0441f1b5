"""Answers in protobuf: objects as JSON has them, encoded by the messages of their kinds.

Fields that are left out in JSON are left out here: a client reads them as the zero value that they stand for.
Source: apimachinery `pkg/runtime/serializer/{protobuf,streaming}`, `pkg/util/framer`.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from steersman.apimachinery.codec.protobuf import MAGIC, ProtobufError, Schema

Object = Mapping[str, Any]
_VARINT, _FIXED64, _BYTES = 0, 1, 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Write = Callable[[Any], bytes]
LIST_META = "apimachinery/pkg/apis/meta/v1.ListMeta"


class Encoder:
    """Encodes objects of the kinds of a schema. Messages are prepared when they are first met."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._writers: dict[str, _Write] = {}

    def knows(self, api_version: str, kind: str) -> bool:
        """Whether objects of a kind can be encoded."""
        return self._message_of(api_version, kind) is not None

    def message(self, api_version: str, kind: str, obj: Object) -> bytes:
        """An object without its envelope. Raises ProtobufError for a kind that has no message."""
        name = self._message_of(api_version, kind)
        if name is None:
            raise ProtobufError(f"no message is known for {api_version}, Kind={kind}")
        return self._writer(name)(obj)

    def encode(self, obj: Object) -> bytes:
        """An object in its envelope."""
        api_version, kind = obj["apiVersion"], obj["kind"]
        return envelop(api_version, kind, self.message(api_version, kind, obj))

    def encode_list(self, api_version: str, kind: str, meta: Object, items: Iterable[bytes]) -> bytes:
        """A list of encoded items in its envelope; all lists have one layout."""
        parts = [_field(1, self._writer(LIST_META)(meta)), *(_field(2, item) for item in items)]
        return envelop(api_version, kind, b"".join(parts))

    def _message_of(self, api_version: str, kind: str) -> str | None:
        group, _, version = api_version.rpartition("/")
        return self._schema.kinds.get(f"{group}/{version}/{kind}")

    def _writer(self, message: str) -> _Write:
        found = self._writers.get(message)
        if found is None:
            found = self._writers[message] = self._made(message)
        return found

    def _made(self, message: str) -> _Write:
        form = self._schema.messages[message][0]
        if special := _SPECIAL.get(form):
            return special
        fields = sorted(self._schema.fields(message).items())
        writers = [(name, self._field_writer(number, kind), kind) for number, (name, kind) in fields]
        if form == "list":
            return writers[0][1]
        if form == "either":
            return self._either(message)

        def encode(value: Object) -> bytes:
            parts = []
            for name, write, _ in writers:
                if not name:
                    parts.append(write(value))
                elif (item := value.get(name)) is not None:
                    parts.append(write(item))
            return b"".join(parts)

        return encode

    def _either(self, message: str) -> _Write:
        """A schema, or something simpler in its place."""
        named = {name: (number, kind) for number, (name, kind) in self._schema.fields(message).items()}
        other = next(name for name in named if name != "schema")
        as_schema, as_other = (self._field_writer(*named[name]) for name in ("schema", other))
        allows = other == "allows"

        def encode(value: Any) -> bytes:
            if isinstance(value, dict):
                return (as_other(True) if allows else b"") + as_schema(value)
            return as_other(value)

        return encode

    def _field_writer(self, number: int, kind: str) -> _Write:
        if kind.startswith("repeated "):
            write = self._field_writer(number, kind[9:])
            return lambda items: b"".join([write(item) for item in items])
        if kind.startswith("map "):
            value_of = self._field_writer(2, kind[4:])
            return lambda items: b"".join(
                [_field(number, _field(1, key.encode()) + value_of(item)) for key, item in items.items()]
            )
        if kind in _SCALARS:
            tag, write_scalar = _tag(number, _SCALARS[kind][0]), _SCALARS[kind][1]
            return lambda value: tag + write_scalar(value)
        # Prepared late, as messages may hold one another.
        tag = _tag(number, _BYTES)

        def write_message(value: Any) -> bytes:
            body = self._writer(kind)(value)
            return b"%b%b%b" % (tag, _varint(len(body)), body)

        return write_message


def envelop(api_version: str, kind: str, message: bytes) -> bytes:
    """A message in the `runtime.Unknown` that a body is."""
    meta = _field(1, api_version.encode()) + _field(2, kind.encode())
    return MAGIC + _field(1, meta) + _field(2, message) + _field(3, b"") + _field(4, b"")


def watch_frame(kind: str, body: bytes) -> bytes:
    """A watch event with an object in its envelope, after its length."""
    event = _field(1, kind.encode()) + _field(2, _field(1, body))
    return struct.pack(">I", len(event)) + event


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _field(number: int, body: bytes) -> bytes:
    return b"%b%b%b" % (_tag(number, _BYTES), _varint(len(body)), body)


def _varint(value: int) -> bytes:
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(value: str) -> bytes:
    body = value.encode("utf-8", "replace")
    return _varint(len(body)) + body


def _bytes(value: str) -> bytes:
    body = base64.b64decode(value)
    return _varint(len(body)) + body


_SCALARS: Mapping[str, tuple[int, _Write]] = {
    "string": (_BYTES, _text),
    "bytes": (_BYTES, _bytes),
    "int32": (_VARINT, _varint),
    "int64": (_VARINT, _varint),
    "bool": (_VARINT, lambda value: b"\x01" if value else b"\x00"),
    "double": (_FIXED64, lambda value: struct.pack("<d", value)),
}


def _moment(text: str) -> bytes:
    since = datetime.fromisoformat(text) - _EPOCH
    seconds = since.days * 86400 + since.seconds
    return _tag(1, _VARINT) + _varint(seconds) + _tag(2, _VARINT) + _varint(since.microseconds * 1000)


def _json(value: Any) -> bytes:
    return _field(1, orjson.dumps(value))


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return _tag(1, _VARINT) + b"\x01" + _tag(2, _VARINT) + b"\x00" + _field(3, value.encode())
    return _tag(1, _VARINT) + b"\x00" + _tag(2, _VARINT) + _varint(value) + _field(3, b"")


_SPECIAL: Mapping[str, _Write] = {
    "time": _moment,
    "microtime": _moment,
    "text": lambda value: _field(1, str(value).encode()),
    "json": _json,
    "intorstring": _int_or_string,
}
