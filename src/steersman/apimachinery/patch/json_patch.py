"""JSON patch (RFC 6902), as kube-apiserver applies it: with the habits of the library that it uses.

What differs from the RFC: `replace` of an absent object member adds it, `test` of an absent member against null
holds, `copy` of an absent member adds null, negative indexes count from the end, and the part of a path before its
first slash is not looked at.

Source: apiserver `endpoints/handlers/patch.go` (applyJSPatch), evanphx/json-patch v4 `patch.go`.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import orjson

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman._util.lazily import lazily
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import spelled
from steersman.apimachinery.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge

MEDIA_TYPE = "application/json-patch+json"
MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""How much JSON the `copy` operations of one patch may add (kube-apiserver's JSONPatchMaxCopyBytes)."""

Operation: TypeAlias = dict[str, Any]
_KINDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
# What may be written in more than one way: a number with a fraction, an exponent or a sign, a text with characters that
# can be escaped.
_SPELLING = lazily(re.compile, rb"[:,\[ \t\r\n]-?[0-9]+[.eE]|-0|[\\<>&]|\xe2\x80[\xa8\xa9]")
_TEXT_FIELDS = ("op", "path", "from")
_FIELDS = frozenset({*_TEXT_FIELDS, "value"})


class PatchFailed(Exception):
    """An operation that does not apply; str() says why. The API's answer does not repeat it."""


class ConditionFailed(PatchFailed):
    """A `test` operation found another value."""


def apply(
    document: Any, patch: Any, *, raw: bytes = b"", lenient: bool = False, most: int | None = MAX_OPERATIONS
) -> Any:
    """The document after all operations of the patch.

    Takes decoded JSON and changes neither argument: the result shares with the document all that no operation
    touched. `raw` is the text of the patch, for `test` compares texts: a value must be written as Go writes it.
    `lenient` is fieldValidation=Ignore, which leaves the patch to a decoder of other words. `most` is how many
    operations there may be; None: any number. Raises BadRequest when the patch is no list of operations,
    RequestEntityTooLarge for too many of them, and Invalid, 422 with empty details, when one of them fails; the
    PatchFailed that tells why is its `__cause__`.
    """
    operations = decode(patch, lenient=lenient, most=most)
    spells = _SPELLING.search(raw) and any(operation.get("op") == "test" for operation in operations)
    try:
        if spells:
            operations = decode(spelled.decode(raw), lenient=lenient)
        patched = _Patcher(document).run(operations)
        codec.check_depth(patched if not spells else spelled.plain(patched))
        return spelled.plain(patched) if spells else patched
    except (PatchFailed, codec.JsonError) as err:
        raise Invalid("the server rejected our request due to an error in our request", details={}) from err


def decode(patch: Any, *, lenient: bool = False, most: int | None = MAX_OPERATIONS) -> list[Operation]:
    """The operations of a patch, checked as far as upstream's decoder does."""
    operations = _decode_leniently(patch) if lenient else _decode(patch)
    if most is not None and len(operations) > most:
        raise RequestEntityTooLarge(
            f"Request entity too large: The allowed maximum operations in a JSON patch is {most}, got {len(operations)}"
        )
    return operations


def _decode(patch: Any) -> list[Operation]:
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _undecodable(patch, "[]handlers.jsonPatchOp")
    for operation in patch:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
        for name in _TEXT_FIELDS:
            text = operation.get(name)
            if text is not None and not isinstance(text, str):
                raise _undecodable(text, "string", f"Go struct field jsonPatchOp.{name}")
    return [operation or {} for operation in patch]


def _decode_leniently(patch: Any) -> list[Operation]:
    if not isinstance(patch, list | None):
        raise _undecodable(patch, "jsonpatch.Patch", told="")
    for operation in patch or ():
        if not isinstance(operation, dict | None):
            raise _undecodable(operation, "jsonpatch.Operation", told="")
    return [operation or {} for operation in patch or ()]


def problems(patch: Any) -> list[str]:
    """What strict decoding has against a patch as `codec.pairs` gives it: unknown members, and repeated ones."""
    found: list[str] = []
    for position, operation in enumerate(patch if isinstance(patch, list) else ()):
        seen: set[str] = set()
        for name, value in operation if isinstance(operation, codec.Pairs) else ():
            path = f"[{position}].{name}"
            if name not in _FIELDS:
                found.append(f"json patch unknown field {quote(path)}")
            elif name in seen:
                found.append(f"json patch duplicate field {quote(path)}")
            seen.add(name)
            found += [f"json patch duplicate field {quote(each)}" for each in codec.repeated(value, path)]
    return found


def _undecodable(
    value: Any, go_type: str, target: str = "Go value", *, told: str = "error decoding patch: "
) -> ApiError:
    kind = _KINDS[type(value)]
    return BadRequest(f"{told}json: cannot unmarshal {kind} into {target} of type {go_type}")


@dataclass(slots=True)
class _Place:
    """Where a path leads: a container that this patch owns and may change, and the key in it."""

    container: dict[str, Any] | list[Any]
    key: str


class _Patcher:
    """Runs operations on a document, copying each container once before its first change."""

    __slots__ = ("copied", "document", "owned")

    def __init__(self, document: Any) -> None:
        self.document = document
        self.owned: dict[int, Any] = {}
        self.copied = 0

    def run(self, operations: list[Operation]) -> Any:
        for operation in operations:
            op = operation.get("op")
            kind = "unknown" if op is None else op
            method = _METHODS.get(kind) if isinstance(kind, str) else None
            if method is None:
                raise PatchFailed(f"Unexpected kind: {kind}")
            method(self, operation)
        self.sort()
        return self.document

    def sort(self) -> None:
        """Put the fields of what was touched in order, as Go writes a map: errors tell the first of two."""
        for container in self.owned.values():
            if isinstance(container, dict):
                items = sorted(container.items())
                container.clear()
                container.update(items)

    def add(self, operation: Operation) -> None:
        path = _text(operation, "path", "add operation failed to decode path: missing value")
        place = self.find(path)
        if place is None:
            raise PatchFailed(f"add operation does not apply: doc is missing path: {quote(path)}: missing value")
        self.insert(place, operation.get("value"), f"error in add for path: '{path}': ")

    def remove(self, operation: Operation) -> None:
        path = _text(operation, "path", "remove operation failed to decode path: missing value")
        place = self.find(path)
        if place is None:
            raise PatchFailed(f"remove operation does not apply: doc is missing path: {quote(path)}: missing value")
        _delete(place, f"error in remove for path: '{path}': ")

    def replace(self, operation: Operation) -> None:
        path = _text(
            operation, "path", "replace operation failed to decode path: operation missing path field: missing value"
        )
        value = operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchFailed("replace operation value must be object or array: %!w(<nil>)")
            self.document = value
            return
        place = self.find(path)
        if place is None:
            raise PatchFailed(f"replace operation does not apply: doc is missing path: {path}: missing value")
        if isinstance(place.container, dict):
            place.container[place.key] = value
            return
        try:
            position = _existing(place.container, place.key)
        except PatchFailed as err:
            raise PatchFailed(f"replace operation does not apply: doc is missing key: {path}: missing value") from err
        place.container[position] = value

    def move(self, operation: Operation) -> None:
        missing = "move operation failed to decode from: operation, missing from field: missing value"
        source = _text(operation, "from", missing)
        origin = self.find(source)
        if origin is None:
            raise PatchFailed(f"move operation does not apply: doc is missing from path: {source}: missing value")
        value = _get(origin, f"error in move for path: '{origin.key}': ")
        _delete(origin, f"error in move for path: '{origin.key}': ")
        missing = "move operation failed to decode path: operation missing path field: missing value"
        path = _text(operation, "path", missing)
        place = self.find(path)
        if place is None:
            raise PatchFailed(f"move operation does not apply: doc is missing destination path: {path}: missing value")
        self.insert(place, value, f"error in move for path: '{path}': ")

    def copy(self, operation: Operation) -> None:
        missing = "copy operation failed to decode from: operation, missing from field: missing value"
        source = _text(operation, "from", missing)
        origin = self.find(source, change=False)
        if origin is None:
            raise PatchFailed(f"copy operation does not apply: doc is missing from path: {source}: missing value")
        value = _get(origin, f"error in copy for from: '{source}': ")
        path = _text(operation, "path", "copy operation failed to decode path: missing value")
        place = self.find(path)
        if place is None:
            raise PatchFailed(f"copy operation does not apply: doc is missing destination path: {path}: missing value")
        if value is not None:
            self.copied += _encoded_size(value)
            if self.copied > MAX_COPIED_BYTES:
                raise PatchFailed(
                    "error while performing deep copy: Unable to complete the copy, the accumulated size increase "
                    f"of copy is {self.copied}, exceeding the limit {MAX_COPIED_BYTES}"
                )
        self.insert(place, codec.copy(value), "error while adding value during copy: ")

    def test(self, operation: Operation) -> None:
        missing = "test operation failed to decode path: operation missing path field: missing value"
        path = _text(operation, "path", missing)
        failed = f"testing value {path} failed: test failed"
        expected = operation.get("value")
        if path == "":
            if not _equal(self.document, expected):
                raise ConditionFailed(failed)
            return
        place = self.find(path, change=False)
        if place is None:
            raise PatchFailed(f"test operation does not apply: is missing path: {path}: missing value")
        if not _equal(_get(place, f"error in test for path: '{path}': "), expected):
            raise ConditionFailed(failed)

    def find(self, path: str, *, change: bool = True) -> _Place | None:
        """The container that holds the last part of the path, copied before its first change; None: no such place."""
        steps = path.split("/")
        if len(steps) < 2:
            return None
        keys = [step.replace("~1", "/").replace("~0", "~") for step in steps[1:]]
        container = self.document
        for key in keys[:-1]:
            container = _peek(container, key)
        if not isinstance(container, dict | list):
            return None
        return _Place(self.own(keys[:-1]) if change else container, keys[-1])

    def own(self, keys: list[str]) -> Any:
        """The container at a path that exists, after copying what is shared with the input on the way to it."""
        container = self.document = self.mine(self.document)
        for key in keys:
            below = self.mine(_peek(container, key))
            container[int(key) if isinstance(container, list) else key] = below
            container = below
        return container

    def mine(self, container: Any) -> Any:
        if id(container) in self.owned:
            return container
        copy = container.copy()
        self.owned[id(copy)] = copy
        return copy

    def insert(self, place: _Place, value: Any, context: str) -> None:
        container, key = place.container, place.key
        if isinstance(container, dict):
            container[key] = value
            return
        if key == "-":
            container.append(value)
            return
        try:
            position = _atoi(key)
        except PatchFailed as err:
            raise PatchFailed(f"{context}value was not a proper array index: '{key}': {err}") from err
        size = len(container) + 1
        if position >= size or position < -size:
            raise PatchFailed(f"{context}Unable to access invalid index: {position}: invalid index referenced")
        container.insert(position + size if position < 0 else position, value)


_METHODS = {
    "add": _Patcher.add,
    "remove": _Patcher.remove,
    "replace": _Patcher.replace,
    "move": _Patcher.move,
    "copy": _Patcher.copy,
    "test": _Patcher.test,
}


def _text(operation: Operation, name: str, missing: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise PatchFailed(missing)
    return str(text)


def _peek(container: Any, key: str) -> Any:
    """What is at a key, None if there is nothing."""
    if isinstance(container, dict):
        return container.get(key)
    if isinstance(container, list):
        try:
            return container[_existing(container, key)]
        except PatchFailed:
            return None
    return None


def _get(place: _Place, context: str) -> Any:
    if isinstance(place.container, dict):
        return place.container.get(place.key)
    try:
        return place.container[_existing(place.container, place.key)]
    except PatchFailed as err:
        raise PatchFailed(f"{context}{err}") from err


def _delete(place: _Place, context: str) -> None:
    if isinstance(place.container, list):
        try:
            del place.container[_existing(place.container, place.key)]
        except PatchFailed as err:
            raise PatchFailed(f"{context}{err}") from err
    elif place.key in place.container:
        del place.container[place.key]
    else:
        raise PatchFailed(f"{context}Unable to remove nonexistent key: {place.key}: missing value")


def _existing(items: list[Any], key: str) -> int:
    position = _atoi(key)
    if position >= len(items) or position < -len(items):
        raise PatchFailed(f"Unable to access invalid index: {position}: invalid index referenced")
    return position


def _atoi(text: str) -> int:
    """An integer as Go reads it: decimal digits with an optional sign, within 64 bits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise PatchFailed(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    if len(digits) > 19 or not -(2**63) <= int(text) < 2**63:
        raise PatchFailed(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return int(text)


def _encoded_size(value: Any) -> int:
    """How many bytes Go's encoder writes for a value: it escapes HTML characters."""
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError as err:
        raise PatchFailed(f"error while performing deep copy: {err}") from err
    return len(text) + 5 * sum(map(text.count, (b"<", b">", b"&")))


def _equal(a: Any, b: Any) -> bool:
    """The same JSON text, but for the order of keys: 1 is neither true nor 1.0."""
    if isinstance(b, spelled.Text | spelled.Number):
        is_scalar = isinstance(a, str | int | float) and not isinstance(a, bool)
        return is_scalar and spelled.literal(a) == spelled.literal(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(value, b[name]) for name, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)
