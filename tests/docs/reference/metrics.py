"""The page of metrics: what a server and an operator expose."""

from __future__ import annotations

from collections.abc import Iterable

from steersman._util.metric_types import Metric
from steersman.apiserver.metrics import Metrics
from steersman.runtime.metrics import QueueMetrics, RuntimeMetrics

from .text import cell, page, table


def _rows(metrics: Iterable[Metric]) -> list[list[str]]:
    """A row for each metric, in the order of names."""
    return [
        [f"`{metric.name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), cell(metric.help)]  # type: ignore[attr-defined]
        for metric in sorted(metrics, key=lambda each: each.name)
    ]


def _all(*holders: object) -> list[Metric]:
    """The metrics among what objects hold."""
    found = (value for holder in holders for value in vars(holder).values())
    return [value for value in found if all(hasattr(value, name) for name in ("name", "kind", "labels", "help"))]


def metrics_page() -> str:
    head = ["Name", "Type", "Labels", "What it counts"]
    return page(
        "Metrics",
        "In the Prometheus text format, under the names of kube-apiserver, controller-runtime and client-go where "
        "these have them.",
        "## The server\n\n`GET /metrics` of `steersman serve`, for who may (`nonResourceURLs: [/metrics]`).",
        table(head, _rows(_all(Metrics()))),
        "## An operator\n\n`/metrics` at the address of `Manager(metrics=...)` or `steersman run --metrics ADDRESS`. "
        "`manager.metrics.add(metric)` has metrics of your own exposed, too.",
        table(head, _rows(_all(RuntimeMetrics(), QueueMetrics()))),
    )
