"""Warning headers (RFC 7234 section 5.5).

Source: apiserver `pkg/endpoints/filters/warning.go`; apimachinery `pkg/util/net/http.go` (NewWarningHeader).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_MOST, _MOST_OF_ONE = 4 * 1024, 256  # code points: of all texts, and of each one if they are more in all


def warning_headers(texts: Iterable[str]) -> list[str]:
    """The headers `299 - "TEXT"` for some texts, each once.

    When they are too long in all, each is cut, and the later ones go. Those with control characters cannot be sent.
    """
    distinct = [text for text in dict.fromkeys(texts) if text and not _has_controls(text)]
    return [_header(text) for text in (_cut(distinct) if sum(map(len, distinct)) > _MOST else distinct)]


def _has_controls(text: str) -> bool:
    return not text.isprintable() and any(unicodedata.category(char) == "Cc" for char in text)


def _cut(texts: list[str]) -> list[str]:
    kept: list[str] = []
    written, cutting = 0, False
    for text in texts:
        if written >= _MOST and cutting:
            break
        if not cutting and written + len(text) > _MOST:
            cutting = True
            kept = [each[:_MOST_OF_ONE] for each in kept]
            written = sum(map(len, kept))
        shown = text[:_MOST_OF_ONE] if cutting else text
        kept.append(shown)
        written += len(shown)
    return kept


def _header(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
