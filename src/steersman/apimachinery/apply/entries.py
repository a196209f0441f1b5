"""The entries of `metadata.managedFields`: decoding, encoding and order.

Source: apimachinery `util/managedfields/internal/managedfields.go`, `pkg/apis/meta/v1/types.go`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery.apply import path as paths
from steersman.apimachinery.apply.fieldset import EMPTY, FieldSet

WireEntry: TypeAlias = dict[str, Any]
_OPERATIONS = frozenset({"Apply", "Update"})


class Identity(NamedTuple):
    """What makes two entries the same manager; `api_version` is "" for Apply, whose entry follows its version."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def text(self) -> str:
        """Upstream's name of the identity, by which entries of the same second are ordered."""
        fields = zip(("manager", "operation", "apiVersion", "subresource"), self, strict=True)
        return "{" + ",".join(f'"{name}":{paths.encode_value(value)}' for name, value in fields if value) + "}"


@dataclass(slots=True, eq=False)
class Entry:
    """One manager's fields; never changed once made.

    `time` is RFC 3339 in UTC with seconds, or None; `wire` the entry as it was received.
    """

    identity: Identity
    api_version: str
    fields: FieldSet
    time: str | None
    wire: WireEntry | None = None

    def with_fields(self, fields: FieldSet) -> Entry:
        return self if fields is self.fields else Entry(self.identity, self.api_version, fields, self.time)

    def encode(self) -> WireEntry:
        """The entry as it stands in an object; the received one if nothing changed. Do not change it."""
        if self.wire is not None:
            return self.wire
        manager, operation, _, subresource = self.identity
        out: WireEntry = {"manager": manager} if manager else {}
        out["operation"] = operation
        out["apiVersion"] = self.api_version
        if self.time is not None:
            out["time"] = self.time
        out["fieldsType"] = "FieldsV1"
        out["fieldsV1"] = self.fields.tree
        if subresource:
            out["subresource"] = subresource
        return out


Managed: TypeAlias = dict[Identity, Entry]


def decode(entries: Any, *, trusted: bool) -> Managed | None:
    """The entries by identity (of equal ones the last counts); None if one of them is invalid.

    `trusted` entries were written by a server: their field sets are in canonical form and are taken as they are.
    """
    if not isinstance(entries, list):
        return None
    out: Managed = {}
    for wire in entries:
        entry = _decode(wire, trusted)
        if entry is None:
            return None
        out[entry.identity] = entry
    return out


def _decode(wire: Any, trusted: bool) -> Entry | None:
    if not isinstance(wire, dict):
        return None
    operation, api_version = wire.get("operation"), wire.get("apiVersion")
    if operation not in _OPERATIONS or not api_version or wire.get("fieldsType") != "FieldsV1":
        return None
    manager, subresource = wire.get("manager") or "", wire.get("subresource") or ""
    identity = Identity(manager, operation, "" if operation == "Apply" else api_version, subresource)
    tree = wire.get("fieldsV1")
    if trusted:
        return Entry(identity, api_version, FieldSet(tree) if tree else EMPTY, wire.get("time"), wire)
    if not all(isinstance(text, str) for text in (manager, subresource, api_version)):
        return None
    try:
        return Entry(identity, api_version, FieldSet.decode(tree), _time(wire.get("time")))
    except ValueError:
        return None


def _time(text: Any) -> str | None:
    """A client's RFC 3339 time as the API writes it. Raises ValueError for another text."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"no time: {text!r}")
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError(f"no time zone: {text!r}")
    return parsed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def problem(entries: list[Any]) -> str:
    """What is wrong with the first entry that cannot be read, in upstream's words; "" if all can."""
    for position, wire in enumerate(entries):
        entry = wire if isinstance(wire, dict) else {}
        fields_type = entry.get("fieldsType") or ""
        if entry.get("operation") not in _OPERATIONS:
            return "operation must be `Apply` or `Update`"
        if not entry.get("apiVersion"):
            return "apiVersion must not be empty"
        if not fields_type:
            return f"missing fieldsType in managed fields entry {position}"
        if fields_type != "FieldsV1":
            return f"invalid fieldsType {quote(str(fields_type))} in managed fields entry {position}"
        if _decode(entry, trusted=False) is None:
            return f"error decoding managed fields entry {position}"
    return ""


def is_reset(entries: Any) -> bool:
    """Whether managedFields that a client sent ask to end tracking: an empty list, or one entry with nothing in it."""
    if not isinstance(entries, list) or len(entries) > 1:
        return False
    if not entries:
        return True
    only = entries[0]
    if not isinstance(only, dict) or only.get("fieldsV1") is not None:
        return False
    return not any(
        only.get(name) for name in ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")
    )


def ordered(managed: Managed) -> list[WireEntry]:
    """The entries as an object carries them: Apply first, then the oldest, then by name."""
    if len(managed) > 1:
        return [entry.encode() for entry in sorted(managed.values(), key=_rank)]
    return [entry.encode() for entry in managed.values()]


def _rank(entry: Entry) -> tuple[str, str, str, str, str]:
    manager, operation, _, subresource = entry.identity
    return operation, entry.time or "", manager, entry.api_version, subresource
