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

# Fixed patterns that match in linear time: what looks like a number with a fraction, and what ends a key.
_FLOAT = re.compile(rb"[:,\[ \t\r\n]-?[0-9]+[.eE]")
_KEY = re.compile(rb'(?<!\\)(?:\\\\)*"[ \t\r\n]*:')
_METADATA = b'"metadata":{'
MAX_DEPTH = 10_000


class JsonError(ValueError):
    """The text is no JSON; the message is worded as Go's encoding/json words it."""


def decode(raw: bytes) -> Any:
    """The value of a JSON text; floats without a fraction become integers. Raises JsonError."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise JsonError(syntax_error(raw)) from None
    if _FLOAT.search(raw):
        value = normalise_numbers(value)
    return value


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
    if len(_KEY.findall(raw)) == _count_keys(value):
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
