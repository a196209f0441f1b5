"""What expressions that make JSON patches may call.

Source: apiserver `pkg/cel/library/jsonpatch.go`.
"""

from __future__ import annotations

from steersman.apimachinery.schema.cel.library import Function


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


OVERLOADS: dict[str, Function] = {"string_jsonpatch_escapeKey_string": _escape_key}
