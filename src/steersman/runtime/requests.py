"""What a reconciler is asked, what it answers, and why it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple


class Request(NamedTuple):
    """The object to reconcile. `namespace` is "" for a cluster-scoped one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Result:
    """What is to follow a reconcile that succeeded.

    `requeue_after` (seconds, or a timedelta) asks for another one then, whatever happens in between; what is not
    greater than zero means at once. `priority` is that of this further run; None keeps the run's own.

    Raises ValueError for what is no finite time.
    """

    requeue_after: float | timedelta | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        after = self.requeue_after
        if after is None or isinstance(after, timedelta):
            return
        if not isinstance(after, int | float) or not math.isfinite(after):
            raise ValueError(f"requeue_after must be a number of seconds, a timedelta or None, not {after!r}")

    @property
    def delay(self) -> float | None:
        """Seconds until the next run; None when only an event leads to one."""
        after = self.requeue_after
        return after.total_seconds() if isinstance(after, timedelta) else after


class TerminalError(Exception):
    """Raised by a reconciler for what no further attempt can mend: it is logged and counted, and not tried again until
    something changes. Source: controller-runtime `pkg/reconcile/reconcile.go` (TerminalError)."""


class LeadershipLost(Exception):
    """This process does not lead any more, or cannot be sure that it does."""


class Reason(NamedTuple):
    """Why a reconcile runs; `detail` says it to a reader, and `cause` is one of these words:

    - "initial": the object was there when the controller began
    - "created", "updated", "deleted": an event of the object, or of one that is mapped to it
    - "resync": the regular look at everything
    - "retry": the run before failed
    - "conflict": the run before lost a race for a write
    - "requeued": the reconciler asked for it (`Result.requeue_after`)
    - "external": an event from outside of the cluster
    """

    cause: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.cause} ({self.detail})" if self.detail else self.cause


INITIAL = "initial"
"""The object was there when the controller began."""
CREATED, UPDATED, DELETED = "created", "updated", "deleted"
"""An event of the object, or of one that is mapped to it."""
RESYNC = "resync"
"""The regular look at everything."""
RETRY = "retry"
"""The run before failed."""
CONFLICT = "conflict"
"""The run before lost a race for a write."""
REQUEUED = "requeued"
"""The reconciler asked for it (`Result.requeue_after`)."""
EXTERNAL = "external"
"""An event from outside of the cluster."""

LOW_PRIORITY = -100
"""The priority of what is not urgent: initial objects and resyncs. Source: controller-runtime `handler.LowPriority`."""
