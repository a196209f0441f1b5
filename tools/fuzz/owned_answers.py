"""Answers to compare where ownership counts: times of entries that clients wrote are kept, those of the run are one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from .values import write
from .wire import Answer, Ask

THIS_RUN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PAST = re.compile(r"20(?:0\d|1\d|2[0-4])-")
PATCHED = re.compile(r"Invalid value: .*[\"}\]]: (?=\S)", re.DOTALL)  # what a patch made, with all that is of the run
INDEX_OF_ENTRY = re.compile(r"managedFields\[\d+\]")
EMPTY = re.compile(
    r"(Invalid value: |Unsupported value: )\{\}(?=: )"
)  # where a client sent an empty map; here it is null
SEVERAL = re.compile(r"(?<=errors:\n).*", re.DOTALL)


def plain(body: Any) -> Any:
    """A body with numbers instead of their texts."""
    return json.loads(write(body))


def comparable(answer: Answer) -> Answer:
    """The answer with one time for all that was written in this run, and what has no order sorted."""
    body = answer.body
    if isinstance(body, dict) and body.get("kind") == "Status" and isinstance(body.get("message"), str):
        message = EMPTY.sub(r"\1null", body["message"])
        body = {**body, "message": SEVERAL.sub(lambda found: "\n".join(sorted(found[0].split("\n"))), message)}
        body = _with_causes(body)
        if " is invalid: patch: " in body["message"]:
            body = {**body, "message": PATCHED.sub("", body["message"]), "details": {}}
        if body.get("reason") == "Conflict" and (body.get("details") or {}).get("causes"):
            causes = sorted(body["details"]["causes"], key=write)
            body["details"] = {**body["details"], "causes": causes}
    elif isinstance(body, dict) and isinstance(body.get("metadata"), dict):
        body = {**body, "metadata": _metadata(body["metadata"])}
    return replace(answer, body=body)


def _with_causes(body: dict[str, Any]) -> dict[str, Any]:
    details = body.get("details") or {}
    if not details.get("causes"):
        return body
    causes = [{**each, "message": EMPTY.sub(r"\1null", each.get("message", ""))} for each in details["causes"]]
    return {**body, "details": {**details, "causes": causes}}


def _metadata(meta: dict[str, Any]) -> dict[str, Any]:
    meta = {**meta, "deletionTimestamp": "<time>"} if "deletionTimestamp" in meta else dict(meta)
    if isinstance(meta.get("managedFields"), list):
        meta["managedFields"] = [_entry(each) for each in meta["managedFields"]]
    return meta


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "past": entry["time"]} if PAST.match(str(entry.get("time"))) else entry


def only_order_of_times(reference: Answer, server: Answer) -> bool:
    """Whether two objects differ only in the order of entries, which times decide, and a second began in between.

    Entries in another order are a change, which is stored; times alone are none.
    """
    from .compare import differences

    sides = [comparable(answer).body for answer in (reference, server)]
    if not all(isinstance(side, dict) and isinstance(side.get("metadata"), dict) for side in sides):
        return False
    if differences(_in_order(reference), _in_order(server)):
        return False
    return any(len(_present_times(side)) > 1 for side in sides)


def _in_order(answer: Answer) -> Answer:
    answer = comparable(answer)
    meta = answer.body["metadata"]
    known = meta.get("managedFields") or ()
    timeless = ({key: value for key, value in each.items() if key != "time"} for each in known)
    entries = sorted(timeless, key=lambda each: json.dumps(each, sort_keys=True))
    meta = {**meta, "managedFields": entries, "resourceVersion": ""}
    return replace(answer, body={**answer.body, "metadata": meta})


def _present_times(body: dict[str, Any]) -> set[str]:
    entries = body["metadata"].get("managedFields") or ()
    return {entry["time"] for entry in entries if "time" in entry and "past" not in entry}


def only_rewritten(lines: list[str]) -> bool:
    """Whether all that differs is that the reference wrote an object again, and the other server did not."""
    return '.metadata.resourceVersion: "<new>" | "<as before>"' in lines and all(
        line.startswith(".metadata.resourceVersion: ")
        or re.match(r'\.metadata\.managedFields\[\d+\]\.time: "[^"]*" \| absent$', line)
        for line in lines
    )


def stores_raw(ask: Ask, *, custom: bool) -> bool:
    """Whether a write is stored as it is: what is applied before it is pruned, what is scaled without defaults.

    Of built-in kinds: bytes that are null, which are not the same in protobuf as the empty ones that are read.
    """
    if custom:
        return "apply-patch" in ask.content_type or ask.path.endswith("/scale")
    return not {"configmaps", "secrets"}.isdisjoint(ask.path.split("/")) and "null" in str(ask.body)


def leaves_no_trace(ask: Ask) -> bool:
    """Whether a configuration has an empty list in its metadata, which is not there when the object is read."""
    if "apply-patch" not in ask.content_type or not isinstance(ask.body, str):
        return False
    try:
        meta = json.loads(ask.body)["metadata"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(meta, dict) and any(meta.get(name) == [] for name in ("finalizers", "ownerReferences"))


def only_place_of_entry(reference: Answer, server: Answer) -> bool:
    """Whether two errors differ only in which of the entries of managedFields they name, whose order times decide."""
    bodies = [json.loads(INDEX_OF_ENTRY.sub("managedFields[]", write(answer.body))) for answer in (reference, server)]
    return reference.status == server.status >= 400 and bodies[0] == bodies[1]
