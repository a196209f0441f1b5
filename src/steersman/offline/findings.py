"""What is found in a text, and how it is told: a line for each finding, or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
_NO_FIELD = "<nil>"  # upstream's field of a cause that is about no field
_BREAKS = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\x1b"): "\\x1b"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `line` counts from 1, `document` from 0; `field` is a path, "" when it is about the whole.

    `reason` is the API's: a cause's or a Status's; for a lint finding it is the rule's id.
    """

    severity: Severity
    file: str
    line: int
    message: str
    field: str = ""
    reason: str = ""
    document: int = 0
    item: int | None = None
    kind: str = ""
    namespace: str = ""
    name: str = ""

    def at(self, line: int) -> Finding:
        """The same in another line."""
        return replace(self, line=line)

    def text(self) -> str:
        """`FILE:LINE: KIND/NAME: FIELD: MESSAGE`, in one line; what is no error says so before the kind."""
        parts = [f"{self.file}:{self.line}"]
        if self.severity != "error":
            parts.append(self.severity)
        if self.kind:
            parts.append(f"{self.kind}/{self.name}" if self.name else self.kind)
        return one_line(": ".join([*parts, self.about()]))

    def about(self) -> str:
        """The message, after the field unless it names that itself."""
        if self.field in ("", _NO_FIELD) or self.message.startswith(f"{self.field}: "):
            return self.message
        return f"{self.field}: {self.message}"

    def json(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _JSON_FIELDS}
        if self.item is not None:
            found["item"] = self.item
        return found


_JSON_FIELDS = ("severity", "file", "document", "line", "kind", "namespace", "name", "field", "reason", "message")


def one_line(text: str) -> str:
    """A text that cannot start a line of its own."""
    return text.translate(_BREAKS)


def count(number: int, what: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def tally(findings: Iterable[Finding], *, always: bool = False) -> str:
    """`2 errors, 1 warning`: the severities that occur; with `always`, errors and warnings even if there are none."""
    numbers = dict.fromkeys(("error", "warning", "info"), 0)
    for finding in findings:
        numbers[finding.severity] += 1
    words = {"error": "error", "warning": "warning"}
    parts = [count(numbers[key], word) for key, word in words.items() if numbers[key] or always]
    return ", ".join([*parts, *([f"{numbers['info']} info"] if numbers["info"] else [])])
