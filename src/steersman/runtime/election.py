"""A manager's leader election, as settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steersman.client.client import Client
from steersman.runtime.leaderelection import LeaderElector, LeaseLock, Lock
from steersman.runtime.leaderelection.metrics import ElectionMetricsSink

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Election:
    """Which lock is competed for, and how; see `LeaderElector`. Durations are in seconds.

    `namespace` is the lock's: by default that of the Pod this runs in, else the client's. `lock` replaces the Lease.
    """

    name: str
    namespace: str | None = None
    lock: Lock | None = None
    identity: str | None = None
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release_on_stop: bool = True
    on_overrun: Literal["exit", "log"] = "exit"

    def elector(self, client: Client, metrics: ElectionMetricsSink) -> LeaderElector:
        """The elector for these settings. Raises ValueError for durations that cannot be kept."""
        return LeaderElector(
            client,
            self.lock or LeaseLock(self.namespace or own_namespace() or client.namespace, self.name),
            identity=self.identity,
            name=self.name,
            lease_duration=self.lease_duration,
            renew_deadline=self.renew_deadline,
            retry_period=self.retry_period,
            release_on_cancel=self.release_on_stop,
            exit_on_overrun=self.on_overrun == "exit",
            metrics=metrics,
        )


def own_namespace() -> str | None:
    """The namespace of the Pod this runs in; None elsewhere."""
    try:
        return _NAMESPACE_FILE.read_text().strip() or None
    except OSError:
        return None
