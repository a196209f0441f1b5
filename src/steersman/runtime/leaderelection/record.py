"""What a lock says: who leads, since when, and for how long. client-go's LeaderElectionRecord.

Source: client-go `tools/leaderelection/resourcelock/interface.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

UNKNOWN_LEADER = "leaderelection.k8s.io/unknown"
"""The holder of a lock whose parts disagree, or whose record cannot be read."""


@dataclass(frozen=True, slots=True)
class Record:
    """A lock's record. `holder` is "" when nobody leads; `duration` is in seconds, 0 when it is not said.

    `acquired` and `renewed` are by the holder's wall clock: they tell people something, and are compared with nothing.
    `transitions` counts the terms of leadership: each one has a number of its own.
    """

    holder: str = ""
    duration: int = 0
    acquired: datetime | None = None
    renewed: datetime | None = None
    transitions: int = 0


def record_from_lease(spec: Mapping[str, Any]) -> Record:
    """The record in a `coordination.k8s.io/v1` LeaseSpec."""
    return Record(
        holder=spec.get("holderIdentity") or "",
        duration=spec.get("leaseDurationSeconds") or 0,
        acquired=_time(spec.get("acquireTime")),
        renewed=_time(spec.get("renewTime")),
        transitions=spec.get("leaseTransitions") or 0,
    )


def lease_spec(record: Record) -> dict[str, Any]:
    """The LeaseSpec of a record; what a coordinator of leases had put there (strategy, preferredHolder) is not kept."""
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration,
        "acquireTime": _text(record.acquired, "microseconds"),
        "renewTime": _text(record.renewed, "microseconds"),
        "leaseTransitions": record.transitions,
    }


def record_from_annotation(text: str | None) -> Record:
    """The record in an annotation; None is that of a lock that nobody has ever held.

    What cannot be read is held by UNKNOWN_LEADER: it is taken over when it has not changed for a lease's time.
    """
    if text is None:
        return Record()
    try:
        fields = orjson.loads(text)
        return Record(
            holder=_typed(fields, "holderIdentity", str, ""),
            duration=_typed(fields, "leaseDurationSeconds", int, 0),
            acquired=_time(fields.get("acquireTime")),
            renewed=_time(fields.get("renewTime")),
            transitions=_typed(fields, "leaderTransitions", int, 0),
        )
    except (ValueError, TypeError, AttributeError):
        return Record(holder=UNKNOWN_LEADER)


def annotation(record: Record) -> str:
    """The annotation of a record, as client-go writes it."""
    return orjson.dumps(
        {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.duration,
            "acquireTime": _text(record.acquired, "seconds"),
            "renewTime": _text(record.renewed, "seconds"),
            "leaderTransitions": record.transitions,
        }
    ).decode()


def _typed(fields: Mapping[str, Any], name: str, kind: type, absent: Any) -> Any:
    value = fields.get(name)
    if value is None:
        return absent
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(name)
    return value


def _time(text: Any) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _text(time: datetime | None, precision: str) -> str | None:
    if time is None:
        return None
    return time.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
