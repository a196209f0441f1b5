"""The runtime's metrics, under controller-runtime's and client-go's names.

Source: controller-runtime `pkg/internal/controller/metrics/metrics.go`, `pkg/metrics/workqueue.go`,
`pkg/metrics/leaderelection.go`, `pkg/metrics/client_go_adapter.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit
from weakref import WeakSet

from steersman._util.metric_types import Counter, Gauge, Histogram, Labels, Metric, expose

_QUEUE_SECONDS = tuple(10.0**power for power in range(-8, 4))
_RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
RESULTS = ("success", "error", "requeue", "requeue_after", "conflict")


class Observed(Protocol):
    """A work queue, as its gauges see it."""

    name: str

    def depths(self) -> dict[int, int]: ...

    def working(self) -> list[float]: ...


class QueueMetrics:
    """The metrics of work queues; `of` gives those of one."""

    def __init__(self) -> None:
        name = ("name", "controller")
        self._queues: WeakSet[Observed] = WeakSet()
        self.depth = Gauge("workqueue_depth", "Current depth of workqueue", (*name, "priority"))
        self.adds = Counter("workqueue_adds_total", "Total number of adds handled by workqueue", name)
        self.latency = Histogram(
            "workqueue_queue_duration_seconds",
            "How long an item stays in the queue before it is worked on",
            name,
            _QUEUE_SECONDS,
        )
        self.work = Histogram(
            "workqueue_work_duration_seconds", "How long the work on an item takes", name, _QUEUE_SECONDS
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds", "Seconds of work that is in progress and not yet observed", name
        )
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds", "For how long the longest running work has run", name
        )
        self.retries = Counter("workqueue_retries_total", "Total number of retries handled by workqueue", name)
        self.depth.source = self._depths
        self.unfinished.source = self._each(sum)
        self.longest.source = self._each(lambda seconds: max(seconds, default=0.0))

    def all(self) -> list[Metric]:
        return [self.depth, self.adds, self.latency, self.work, self.unfinished, self.longest, self.retries]

    def of(self, name: str) -> BoundQueueMetrics:
        """Those of the queue of this name, which is also its controller's."""
        return BoundQueueMetrics(self, (name, name))

    def watch(self, queue: Observed) -> None:
        self._queues.add(queue)

    def _depths(self) -> Mapping[Labels, float]:
        found: dict[Labels, float] = {}
        for queue in self._queues:
            for priority, count in queue.depths().items() or [(0, 0)]:
                found[(queue.name, queue.name, str(priority))] = count
        return found

    def _each(self, measure: Callable[[list[float]], float]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {(queue.name, queue.name): measure(queue.working()) for queue in self._queues}


class BoundQueueMetrics:
    """The metrics of one queue."""

    def __init__(self, metrics: QueueMetrics, labels: Labels) -> None:
        self._metrics = metrics
        self._adds = metrics.adds.cell(labels)
        self._retries = metrics.retries.cell(labels)
        self._latency = metrics.latency.series(labels)
        self._work = metrics.work.series(labels)

    def watch(self, queue: Observed) -> None:
        self._metrics.watch(queue)

    def added(self) -> None:
        self._adds[0] += 1

    def retried(self) -> None:
        self._retries[0] += 1

    def started(self, waited: float) -> None:
        self._metrics.latency.observe_in(self._latency, waited)

    def worked(self, seconds: float) -> None:
        self._metrics.work.observe_in(self._work, seconds)


class RuntimeMetrics:
    """All metrics of a manager."""

    def __init__(self) -> None:
        controller = ("controller",)
        self.queues = QueueMetrics()
        self.reconciles = Counter(
            "controller_runtime_reconcile_total", "Total number of reconciliations", ("controller", "result")
        )
        self.errors = Counter("controller_runtime_reconcile_errors_total", "Total number of failed runs", controller)
        self.terminal_errors = Counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Total number of runs that are not retried",
            controller,
        )
        self.panics = Counter(
            "controller_runtime_reconcile_panics_total",
            "Total number of runs that ended in an unexpected exception",
            controller,
        )
        self.timeouts = Counter(
            "controller_runtime_reconcile_timeouts_total", "Total number of runs that took too long", controller
        )
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds", "How long a run takes", controller, _RECONCILE_SECONDS
        )
        self.concurrency = Gauge(
            "controller_runtime_max_concurrent_reconciles", "How many runs there may be at a time", controller
        )
        self.active = Gauge("controller_runtime_active_workers", "How many runs there are now", controller)
        self.hot_loops = Counter(
            "steersman_hot_loops_total", "How often two writers were seen to fight over a field", controller
        )
        self.master = Gauge("leader_election_master_status", "Whether this process leads", ("name",))
        self.requests = Counter(
            "rest_client_requests_total",
            "Number of HTTP requests, by status code, method and host",
            ("code", "method", "host"),
        )
        self.request_retries = Counter(
            "rest_client_request_retries_total",
            "Number of HTTP requests that were sent again, by status code, verb and host",
            ("code", "verb", "host"),
        )
        self.slow_path = Counter("leader_election_slowpath_total", "Renewals that took the slow path", ("name",))
        self._extra: list[Metric] = []

    def add(self, metric: Metric) -> None:
        """Have a metric of the operator's own exposed, too."""
        self._extra.append(metric)

    def requests_to(self, server: str) -> Callable[[str, str, bool], None]:
        """What counts the requests to a server, see `RestClient.on_attempt`."""
        host = urlsplit(server).netloc

        def sent(method: str, code: str, again: bool) -> None:
            self.requests.inc(code, method, host)
            if again:
                self.request_retries.inc(code, method, host)

        return sent

    def begin(self, controller: str, concurrency: int) -> None:
        """The controller's series, at 0: an alert on a rate needs to see the first step."""
        for result in RESULTS:
            self.reconciles.cell((controller, result))
        for counter in (self.errors, self.terminal_errors, self.panics, self.timeouts):
            counter.cell((controller,))
        self.concurrency.set(concurrency, (controller,))
        self.active.set(0, (controller,))

    def text(self) -> bytes:
        """The Prometheus text format."""
        own = [value for value in vars(self).values() if isinstance(value, Counter | Gauge | Histogram)]
        return expose([*own, *self.queues.all(), *self._extra])
