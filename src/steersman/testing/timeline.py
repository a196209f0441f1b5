"""What a test's API server was asked, on one line of time: for the report when the test fails."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from steersman.apiserver.audit.auditor import Auditor
from steersman.apiserver.audit.policy import parse_policy

MAX_ENTRIES = 5000
_POLICY = b"""{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
 "rules": [{"level": "Metadata"}]}"""
_WEBHOOK = "mutation.webhook.admission.k8s.io/"


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. `at` is in seconds since the server started; `code` 0 for a watch that goes on."""

    at: float
    user: str
    agent: str
    verb: str
    what: str
    code: int
    message: str
    notes: Sequence[str]

    def __str__(self) -> str:
        told = f" {self.message}" if self.code >= 400 and self.message else ""
        notes = "".join(f"\n{'':12}{note}" for note in self.notes)
        return f"{self.at:9.3f}s {self.code or '...':>4} {self.verb:<7}{self.what}  ({self.agent}){told}{notes}"


class Timeline:
    """Records requests as they are answered, in memory; the oldest go when there are too many."""

    def __init__(self) -> None:
        self._events: deque[tuple[float, bytes]] = deque(maxlen=MAX_ENTRIES)
        self._began = time.monotonic()

    def auditor(self) -> Auditor:
        """What a server is to be configured with."""
        return Auditor(parse_policy(_POLICY), [self])

    async def process(self, event: bytes, *, first: bool) -> bool:
        self._events.append((time.monotonic() - self._began, event))
        return True

    async def close(self) -> None:
        """Nothing is buffered."""

    def entries(self) -> Iterator[Entry]:
        """All requests, those of the server's own controllers aside."""
        for at, event in list(self._events):
            entry = _entry(at, orjson.loads(event))
            if entry is not None:
                yield entry

    def text(self, limit: int = 200) -> str:
        """The last requests, a line each; those that were refused tell why."""
        entries = list(self.entries())
        left_out = [f"({len(entries) - limit} earlier requests are left out)"] if len(entries) > limit else []
        return "\n".join([*left_out, *map(str, entries[-limit:])])


def _entry(at: float, event: dict[str, Any]) -> Entry | None:
    user = event.get("user", {}).get("username", "")
    if user.startswith("system:kube-controller-manager") or user == "system:apiserver":
        return None
    reference, status = event.get("objectRef") or {}, event.get("responseStatus") or {}
    resource = "/".join(part for part in (reference.get("resource"), reference.get("subresource")) if part)
    place = "/".join(part for part in (reference.get("namespace"), reference.get("name")) if part)
    what = f"{resource} {place}".strip() if resource else event.get("requestURI", "")
    if event.get("impersonatedUser"):
        user = event["impersonatedUser"].get("username", user)
    code = 0 if event.get("stage") == "ResponseStarted" else status.get("code", 0)
    agent = (event.get("userAgent") or user).split(" ")[0]
    notes = [f"webhook: {value}" for key, value in (event.get("annotations") or {}).items() if key.startswith(_WEBHOOK)]
    return Entry(at, user, agent, event.get("verb", ""), what, code, status.get("message", ""), notes)
