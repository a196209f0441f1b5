"""The metrics of elections, under Kubernetes' names.

Source: controller-runtime `pkg/metrics/leaderelection.go`.
"""

from __future__ import annotations

from typing import Protocol

from steersman._util.metric_types import Counter, Gauge


class ElectionMetricsSink(Protocol):
    """Where elections count. Both have the label `name`."""

    master: Gauge
    slow_path: Counter


class ElectionMetrics:
    """Metrics of their own, for elections outside of a manager."""

    def __init__(self) -> None:
        self.master = Gauge("leader_election_master_status", "Whether this process leads", ("name",))
        self.slow_path = Counter("leader_election_slowpath_total", "Renewals that took the slow path", ("name",))
