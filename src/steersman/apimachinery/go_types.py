"""Decoding JSON values as Go decodes them into the types of the built-in kinds.

A type table says which fields a struct has, in which order, of which types and when they are left out. Decoding a value
gives what Go would marshal again: unknown fields dropped (and listed), zero values left out or filled in, maps sorted,
times, quantities and base64 in canonical form. What does not fit fails with Go's own text.

Source: sigs.k8s.io/json `internal/golang/encoding/json/decode.go`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from steersman.apimachinery.go_values import (
    CUSTOM,
    Convert,
    DecodeError,
    Outcome,
    Place,
    canonical_base64,
    json_kind,
)

_INFINITE = float("inf")
OMIT_EMPTY = 1
OMIT_ZERO = 2
OMIT_NULL = 4  # of a map that is judged by being there: an empty one stays, which Go too has until it marshals it


class Codec:
    """One type: `zero` is what an absent value marshals to, `decode` takes any JSON value but null."""

    zero: Any = None
    plain: type | None = None
    """The Python type whose values are taken as they are, if there is one."""

    def __init__(self, go_name: str) -> None:
        self.go_name = go_name

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        raise NotImplementedError

    def empty(self, value: Any) -> bool:
        """Whether `omitempty` leaves the marshalled value out."""
        return not value

    def refuse(self, value: Any, place: Place | None, out: Outcome) -> Any:
        out.mismatch(json_kind(value), place, self.go_name, "float64" if isinstance(value, float) else "")
        return self.zero


class StringCodec(Codec):
    zero = ""
    plain = str

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        return value if isinstance(value, str) else self.refuse(value, place, out)

    def refuse(self, value: Any, place: Place | None, out: Outcome) -> Any:
        given = "float64" if isinstance(value, float) else ""
        out.mismatch(json_kind(value), place, self.go_name, given, go_kind="string")
        return self.zero


class BoolCodec(Codec):
    zero = False
    plain = bool

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        return value if isinstance(value, bool) else self.refuse(value, place, out)


class IntCodec(Codec):
    zero = 0

    def __init__(self, go_name: str, bits: int) -> None:
        super().__init__(go_name)
        self.limit = 1 << (bits - 1)

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        if type(value) is int and -self.limit <= value < self.limit:
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            out.mismatch(f"number {value!r}", place, self.go_name)
            return 0
        return self.refuse(value, place, out)


class FloatCodec(Codec):
    zero = 0

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return self.refuse(value, place, out)
        number = float(value)
        if abs(number) == _INFINITE:
            out.mismatch(f"number {value!r}", place, self.go_name)
            return 0
        return int(number) if number.is_integer() and abs(number) < 2**53 else number


class BytesCodec(Codec):
    """[]byte: base64 in JSON, or a list of numbers; answered in canonical form."""

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        if isinstance(value, str):
            try:
                return canonical_base64(value)
            except DecodeError as error:
                out.error = out.error or error
                return None
        if isinstance(value, list):
            octets = bytes(self._octet(each, Place(place, at), out) for at, each in enumerate(value))
            return base64.b64encode(octets).decode()
        return self.refuse(value, place, out)

    def _octet(self, value: Any, place: Place, out: Outcome) -> int:
        if value is None:
            return 0
        if type(value) is int and 0 <= value < 256:
            return value
        kind = json_kind(value)
        out.mismatch(f"number {value!r}" if kind == "number" else kind, place, "uint8")
        return 0


class SliceCodec(Codec):
    def __init__(self, go_name: str, item: Codec) -> None:
        super().__init__(go_name)
        self.item = item

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        if not isinstance(value, list):
            return self.refuse(value, place, out)
        if not value and out.drop_empty:
            return None
        item, zero = self.item, self.item.zero
        if item.plain is not None and all(type(each) is item.plain for each in value):
            return list(value)
        return [
            zero if each is None else item.decode(each, Place(place, index), out) for index, each in enumerate(value)
        ]


class MapCodec(Codec):
    def __init__(self, go_name: str, item: Codec) -> None:
        super().__init__(go_name)
        self.item = item

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        if not isinstance(value, dict):
            return self.refuse(value, place, out)
        if not value and out.drop_empty:
            return None
        item, zero = self.item, self.item.zero
        if item.plain is not None and all(type(each) is item.plain for each in value.values()):
            return dict(sorted(value.items()))
        if out.drop_empty and isinstance(item, BytesCodec):
            zero = ""  # a map's value is never absent in protobuf
        decoded = {
            key: zero if each is None else item.decode(each, Place(place, key), out) for key, each in value.items()
        }
        return dict(sorted(decoded.items()))


class PointerCodec(Codec):
    def __init__(self, item: Codec) -> None:
        super().__init__(item.go_name)
        self.item = item
        self.plain = item.plain

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        return self.item.decode(value, place, out)

    def empty(self, value: Any) -> bool:
        return value is None


class Field(NamedTuple):
    name: str
    omission: int
    codec: Codec
    plain: type | None
    step: str
    """The name that errors give it: that of the embedded structs that hold it stands before it, split by "/"."""

    def vanishes(self, value: Any) -> bool:
        """Whether a marshalled value (None: the type's zero) is left out."""
        if not self.omission:
            return False
        if self.omission & OMIT_NULL and value is None:
            return True
        if self.omission & OMIT_ZERO and (value is None or value == self.codec.zero):
            return True
        return bool(self.omission & OMIT_EMPTY) and self.codec.empty(self.codec.zero if value is None else value)


class StructCodec(Codec):
    def __init__(self, go_name: str) -> None:
        super().__init__(go_name)
        self.short_name = go_name.rpartition(".")[2]
        self.fields: dict[str, Field] = {}
        self._zero: dict[str, Any] | None = None
        self._always: frozenset[str] | None = None
        self._order: dict[str, int] = {}

    def fill(self, fields: Sequence[Field]) -> None:
        self.fields = {field.name: field for field in fields}
        self._order = {name: index for index, name in enumerate(self.fields)}

    @property
    def zero(self) -> Any:
        if self._zero is None:
            zeros = {field.name: field.codec.zero for field in self.fields.values() if not field.vanishes(None)}
            self._zero = zeros
        return _copy(self._zero)

    @property
    def always(self) -> frozenset[str]:
        """The fields that are marshalled even when nothing is set."""
        if self._always is None:
            self._always = frozenset(field.name for field in self.fields.values() if not field.vanishes(None))
        return self._always

    def empty(self, value: Any) -> bool:
        return False

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        if not isinstance(value, dict):
            return self.refuse(value, place, out)
        fields, struct = self.fields, self.short_name
        given: dict[str, Any] = {}
        for name in (each for each in fields if each in value) if out.by_field else value:
            each, field = value[name], fields.get(name)
            if field is None:
                out.unknown_field(name, place)
            elif type(each) is field.plain:
                given[name] = each
            elif each is not None:
                given[name] = field.codec.decode(each, Place(place, field.step, struct), out)
        return self._marshalled(given)

    def _marshalled(self, given: dict[str, Any]) -> dict[str, Any]:
        """Decoded fields in the type's order, without those that are left out and with those that never are."""
        fields, found = self.fields, {}
        for name in sorted({*given, *self.always}, key=self._order.__getitem__):
            result, field = given.get(name), fields[name]
            if result is None:
                if name in self.always:
                    found[name] = field.codec.zero
            elif (result and field.plain is not None) or not field.vanishes(result):
                found[name] = result
        return found


def _copy(value: Any) -> Any:
    return {key: _copy(each) for key, each in value.items()} if isinstance(value, dict) else value


class CustomCodec(Codec):
    """A struct with its own UnmarshalJSON; `convert` takes the value and gives what is marshalled."""

    def __init__(self, go_name: str, zero: Any, convert: Convert) -> None:
        super().__init__(go_name)
        self.zero = zero
        self.convert = convert

    def decode(self, value: Any, place: Place | None, out: Outcome) -> Any:
        return self.convert(value, place, out)

    def empty(self, value: Any) -> bool:
        return False


_SCALARS: Mapping[str, Callable[[str], Codec]] = {
    "string": StringCodec,
    "bool": BoolCodec,
    "int32": lambda name: IntCodec(name, 32),
    "int64": lambda name: IntCodec(name, 64),
    "float64": FloatCodec,
}


class TypeTable:
    """Codecs for a table of types, made on first use.

    `types` maps a type's key (import path and name) to a struct's fields `[name, omission, type, embedded?]`, to a
    scalar's name, to a composite in Go's syntax, or to `!Name` for one of the types with their own decoding.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        self.types = types
        self._codecs: dict[str, Codec] = {}

    def codec(self, expression: str) -> Codec:
        """The codec of a type in Go's syntax with import paths; KeyError for a type that the table lacks."""
        found = self._codecs.get(expression)
        return found if found is not None else self._make(expression)

    def decode(
        self, expression: str, value: Any, *, drop_empty: bool = False, by_field: bool = False
    ) -> tuple[Any, list[str]]:
        """The value as Go would marshal it again, and the path of each unknown field, which is dropped.

        `drop_empty` also turns empty lists and maps into null, as protobuf does. `by_field` reads the fields in the
        order of the Go type, and no unknown ones.
        Raises DecodeError for a value that does not fit.
        """
        out = Outcome(drop_empty, by_field)
        codec = self.codec(expression)
        try:
            decoded = codec.zero if value is None else codec.decode(value, None, out)
        except DecodeError as error:
            raise (out.error or error) if by_field else error from None
        if out.error is not None:
            raise out.error
        return decoded, out.unknown

    def _make(self, expression: str) -> Codec:
        codec: Codec
        if expression.startswith("*"):
            codec = PointerCodec(self.codec(expression[1:]))
        elif expression == "[]uint8":
            codec = BytesCodec(expression)
        elif expression.startswith("[]"):
            codec = SliceCodec(go_name(expression), self.codec(expression[2:]))
        elif expression.startswith("map["):
            codec = MapCodec(go_name(expression), self.codec(expression.partition("]")[2]))
        elif expression in _SCALARS:
            codec = _SCALARS[expression](expression)
        else:
            return self._named(expression)
        self._codecs[expression] = codec
        return codec

    def _named(self, key: str) -> Codec:
        definition = self.types[key]
        if isinstance(definition, str):
            codec = self._custom(key, definition[1:]) if definition.startswith("!") else self._renamed(key, definition)
            self._codecs[key] = codec
            return codec
        struct = StructCodec(go_name(key))
        self._codecs[key] = struct
        struct.fill([self._field(*entry) for entry in definition])
        return struct

    def _field(self, name: str, omission: int, expression: str, embedded: str = "") -> Field:
        step = f"{embedded.replace('.', '/')}/{name}" if embedded else name
        codec = self.codec(expression)
        return Field(name, omission, codec, codec.plain, step)

    def _renamed(self, key: str, underlying: str) -> Codec:
        if underlying in _SCALARS:
            return _SCALARS[underlying](go_name(key))
        if underlying.startswith("[]"):
            return SliceCodec(go_name(key), self.codec(underlying[2:]))
        return MapCodec(go_name(key), self.codec(underlying.partition("]")[2]))

    def _custom(self, key: str, name: str) -> Codec:
        if name in CUSTOM:
            zero, convert = CUSTOM[name]
            return CustomCodec(go_name(key), zero, convert)
        schema = key.rpartition(".")[0] + ".JSONSchemaProps"
        zero = False if name == "JSONSchemaPropsOrBool" else None
        return CustomCodec(go_name(key), zero, self._schema_or(name, schema))

    def _schema_or(self, name: str, schema: str) -> Convert:
        """JSON schemas in the places where booleans, lists of schemas or lists of strings may stand too."""
        listed = f"[]{schema}" if name == "JSONSchemaPropsOrArray" else "[]string"

        def convert(value: Any, place: Place | None, out: Outcome) -> Any:
            if isinstance(value, dict):
                return self._nested(schema, value, place, out)
            if name == "JSONSchemaPropsOrBool":
                if isinstance(value, bool):
                    return value
                raise DecodeError("boolean or JSON schema expected")
            if isinstance(value, list) and value:
                return self._nested(listed, value, place, out)
            return None

        return convert

    def _nested(self, expression: str, value: Any, place: Place | None, out: Outcome) -> Any:
        """A decoding of its own: unknown fields go unnoticed, and an error names the struct outside."""
        try:
            return self.decode(expression, value, drop_empty=out.drop_empty)[0]
        except DecodeError as error:
            inner = error.mismatch
            if inner is None or place is None:
                raise
            struct, fields = place.go_fields()
            raise inner._replace(struct=struct, fields=fields + inner.fields).error() from None


def go_name(expression: str) -> str:
    """A type as Go prints it: packages by their last name only."""
    if expression.startswith(("[]", "*")):
        mark = 2 if expression.startswith("[]") else 1
        return expression[:mark] + go_name(expression[mark:])
    if expression.startswith("map["):
        key, _, item = expression[4:].partition("]")
        return f"map[{go_name(key)}]{go_name(item)}"
    return expression.rpartition("/")[2]
