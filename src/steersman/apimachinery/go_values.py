"""What decoding JSON into Go types comes across: places and errors, and the values with a form of their own.

Source: sigs.k8s.io/json `internal/golang/encoding/json/decode.go` and the `UnmarshalJSON` methods of apimachinery.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from steersman._util.gotext import quote
from steersman.apimachinery import quantity, times
from steersman.apimachinery.errors import BadRequest

MAX_STRICT_ERRORS = 100
_MAX_TIME = 40


class DecodeError(ValueError):
    """The value does not fit the type; the message is Go's. `mismatch` is set when a JSON type was the wrong one."""

    def __init__(self, message: str, mismatch: Mismatch | None = None) -> None:
        super().__init__(message)
        self.mismatch = mismatch


class Mismatch(NamedTuple):
    """Go's UnmarshalTypeError: `what` stood where a `go_type` was due, in `fields` of the innermost `struct`.

    `own_decoder`: found by a type that decodes itself, as a part of it. `given` is what
    stood there in Go, if `what` does not tell; `go_kind` what the type is, if its name does not tell.
    """

    what: str
    struct: str
    fields: tuple[str, ...]
    go_type: str
    own_decoder: bool = False
    given: str = ""
    go_kind: str = ""

    def error(self) -> DecodeError:
        target = f"Go struct field {self.struct}.{'.'.join(self.fields)}" if self.struct else "Go value"
        return DecodeError(f"json: cannot unmarshal {self.what} into {target} of type {self.go_type}", self)


class Place(NamedTuple):
    """Where in the value we are: a struct's field, a map's key ("" struct) or a list's index (an int)."""

    parent: Place | None
    step: str | int
    struct: str = ""

    def strict_path(self) -> str:
        """As warnings name it: `spec.containers[0].image`."""
        steps: list[str] = []
        place: Place | None = self
        while place is not None:
            if isinstance(place.step, int):
                steps.append(f"[{place.step}]")
            else:
                text = place.step.rpartition("/")[2] if place.struct else place.step
                steps.append(f".{text}" if place.parent else text)
            place = place.parent
        return "".join(reversed(steps))

    def go_fields(self) -> tuple[str, tuple[str, ...]]:
        """As type errors name it: the innermost struct, and the fields that led here (no keys, no indices)."""
        struct = ""
        fields: list[str] = []
        place: Place | None = self
        while place is not None:
            if place.struct:
                struct = struct or place.struct
                fields.append(str(place.step).replace("/", "."))
            place = place.parent
        return struct, tuple(reversed(fields))


class Outcome:
    """What one decoding came across: the first error that does not stop it, and unknown fields."""

    __slots__ = ("by_field", "drop_empty", "error", "unknown")

    def __init__(self, drop_empty: bool = False, by_field: bool = False) -> None:
        self.error: DecodeError | None = None
        self.unknown: list[str] = []
        self.drop_empty = drop_empty
        self.by_field = by_field

    def mismatch(self, what: str, place: Place | None, go_type: str, given: str = "", go_kind: str = "") -> None:
        if self.error is None:
            self.error = mismatch(what, place, go_type, given=given, go_kind=go_kind)

    def unknown_field(self, name: str, place: Place | None) -> None:
        path = f"{place.strict_path()}.{name}" if place else name
        if len(self.unknown) < MAX_STRICT_ERRORS and path not in self.unknown:
            self.unknown.append(path)


def mismatch(
    what: str, place: Place | None, go_type: str, *, own_decoder: bool = False, given: str = "", go_kind: str = ""
) -> DecodeError:
    """Go's UnmarshalTypeError."""
    struct, fields = place.go_fields() if place else ("", ())
    return Mismatch(what, struct, fields, go_type, own_decoder, given, go_kind).error()


def cannot_be_handled(kind: str, version: str, why: str, *, given: str = "") -> BadRequest:
    """400 for a body that does not decode into its kind; `given` is the kind that it claims to have."""
    return BadRequest(f"{given or kind} in version {quote(version)} cannot be handled as a {kind}: {why}")


def json_kind(value: Any) -> str:
    """What Go calls the JSON value in its errors."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "array" if isinstance(value, list) else "object"


Convert = Callable[[Any, Place | None, Outcome], Any]
"""Takes a JSON value that is not null, gives what is marshalled; raises DecodeError."""


def canonical_base64(text: str) -> str:
    """The standard encoding of what `text` holds; line breaks are ignored, as Go ignores them."""
    if len(text) % 4 == 0 and not text.endswith("==="):
        try:
            return base64.b64encode(binascii.a2b_base64(text, strict_mode=True)).decode()
        except (binascii.Error, ValueError):
            pass
    return base64.b64encode(decode_base64(text)).decode()


def decode_base64(text: str) -> bytes:
    """What `text` holds. Line breaks are ignored; DecodeError names the first byte that does not fit, as Go does."""
    raw = text.encode("utf-8", "surrogatepass")
    kept = [(offset, byte) for offset, byte in enumerate(raw) if byte not in b"\r\n"]
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for position, (offset, byte) in enumerate(kept):
        if byte in alphabet:
            continue
        if byte != ord("=") or position % 4 < 2:
            raise DecodeError(f"illegal base64 data at input byte {offset}")
        if position % 4 == 2:
            if position + 1 >= len(kept):
                raise DecodeError(f"illegal base64 data at input byte {len(raw)}")
            if kept[position + 1][1] != ord("="):
                raise DecodeError(f"illegal base64 data at input byte {kept[position + 1][0] - 1}")
            position += 1
        if position + 1 < len(kept):
            raise DecodeError(f"illegal base64 data at input byte {kept[position + 1][0]}")
        break
    if len(kept) % 4:
        raise DecodeError(f"illegal base64 data at input byte {kept[len(kept) // 4 * 4][0]}")
    return base64.b64decode(bytes(byte for _, byte in kept))


def _time(parse: Callable[[str], Any], form: Callable[[Any], str]) -> Convert:
    remembered = lru_cache(maxsize=1024)(lambda text: form(parse(text)))

    def convert(value: Any, place: Place | None, out: Outcome) -> Any:
        if not isinstance(value, str):
            raise mismatch(json_kind(value), place, "string", own_decoder=True)
        try:
            return remembered(value) if len(value) <= _MAX_TIME else form(parse(value))
        except times.TimeError as error:
            raise DecodeError(str(error)) from None

    return convert


def _quantity(value: Any, place: Place | None, out: Outcome) -> Any:
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        text = "x"
    else:
        text = repr(value)
    try:
        return quantity.canonical(text)
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _int_or_string(value: Any, place: Place | None, out: Outcome) -> Any:
    if isinstance(value, str):
        return value
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return value
    what = json_kind(value)
    raise mismatch(f"number {value!r}" if what == "number" else what, place, "int32", own_decoder=True)


def _raw(value: Any, place: Place | None, out: Outcome) -> Any:
    return value


CUSTOM: Mapping[str, tuple[Any, Convert]] = {
    "Time": (None, _time(times.parse_time, times.format_time)),
    "MicroTime": (None, _time(times.parse_micro_time, times.format_micro_time)),
    "Quantity": ("0", _quantity),
    "IntOrString": (0, _int_or_string),
    "RawExtension": (None, _raw),
    "FieldsV1": (None, _raw),
    "JSON": (None, _raw),
}
