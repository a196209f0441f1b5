"""Answers made comparable, and what is different then.

Ignored is only what cannot be equal (uids, times) and what is random upstream: kube-openapi and the checks of
structural schemas walk the properties of an object, and the fields of a value, in the order of a Go map. So errors of
sibling fields come in any order. Errors of one field, and those of the items of one list, have an order that counts:
causes are sorted by their paths without indexes, stably. Errors of anyOf and its like, and of ranges, name no field,
but have the path in their text. The order of fields in JSON means nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .values import Raw, write
from .wire import Answer

INDEX = re.compile(r"\[\d+\]")
PATH_IN_TEXT = re.compile(r'"": (?:"((?:[^"\\]|\\.)*)" must (?:not )?validate|.* in (\S*)$)')
# What a message tells of the stored object that it quotes.
OF_THE_RUN = re.compile(
    r"""[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|(resourceVersion[\\": ']{2,8})\d+"""
)
# A patched object is quoted as the patch left its bytes: numbers as the client wrote them, new fields in its order.
PATCHED = re.compile(r'(?<=Invalid value: )"(?:[^"\\]|\\.)*"')
GO_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:x([0-9a-f]{2})|([av])|U([0-9a-f]{8}))")
GO_ESCAPES = {"a": "\\u0007", "v": "\\u000b"}
# Upstream reads the keys of list items in managedFields as floats, and so rewrites an integer beyond 2^53.
GREAT_KEY = re.compile(r'"[kv]:[^ ]*[0-9]{16}')
CORRUPT = "StorageError: corrupt object"
WHY_CORRUPT = "an object stored in another version, where it has embedded resources of wrong types"
Json = Any


def normalised(answer: Answer) -> tuple[int, tuple[str, ...], Json]:
    """An answer without what differs from run to run."""
    body = answer.body
    if isinstance(body, dict):
        body = _status(body) if body.get("kind") == "Status" else _object(body)
    return answer.status, _warnings(answer.warnings), body


def _warnings(given: tuple[str, ...]) -> tuple[str, ...]:
    """Formats that a definition should not name are collected while walking a Go map of properties."""
    formats = iter(sorted(each for each in given if "unrecognized format" in each))
    return tuple(next(formats) if "unrecognized format" in each else each for each in given)


def _object(body: dict[str, Json]) -> dict[str, Json]:
    if isinstance(body.get("items"), list) and body.get("kind", "").endswith("List"):
        return {**body, "metadata": {}, "items": [_object(each) for each in body["items"]]}
    if not isinstance(meta := body.get("metadata"), dict):
        return body
    meta = dict(meta)
    for key in ("uid", "creationTimestamp"):
        if key in meta:
            meta[key] = f"<{key}>"
    if isinstance(meta.get("managedFields"), list):
        meta["managedFields"] = [
            {**each, "time": "<time>"} if "time" in each else each for each in meta["managedFields"]
        ]
    body = {**body, "metadata": meta}
    if body.get("kind") == "CustomResourceDefinition" and isinstance(body.get("status"), dict):
        conditions = body["status"].get("conditions") or ()
        body["status"] = {
            **body["status"],
            "conditions": [{**each, "lastTransitionTime": "<time>"} for each in conditions],
        }
    return body


def _status(body: dict[str, Json]) -> dict[str, Json]:
    body = {**body, "message": _general(body.get("message") or "")}
    details = body.get("details")
    if not isinstance(details, dict):
        return body
    details = {**details, "uid": "<uid>"} if details.get("uid") else dict(details)
    causes = [
        {**each, "message": _general(each.get("message", ""), patched=each.get("field") == "patch")}
        for each in details.get("causes") or ()
    ]
    if causes:
        ordered = sorted(causes, key=_place)
        details["causes"] = ordered
        body = {**body, "message": _reworded(body.get("message", ""), causes, ordered)}
    return {**body, "details": details}


def _general(message: str, *, patched: bool = False) -> str:
    """A message without what is of the run, and without the spelling that a patch left."""
    message = OF_THE_RUN.sub(lambda found: f"{found[1] or ''}<?>", message)
    return PATCHED.sub(_respelled, message, count=1) if patched or " is invalid: patch: " in message else message


def _respelled(quoted: re.Match[str]) -> str:
    text = GO_ESCAPE.sub(_json_escape, quoted[0])
    try:
        return json.dumps(json.loads(json.loads(text), parse_int=float, parse_constant=str), sort_keys=True)
    except ValueError:
        return quoted[0]


def _json_escape(found: re.Match[str]) -> str:
    if found[4]:
        return found[1] + chr(int(found[4], 16))
    return found[1] + (f"\\u00{found[2]}" if found[2] else GO_ESCAPES[found[3]])


def explained(reference: Answer, server: Answer, lines: list[str]) -> str:
    """Why two answers may differ, if that is known; else ""."""
    if reference.status == 0:
        return "the reference panics: a JSON patch tests a list that holds null"
    if reference.status == 500 and CORRUPT in write(reference.body):
        return WHY_CORRUPT
    if not all(line.startswith((".metadata.managedFields", ".metadata.resourceVersion")) for line in lines):
        return ""
    if GREAT_KEY.search(write(reference.body)) or GREAT_KEY.search(write(server.body)):
        return "keys of list items beyond 2^53"
    return ""


def _place(cause: dict[str, Json]) -> tuple[str, str]:
    found = PATH_IN_TEXT.search(cause.get("message", ""))
    below = (found[1] or found[2] or "") if found else ""
    return INDEX.sub("[]", cause.get("field", "")), INDEX.sub("[]", below)


def _reworded(message: str, causes: list[dict[str, Json]], ordered: list[dict[str, Json]]) -> str:
    """The message, with the errors in it in another order."""
    tail = _aggregate(causes)
    return message.removesuffix(tail) + _aggregate(ordered) if message.endswith(tail) else message


def _aggregate(causes: list[dict[str, Json]]) -> str:
    texts = list(dict.fromkeys(f"{cause.get('field')}: {cause.get('message')}" for cause in causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def differences(reference: Answer, server: Answer) -> list[str]:
    """What differs, a line each: path, what the reference says, what the server says."""
    left, right = normalised(reference), normalised(server)
    found = _differences(left[2], right[2], "")
    if left[1] != right[1]:
        found.insert(0, f"warnings: {list(left[1])} | {list(right[1])}")
    if left[0] != right[0]:
        found.insert(0, f"status: {left[0]} | {right[0]}")
    return found


def _differences(left: Json, right: Json, path: str) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        found = []
        for key in [*left, *(key for key in right if key not in left)]:
            if key not in left or key not in right:
                there = left if key in left else right
                sides = (write(there[key]), "absent") if key in left else ("absent", write(there[key]))
                found.append(f"{path}.{key}: {sides[0]} | {sides[1]}")
            else:
                found += _differences(left[key], right[key], f"{path}.{key}")
        return found
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            line
            for at, pair in enumerate(zip(left, right, strict=True))
            for line in _differences(*pair, f"{path}[{at}]")
        ]
    if isinstance(left, Raw) == isinstance(right, Raw) and type(left) is type(right) and left == right:
        return []
    return [f"{path}: {write(left)} | {write(right)}"]
