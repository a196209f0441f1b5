"""JSON as the API server reads and writes it.

Objects are written canonically: apiVersion, kind and metadata first, every other key sorted. So equal objects are
equal bytes, and the place of `metadata` is known without decoding.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import re2

from steersman._util.gojson import syntax_error
from steersman._util.gotext import format_json_float

# Fixed patterns: what looks like a number that may not fit 64 bits; what looks like a float as orjson writes it and Go
# does not; what ends a key (and has blanks in it), and what looks like it inside a string. RE2 is the faster engine.
_HUGE = re2.compile(rb"[:,\[ \t\r\n]-?[0-9]{19}")
_FLOAT = re2.compile(rb"(?:^|[:,\[])-?[0-9]+(?:\.0(?:[,\]}]|$)|(?:\.[0-9]+)?e)")
_SPACED_KEY = re2.compile(rb'"[ \t\r\n]+:')
_KEY = re.compile(rb'"[ \t\r\n]*:')
_QUOTED_KEY = re.compile(rb'\\"[ \t\r\n]*:')
_METADATA = b'"metadata":{'
MAX_DEPTH = 240
"""How deep objects and lists may nest (kube-apiserver: 10,000). What is written may nest 254 levels: orjson's limit, of
which field ownership and tables need a few for themselves."""
_MOST_DIGITS = 20  # of an integer of 64 bits, with its sign
_MARGIN = 254 - MAX_DEPTH


class JsonError(ValueError):
    """The text is no JSON; the message is worded as Go's encoding/json words it."""


class NumberError(JsonError):
    """A number fits no float. `value` is all that was read, with an infinite float for the number."""

    def __init__(self, number: str, value: Any) -> None:
        super().__init__(f"json: cannot unmarshal number {number} into Go value of type float64")
        self.value = value


def decode(raw: bytes) -> Any:
    """The value of a JSON text; invalid UTF-8 becomes U+FFFD.

    Numbers are as in Go: one with a fraction or an exponent is a float, and so is what fits no 64-bit integer. Raises
    JsonError, also for a text that nests deeper than MAX_DEPTH.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _decode_as_go(raw)
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        check_depth(value)
    if _HUGE.search(raw):
        value = fit_numbers(value)
    return value


def decode_stored(raw: bytes) -> Any:
    """The value of a JSON text that was written here."""
    value = orjson.loads(raw)
    return fit_numbers(value) if _HUGE.search(raw) else value


def check_depth(value: Any) -> None:
    """Raise JsonError for a value that nests deeper than MAX_DEPTH, or contains itself."""
    for _ in range(_MARGIN):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise JsonError("exceeded max depth") from None


def _decode_as_go(raw: bytes) -> Any:
    """What orjson refuses but Go reads: text that is not UTF-8, halves of surrogate pairs. Raises JsonError."""
    if problem := syntax_error(raw):
        raise JsonError(problem)
    too_great: list[str] = []

    def number(text: str) -> int | float:
        found = json_number(text)
        if abs(found) == float("inf"):
            too_great.append(text)
        return found

    try:
        value = json.loads(raw.decode("utf-8", "replace"), parse_float=number, parse_int=number)
        if too_great:
            raise NumberError(too_great[0], value)
        text = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return orjson.loads(text)
    except (RecursionError, orjson.JSONDecodeError):
        raise JsonError("exceeded max depth") from None


def json_number(text: str) -> int | float:
    """A number as Go reads it."""
    if len(text) <= _MOST_DIGITS and text.lstrip("-").isdigit() and -(2**63) <= (integer := int(text)) < 2**63:
        return integer
    return float(text)


def fit_numbers(value: Any) -> Any:
    """Integers that do not fit 64 bits as floats, in place."""
    if type(value) is int:
        return value if -(2**63) <= value < 2**63 else float(value)
    if type(value) is dict:
        for key, item in value.items():
            if type(item) in (int, dict, list):
                value[key] = fit_numbers(item)
    elif type(value) is list:
        for index, item in enumerate(value):
            if type(item) in (int, dict, list):
                value[index] = fit_numbers(item)
    return value


def duplicate_keys(raw: bytes, value: Any) -> list[str]:
    """Paths of keys that stand twice in one object of `raw`, whose decoded form is `value`."""
    if rb'\\"' not in raw and _written_keys(raw) == _count_keys(value):
        return []
    return repeated(pairs(raw), "")


def pairs(raw: bytes) -> Any:
    """The value of a JSON text that `decode` takes, with Pairs for objects."""
    return json.loads(raw.decode("utf-8", "replace"), object_pairs_hook=Pairs)


def repeated(value: Any, path: str) -> list[str]:
    """Paths of keys that stand twice in one object of a value with Pairs for objects."""
    found: list[str] = []
    _find_duplicates(value, path, found)
    return found


class Pairs(list[tuple[str, Any]]):
    """One JSON object with its keys in order, duplicates included."""


def _find_duplicates(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, Pairs):
        seen: set[str] = set()
        for key, item in value:
            here = f"{path}.{key}" if path else key
            if key in seen:
                found.append(here)
            seen.add(key)
            _find_duplicates(item, here, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _find_duplicates(item, f"{path}[{index}]", found)


def _written_keys(raw: bytes) -> int:
    """How many keys are written in a JSON text without a backslash at the end of a string."""
    if _SPACED_KEY.search(raw):
        return len(_KEY.findall(raw)) - len(_QUOTED_KEY.findall(raw))
    return _ends_of_keys(raw)


def _ends_of_keys(text: bytes) -> int:
    return text.count(b'":') - (text.count(b'\\":') if b"\\" in text else 0)


def _count_keys(value: Any) -> int:
    """How many keys there are in a value: counted in its JSON, which is faster than to walk it.

    Too few if a key ends with a backslash, never too many.
    """
    return _ends_of_keys(orjson.dumps(value))


def identity(value: Any) -> bytes:
    """What is equal for equal values only: it tells 1 from 1.0, which `encode` does not."""
    return _dump(value)


def encode(value: Any) -> bytes:
    """JSON with sorted keys, and floats as Go writes them: without a fraction if they have none."""
    text = _dump(value)
    return _dump(_with_go_floats(value)) if _FLOAT.search(text) else text


def indented(text: bytes) -> bytes:
    """A JSON text that was written here, for people to read: as Go's json.MarshalIndent makes it, with two blanks."""
    value = orjson.loads(text)
    return orjson.dumps(_with_go_floats(value) if _FLOAT.search(text) else value, option=orjson.OPT_INDENT_2)


def encode_object(obj: dict[str, Any]) -> bytes:
    """The canonical bytes of an API object, without its resourceVersion: what the store keeps."""
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: item for key, item in metadata.items() if key != "resourceVersion"}
    rest = {key: item for key, item in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    head = b'{"apiVersion":%b,"kind":%b,"metadata":%b' % (
        orjson.dumps(obj["apiVersion"]),
        orjson.dumps(obj["kind"]),
        _dump(metadata),
    )
    return head + (b"," + encode(rest)[1:] if rest else b"}")


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _with_go_floats(value: Any) -> Any:
    """A copy whose floats are written as Go's encoding/json writes them."""
    if type(value) is float:
        # what is written is read again, by upstream even before it is answered: -0 has no sign then
        return orjson.Fragment(format_json_float(value)) if value else 0
    if type(value) is dict:
        return {key: _with_go_floats(item) for key, item in value.items()}
    if type(value) is list:
        return [_with_go_floats(item) for item in value]
    return value


def with_resource_version(stored: bytes, revision: int) -> bytes:
    """Canonical bytes with `metadata.resourceVersion` put in (not for revision 0): what goes over the wire."""
    if not revision:
        return stored
    at = stored.index(_METADATA) + len(_METADATA)
    return b'%b"resourceVersion":"%d"%b%b' % (stored[:at], revision, b"" if stored[at] == 0x7D else b",", stored[at:])


def copy(value: Any) -> Any:
    """A new tree that shares no containers with the given one."""
    if type(value) is dict:
        return {key: copy(item) if type(item) in (dict, list) else item for key, item in value.items()}
    if type(value) is list:
        return [copy(item) if type(item) in (dict, list) else item for item in value]
    return value
