"""JSON as the API server reads and writes it.

Objects are written canonically: apiVersion, kind and metadata first, every other key sorted. So equal objects are
equal bytes, and the place of `metadata` is known without decoding.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from steersman._util.gojson import syntax_error

# Fixed patterns that match in linear time: what looks like a number with a fraction; what ends a key, and what looks
# like it inside a string.
_FLOAT = re.compile(rb"[:,\[ \t\r\n]-?[0-9]+[.eE]")
_KEY = re.compile(rb'"[ \t\r\n]*:')
_QUOTED_KEY = re.compile(rb'\\"[ \t\r\n]*:')
_METADATA = b'"metadata":{'
MAX_DEPTH = 240
"""How deep objects and lists may nest (kube-apiserver: 10,000). What is written may nest 254 levels: orjson's limit, of
which field ownership and tables need a few for themselves."""
_MARGIN = 254 - MAX_DEPTH


class JsonError(ValueError):
    """The text is no JSON; the message is worded as Go's encoding/json words it."""


def decode(raw: bytes) -> Any:
    """The value of a JSON text; floats without a fraction become integers, as invalid UTF-8 becomes U+FFFD.

    Raises JsonError, also for a text that nests deeper than MAX_DEPTH.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _decode_as_go(raw)
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        check_depth(value)
    if _FLOAT.search(raw):
        value = normalise_numbers(value)
    return value


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
    try:
        value = json.loads(raw.decode("utf-8", "replace"), parse_float=_float, parse_int=_float)
        text = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return orjson.loads(text)
    except (RecursionError, orjson.JSONDecodeError):
        raise JsonError("exceeded max depth") from None


def _float(text: str) -> int | float:
    """A number, as an integer when it fits one."""
    number = float(text)
    if abs(number) == float("inf"):
        raise JsonError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return int(text) if text.lstrip("-").isdigit() and -(2**63) <= number < 2**63 else number


def normalise_numbers(value: Any) -> Any:
    """Floats without a fraction as integers, in place: Go writes 1.0 as 1 and reads it back as an integer."""
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    if type(value) is dict:
        for key, item in value.items():
            if type(item) in (float, dict, list):
                value[key] = normalise_numbers(item)
    elif type(value) is list:
        for index, item in enumerate(value):
            if type(item) in (float, dict, list):
                value[index] = normalise_numbers(item)
    return value


def duplicate_keys(raw: bytes, value: Any) -> list[str]:
    """Paths of keys that stand twice in one object of `raw`, whose decoded form is `value`."""
    if rb'\\"' not in raw and len(_KEY.findall(raw)) - len(_QUOTED_KEY.findall(raw)) == _count_keys(value):
        return []
    found: list[str] = []
    pairs = json.loads(raw, object_pairs_hook=_Pairs)
    _find_duplicates(pairs, "", found)
    return found


class _Pairs(list[tuple[str, Any]]):
    """One JSON object with its keys in order, duplicates included."""


def _find_duplicates(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
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


def _count_keys(value: Any) -> int:
    if type(value) is dict:
        count = len(value)
        for item in value.values():
            if type(item) in (dict, list):
                count += _count_keys(item)
        return count
    count = 0
    for item in value if type(value) is list else ():
        if type(item) in (dict, list):
            count += _count_keys(item)
    return count


def encode(value: Any) -> bytes:
    """JSON with sorted keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def encode_object(obj: dict[str, Any]) -> bytes:
    """The canonical bytes of an API object, without its resourceVersion: what the store keeps."""
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: item for key, item in metadata.items() if key != "resourceVersion"}
    rest = {key: item for key, item in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    head = b'{"apiVersion":%b,"kind":%b,"metadata":%b' % (
        orjson.dumps(obj["apiVersion"]),
        orjson.dumps(obj["kind"]),
        orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS),
    )
    return head + (b"," + orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)[1:] if rest else b"}")


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
