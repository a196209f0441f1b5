"""What a patch of a built-in object is told when its result does not fit the kind: 422, with the patch in question.

Source: apiserver `pkg/endpoints/handlers/patch.go`; apimachinery `pkg/runtime/converter.go`.
"""

from __future__ import annotations

from typing import Any

from steersman._util.gotext import format_float
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import Invalid, invalid
from steersman.apimachinery.go_values import DecodeError
from steersman.apiserver.strategy import Object

_GO_KINDS = {"object": "map", "array": "slice", "string": "string", "bool": "bool", "number": "int64"}
_NUMBERS = frozenset({"int32", "int64", "float64"})
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}  # by Go's encoder, of what was stored
_BASE64 = "illegal base64 data"


def unfit_result(result: Any, why: str) -> Invalid:
    """For JSON patches and merge patches: the patched object as a whole, and what its decoder says."""
    return unfit_text(codec.encode(result).decode(), why)


def unfit_text(text: str, why: str) -> Invalid:
    """The same, for an object that is known as text only."""
    return invalid("", "", "", [fe.invalid("patch", text.translate(_ESCAPED), why)])


def unfit_strategic(patch: Object, error: DecodeError) -> Invalid:
    """For strategic merge patches: the patch as Go prints it, and what the converter of trees says."""
    return unfit_patch(patch, conversion_error(error))


def unfit_patch(patch: Object, why: str) -> Invalid:
    """The same, in other words."""
    return invalid("", "", "", [fe.invalid("patch", _printed(patch), why)])


def conversion_error(error: DecodeError) -> str:
    """What the converter of trees to Go's types says instead of the JSON decoder."""
    wrong = error.mismatch
    if wrong is None:
        text = str(error)
        return f"error decoding from json: {text}" if text.startswith(_BASE64) else text
    if wrong.own_decoder:
        return f"json: cannot unmarshal {wrong.what} into Go value of type {wrong.go_type}"
    what, _, number = wrong.what.partition(" ")
    kind = wrong.given or ("float64" if "." in number else _GO_KINDS[what])
    due = wrong.go_kind or wrong.go_type
    if due.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if due.startswith("map["):
        return f"cannot restore map from {kind}"
    if "." in due:
        return f"cannot restore struct from: {kind}"
    if (kind == "int64" and due == "string") or (kind == "float64" and due in _NUMBERS):
        return f"cannot convert {kind} to {wrong.go_type}"
    return f"unrecognized type: {due}"


def _printed(value: Any) -> str:
    """A tree as Go's %+v; null members are gone from it by the time that it is printed."""
    if isinstance(value, dict):
        members = (f"{key}:{_printed(value[key])}" for key in sorted(value) if value[key] is not None)
        return f"map[{' '.join(members)}]"
    if isinstance(value, list):
        return f"[{' '.join(_printed(item) for item in value)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_float(value) if isinstance(value, float) else str(value)
