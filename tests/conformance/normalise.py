"""Answers made comparable: what differs from run to run becomes a token that keeps equality and order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PLACEHOLDER = re.compile(r"\{\{([\w.-]+)\}\}")
STEP_OF_PATH = re.compile(r"\[(\d+)\]|((?:\\.|[^.\[\]\\])+)")
NUMBER = re.compile(r"\b\d+\b")
SHORTEST_NAME = 4  # a variable with a shorter value would be found where it does not stand


def look_up(value: Any, path: str) -> Any:
    """The value at `path` (`a.b[0].c`, `\\.` for a dot in a key); None where there is none."""
    for index, key in STEP_OF_PATH.findall(path):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        else:
            value = value.get(key.replace("\\.", ".")) if isinstance(value, dict) else None
    return value


def remove(value: Any, path: str) -> None:
    """Take away what stands at `path`, if anything does."""
    parent, _, name = path.rpartition(".")
    holder = look_up(value, parent) if parent else value
    if isinstance(holder, dict):
        holder.pop(name, None)


def substitute(value: Any, variables: Mapping[str, Any]) -> Any:
    """`value` with its {{placeholders}} filled in, keys too. A text that is one placeholder keeps its value's type."""
    if isinstance(value, dict):
        return {substitute(key, variables): substitute(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [substitute(each, variables) for each in value]
    if not isinstance(value, str):
        return value
    if (whole := PLACEHOLDER.fullmatch(value)) is not None:
        return variables.get(whole[1], value)
    return PLACEHOLDER.sub(lambda found: str(variables.get(found[1], found[0])), value)


class Normaliser:
    """Turns one run's answers into what was recorded of them.

    Uids become <uid-N> by first appearance, objects' resourceVersions <rv-N> by rank, lists' and bookmarks' <list-rv>,
    continue tokens <continue>, times <time>; values of `variables` become their {{placeholders}} again. Uids and times
    that stand in `sent`, the text of all requests, are left alone.
    """

    def __init__(self, variables: Mapping[str, Any], sent: str, answers: Iterable[Any]) -> None:
        names = [
            (value, "{{" + name + "}}")
            for name, value in variables.items()
            if isinstance(value, str) and len(value) >= SHORTEST_NAME and not value.isdigit()
        ]
        self._names = sorted(names, key=lambda pair: -len(pair[0]))
        self._sent = sent
        self._uids: dict[str, str] = {}
        versions = {int(version) for answer in answers for version in _versions(answer)}
        self._ranks = {version: f"<rv-{rank}>" for rank, version in enumerate(sorted(versions), 1)}

    def __call__(self, value: Any, in_list_meta: bool = False) -> Any:
        if isinstance(value, dict):
            return self._mapping(value, in_list_meta)
        if isinstance(value, list):
            return [self(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _mapping(self, value: dict[str, Any], in_list_meta: bool) -> dict[str, Any]:
        is_list, is_bookmark = _is_list(value), value.get("type") == "BOOKMARK"
        result = {}
        for key, each in value.items():
            if _is_version(key, each):
                result[key] = "<list-rv>" if in_list_meta else self._rank(each)
            elif key == "continue" and each:
                result[key] = "<continue>"
            else:
                meta = is_bookmark or (key == "metadata" and (is_list or in_list_meta))
                result[self._text(key)] = self(each, meta)
        return result

    def _rank(self, version: str) -> str:
        return self._ranks.get(int(version), "<list-rv>")

    def _text(self, text: str) -> str:
        for value, name in self._names:
            text = text.replace(value, name)
        text = UID.sub(lambda found: found[0] if found[0] in self._sent else self._uid(found[0]), text)
        text = TIME.sub(lambda found: found[0] if found[0] in self._sent else "<time>", text)
        if "resourceversion" in (lower := text.lower()) or "resource version" in lower:
            text = NUMBER.sub(lambda found: self._ranks.get(int(found[0]), found[0]), text)
        return text

    def _uid(self, uid: str) -> str:
        return self._uids.setdefault(uid, f"<uid-{len(self._uids) + 1}>")


def _is_list(value: dict[str, Any]) -> bool:
    return isinstance(value.get("items"), list) or isinstance(value.get("rows"), list)


def _is_version(key: str, value: Any) -> bool:
    return key.endswith("resourceVersion") and isinstance(value, str) and value.isdigit() and value != "0"


def _versions(value: Any) -> Iterable[str]:
    """The resourceVersions of all objects in an answer, without those of lists."""
    if isinstance(value, list):
        for each in value:
            yield from _versions(each)
    elif isinstance(value, dict):
        is_list = _is_list(value)
        for key, each in value.items():
            if _is_version(key, each):
                if not is_list:
                    yield each
            elif not (is_list and key == "metadata" and isinstance(each, dict)):
                yield from _versions(each)


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """What differs, a line each. The order of managedFields does not count."""
    if path.endswith(".managedFields") and isinstance(expected, list) and isinstance(actual, list):
        expected, actual = sorted(expected, key=_text_of), sorted(actual, key=_text_of)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _key_differences(expected, actual, path)
    if isinstance(expected, list) and isinstance(actual, list):
        found = [] if len(expected) == len(actual) else [f"{path}: {len(actual)} items, expected {len(expected)}"]
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            found += differences(left, right, f"{path}[{index}]")
        return found
    if type(expected) is type(actual) and expected == actual:
        return []
    return [f"{path}: got {_short(actual)}, expected {_short(expected)}"]


def _key_differences(expected: dict[str, Any], actual: dict[str, Any], path: str) -> list[str]:
    found = []
    for key in sorted(expected.keys() | actual.keys()):
        here = f"{path}.{key}"
        if key not in actual:
            found.append(f"{here}: missing, expected {_short(expected[key])}")
        elif key not in expected:
            found.append(f"{here}: unexpected {_short(actual[key])}")
        else:
            found += differences(expected[key], actual[key], here)
    return found


def _text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _short(value: Any) -> str:
    return json.dumps(value)[:400]
