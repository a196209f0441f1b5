"""From the server's answer to findings: one for each cause, with the line of the field that the cause names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from steersman.offline.findings import Finding, Severity
from steersman.offline.manifests import Manifest
from steersman.offline.server import Answer

# What strict decoding says: all unknown and duplicate fields in one message, each quoted as Go does.
_STRICT = re.compile(r'(?:unknown|duplicate) field ("(?:[^"\\]|\\.)*")')
_STRICT_MARK = ": strict decoding error: "
_MISTYPED = re.compile(r"json: cannot unmarshal .* into Go struct field (\w+)\.(\S+) of type ")
_LEADING_FIELD = re.compile(r"([A-Za-z][\w.\[\]/-]*): ")


def findings_of(manifest: Manifest, answer: Answer) -> Iterator[Finding]:
    """What the server refused an object for, and what it warned of."""
    for text in answer.warnings:
        yield finding(manifest, "warning", text, _field_of_warning(text), "Warning")
    if not answer.ok:
        yield from _refusals(manifest, answer)


def is_strict(answer: Answer) -> bool:
    """Whether an object was refused for unknown or duplicate fields only: its other rules were not looked at."""
    return not answer.ok and _STRICT_MARK in (answer.body.get("message") or "")


def finding(manifest: Manifest, severity: Severity, message: str, field: str = "", reason: str = "") -> Finding:
    """A finding about a field of an object, "" for all of it."""
    return Finding(
        severity,
        manifest.source,
        manifest.line_of(field),
        message,
        field=field,
        reason=reason,
        document=manifest.document,
        item=manifest.item,
        kind=manifest.kind,
        namespace=manifest.namespace,
        name=manifest.name,
    )


def _refusals(manifest: Manifest, answer: Answer) -> Iterator[Finding]:
    status = answer.body
    reason, message = status.get("reason") or "", status.get("message") or f"HTTP status {answer.code}"
    causes = (status.get("details") or {}).get("causes") or []
    if causes:
        for cause in causes:
            field = cause.get("field") or ""
            yield finding(manifest, "error", cause.get("message") or message, field, cause.get("reason") or reason)
        return
    _, strict, told = message.partition(_STRICT_MARK)
    fields = list(_STRICT.finditer(told)) if strict else []
    for match in fields:
        yield finding(manifest, "error", match[0], _unquoted(match[1]), reason)
    if not fields:
        yield finding(manifest, "error", message, _mistyped_field(message), reason)


def _mistyped_field(message: str) -> str:
    """Go names a field from the innermost struct that it was decoding into; metadata may be one by itself."""
    match = _MISTYPED.search(message)
    if match is None:
        return ""
    struct, path = match.groups()
    return f"metadata.{path}" if struct == "ObjectMeta" and path.partition(".")[0] != "metadata" else path


def _field_of_warning(text: str) -> str:
    strict = _STRICT.fullmatch(text)
    if strict:
        return _unquoted(strict[1])
    leading = _LEADING_FIELD.match(text)
    return leading[1] if leading else ""


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # Go quotes with \x and \U too
        return text[1:-1]
