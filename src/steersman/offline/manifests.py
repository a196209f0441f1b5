"""From a text to the objects in it: documents of YAML or JSON, and the items of lists."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from steersman.apimachinery.codec import json as json_codec
from steersman.apimachinery.codec import yaml as yaml_codec
from steersman.offline.places import line_of, unhoisted
from steersman.offline.sources import Source

# What kubectl and every YAML reader take for the end of a document, wherever it stands.
_SEPARATOR = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NO_SPACE = re.compile(r"\S")
_BOM = b"\xef\xbb\xbf"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that stands twice: where, and how the server words it."""

    line: int
    field: str
    message: str


@dataclass(slots=True)
class Manifest:
    """An object as it stands in a text. `document` counts from 0; `item` is its index if it stands in a list.

    `obj` has apiVersion and kind as texts. `line_of` gives the line of a field by its path, "" for the object itself.
    """

    source: str
    document: int
    item: int | None
    obj: Object
    line_of: Callable[[str], int]
    repeated: list[Repeated] = field(default_factory=list)

    @property
    def api_version(self) -> str:
        return str(self.obj["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.obj["kind"])

    @property
    def name(self) -> str:
        return self._meta("name") or self._meta("generateName")

    @property
    def namespace(self) -> str:
        return self._meta("namespace")

    @property
    def line(self) -> int:
        return self.line_of("")

    def _meta(self, key: str) -> str:
        meta = self.obj.get("metadata")
        value = meta.get(key) if isinstance(meta, dict) else None
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A document, or an item of a list, that is no object of the API: why, and in which line."""

    source: str
    document: int
    item: int | None
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class _Broken:
    """A document that cannot be read."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class _Text:
    """A document as it was read. `line_of` as in a manifest."""

    value: Any
    line_of: Callable[[str], int]
    repeated: list[Repeated]


def read_manifests(source: Source) -> Iterator[Manifest | Unusable]:
    """All objects of a text, in order. A document that cannot be read does not hide those after it."""
    text = source.text.removeprefix(_BOM)
    read = _json_documents if text.lstrip()[:1] == b"{" else _yaml_documents
    for index, found in enumerate(read(text)):
        if isinstance(found, _Broken):
            yield Unusable(source.name, index, None, found.line, found.message)
        else:
            yield from _objects(source.name, index, found)


def _yaml_documents(text: bytes) -> Iterator[_Text | _Broken]:
    """Documents that hold something. They are cut apart before they are read: a broken one does not hide the next."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    before = 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        try:
            for document in yaml_codec.decode_documents(part):
                if document.value is not None:
                    yield _of_yaml(document, before)
        except yaml_codec.YamlError as error:
            yield _Broken(before + (error.line or 1), f"yaml: {error.problem}")
        before += part.count(b"\n")


def _of_yaml(document: yaml_codec.Document, before: int) -> _Text:
    repeated = [Repeated(line + before, "", f'key "{key}" already set in map') for line, key in document.duplicates]
    return _Text(document.value, lambda path: line_of(document.node, path) + before, repeated)


def _json_documents(text: bytes) -> Iterator[_Text | _Broken]:
    """JSON values one after another; a text that only begins like JSON is YAML."""
    before = 0
    for part, whole in _json_parts(text):
        if not whole and not before and _is_yaml(text):
            yield from _yaml_documents(text)
            return
        try:
            value = json_codec.decode(part)
            repeated = json_codec.duplicate_keys(part, value)
        except json_codec.JsonError as error:
            yield _Broken(before + _line_of_error(part), f"json: {error}")
            return
        yield _of_json(part, value, repeated, before)
        before += part.count(b"\n")


def _json_parts(text: bytes) -> Iterator[tuple[bytes, bool]]:
    """The text cut after each JSON value, and whether a part holds one: the last may be what no parser reads."""
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        yield text, False
        return
    parse, start = json.JSONDecoder().raw_decode, 0
    while match := _NO_SPACE.search(decoded, start):
        begin = match.start()
        try:
            _, end = parse(decoded, begin)
        except (ValueError, RecursionError):
            yield decoded[start:].encode(), False
            return
        yield decoded[start:end].encode(), True
        start = end


def _is_yaml(text: bytes) -> bool:
    """Whether a text that is no JSON is YAML in braces, such as `{a: b}` or one with more documents."""
    if _SEPARATOR.search(text):
        return True
    try:
        return any(yaml_codec.decode_documents(text))
    except yaml_codec.YamlError:
        return False


def _of_json(part: bytes, value: Any, paths: list[str], before: int) -> _Text:
    nodes: list[Any] = []

    def line(path: str) -> int:
        if not nodes:  # JSON is YAML, but for a few escapes: lines are looked up only for what is reported
            try:
                nodes.append(next(yaml_codec.decode_documents(part)).node)
            except (yaml_codec.YamlError, StopIteration):
                nodes.append(None)
        if nodes[0] is None:
            return before + 1 + part[: len(part) - len(part.lstrip())].count(b"\n")
        return line_of(nodes[0], path) + before

    repeated = [Repeated(line(path), path, f'duplicate field "{path}"') for path in paths]
    return _Text(value, line, repeated)


def _line_of_error(text: bytes) -> int:
    try:
        json.loads(text.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error.lineno
    except (ValueError, RecursionError):
        return 1
    return 1


def _objects(source: str, index: int, text: _Text) -> Iterator[Manifest | Unusable]:
    value = text.value
    if not isinstance(value, dict):
        yield Unusable(source, index, None, text.line_of(""), "the document is not an object")
        return
    if not _is_list(value):
        yield _object(source, index, None, value, text.line_of, text.repeated)
        return
    repeated = _by_item(text, len(value["items"])) if text.repeated else {}
    for position, item in enumerate(value["items"]):
        yield _item(source, index, position, item, value, text.line_of, repeated.get(position, []))


def _by_item(text: _Text, count: int) -> dict[int, list[Repeated]]:
    """The keys that stand twice by the item that they stand in; those before the first are told of that."""
    lines = [text.line_of(f"items[{position}]") for position in range(count)]
    found: dict[int, list[Repeated]] = {}
    for each in text.repeated:
        found.setdefault(max(bisect_right(lines, each.line) - 1, 0), []).append(each)
    return found


def _is_list(value: Object) -> bool:
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list)


def _item(
    source: str,
    index: int,
    position: int,
    item: Any,
    whole: Object,
    line: Callable[[str], int],
    repeated: list[Repeated],
) -> Manifest | Unusable:
    prefix = f"items[{position}]"

    def line_in_item(path: str) -> int:
        return line(f"{prefix}.{path.lstrip('.')}" if path else prefix)

    if not isinstance(item, dict):
        return Unusable(source, index, position, line_in_item(""), "the item is not an object")
    if whole["kind"] != "List" and not item.get("kind") and not item.get("apiVersion"):
        item = {**item, "apiVersion": whole.get("apiVersion"), "kind": whole["kind"].removesuffix("List")}
    return _object(source, index, position, item, line_in_item, repeated)


def _object(
    source: str, index: int, item: int | None, obj: Object, line: Callable[[str], int], repeated: list[Repeated]
) -> Manifest | Unusable:
    missing = [key for key in ("apiVersion", "kind") if not obj.get(key)]
    if missing:
        return Unusable(source, index, item, line(""), ", ".join(f"{key} not set" for key in missing))
    wrong = [key for key in ("apiVersion", "kind") if not isinstance(obj[key], str)]
    if wrong:
        return Unusable(source, index, item, line(wrong[0]), f"{wrong[0]} is not a string")
    if obj["kind"] != "CustomResourceDefinition":
        return Manifest(source, index, item, obj, line, repeated)
    return Manifest(source, index, item, obj, lambda path: line(unhoisted(path)), repeated)
