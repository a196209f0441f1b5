"""Label and field selectors on objects at hand, with the server's meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from steersman.apimachinery import field_selectors, selectors
from steersman.client.resources import Object


def predicate(label_selector: str | None, field_selector: str | None) -> Callable[[Object], bool] | None:
    """What tells whether an object is selected; None when all are. Raises SelectorError for what is not a selector.

    A field selector may name any field by its dotted path: a server allows but a few.
    """
    labels = selectors.parse(label_selector) if label_selector else None
    fields = field_selectors.parse(field_selector) if field_selector else None
    if not labels and not fields:
        return None

    def matches(raw: Object) -> bool:
        if labels and not labels.matches((raw.get("metadata") or {}).get("labels")):
            return False
        return not fields or fields.matches(lambda path: field_text(raw, path))

    return matches


def field_text(raw: Object, path: str) -> str:
    """A field as selectors compare it: "" where there is none."""
    value: Any = raw
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
