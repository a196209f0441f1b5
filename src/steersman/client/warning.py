"""The server's `Warning:` headers: deprecated APIs, unknown fields, and what webhooks have to say.

Source: client-go `rest/warnings.go`; the header's syntax is RFC 7234, section 5.5.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from steersman.client.transport import Headers, header_values

logger = logging.getLogger("steersman.client")

_REMEMBERED = 10_000


class Warnings:
    """Passes every warning text on once; the default is to log it."""

    def __init__(self, on_warning: Callable[[str], None] | None = None) -> None:
        self._on_warning = on_warning or logger.warning
        self._seen: set[str] = set()

    def read(self, headers: Headers) -> None:
        """Pass on the warnings of one answer."""
        for value in header_values(headers, "warning"):
            for text in parse(value):
                if text in self._seen:
                    continue
                if len(self._seen) >= _REMEMBERED:
                    self._seen.clear()
                self._seen.add(text)
                self._on_warning(text)


def parse(value: str) -> Iterator[str]:
    """The texts of the warnings with code 299 in one header, which may hold several: `299 - "text", 299 - "more"`."""
    rest = value.strip()
    while rest:
        code, _, rest = rest.partition(" ")
        _agent, _, rest = rest.partition(" ")
        text, rest = _quoted(rest.lstrip())
        if text is None:
            return
        if code == "299":
            yield text
        rest = rest.lstrip()
        if rest.startswith('"'):  # a date
            _, rest = _quoted(rest)
        rest = rest.lstrip(" ,")


def _quoted(text: str) -> tuple[str | None, str]:
    """The content of the quoted string that `text` starts with, and what follows; None when it is none."""
    if not text.startswith('"'):
        return None, ""
    out: list[str] = []
    index = 1
    while index < len(text):
        char = text[index]
        if char == '"':
            return "".join(out), text[index + 1 :]
        if char == "\\" and index + 1 < len(text):
            index += 1
            char = text[index]
        out.append(char)
        index += 1
    return None, ""
