"""The server's metrics, under kube-apiserver's names and labels.

Source: apiserver `pkg/endpoints/metrics/metrics.go`, `pkg/endpoints/filters/metrics.go`, `pkg/admission/metrics`,
`pkg/storage/etcd3/metrics`, `pkg/storage/cacher/metrics`.
"""

from __future__ import annotations

from typing import NamedTuple

from steersman._util.metric_types import CONTENT_TYPE, Counter, Gauge, Histogram, expose
from steersman.apimachinery.request_info import RequestInfo

_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_REQUEST_SECONDS = (0.005, 0.025, *_SECONDS)
_RESPONSE_BYTES = tuple(10.0**power for power in range(3, 10))
_EVENT_BYTES = tuple(1024.0 * 2**power for power in range(8))
_AUTH_SECONDS = tuple(0.001 * 2**power for power in range(15))
_ADMISSION_SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 2.5)

_VERBS = frozenset({"DELETE", "GET", "LIST", "PATCH", "POST", "PUT", "WATCH", "APPLY", "CONNECT"})
_CONNECTS = frozenset({"log", "exec", "portforward", "attach", "proxy"})
_RESOURCE = ("group", "resource")


class RequestLabels(NamedTuple):
    """The labels of apiserver_request_total but for the code, in that order."""

    verb: str
    dry_run: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""
    component: str = "apiserver"


def request_labels(info: RequestInfo, content_type: str = "") -> RequestLabels:
    """The labels of a request for objects; `content_type` tells an apply from other patches."""
    scope = request_scope(info)
    dry_run = _dry_run(info.query["dryRun"]) if "dryRun" in info.query else ""
    verb = _verb(info, scope, content_type)
    return RequestLabels(verb, dry_run, info.group, info.version, info.resource, info.subresource, scope)


def path_labels(info: RequestInfo, path: str, component: str = "") -> RequestLabels:
    """The labels of a request for another path, which stands as the subresource.

    As the number of series must stay small, `path` is that of the handler, not what the client wrote: "/readyz",
    "openapi/v3"; discovery has "api" and "apis" with the component "apiserver".
    """
    verb = _verb(info, "", "")
    return RequestLabels(verb, subresource=path, component=component)


def request_scope(info: RequestInfo) -> str:
    """What the request is about: one object ("resource"), those of a namespace ("namespace"), or all ("cluster")."""
    if info.name or info.verb == "create":
        return "resource"
    if info.namespace:
        return "namespace"
    return "cluster" if info.is_resource else ""


def _verb(info: RequestInfo, scope: str, content_type: str) -> str:
    if info.is_resource and info.subresource in _CONNECTS:
        return "CONNECT"
    verb = info.method.upper()
    if verb == "GET" and info.flag("watch"):
        return "WATCH"
    if verb in ("GET", "HEAD"):
        return "LIST" if scope not in ("resource", "") else "GET"
    if verb == "PATCH" and content_type == "application/apply-patch+yaml":
        return "APPLY"
    return verb if verb in _VERBS else "other"


def _dry_run(values: list[str]) -> str:
    return "All" if values and all(value == "All" for value in values) else "invalid"


class _RequestSeries:
    """The series of one set of request labels, so that a request costs one look-up."""

    __slots__ = ("codes", "durations", "own_durations", "sizes")

    def __init__(self, metrics: Metrics, labels: RequestLabels) -> None:
        without_dry_run = (labels.verb, *labels[2:])
        reads = labels.verb in ("GET", "LIST")
        self.codes: dict[int, list[float]] = {}
        self.durations = metrics.request_duration.series(labels)
        self.own_durations = None if labels.dry_run else metrics.request_sli_duration.series(without_dry_run)
        self.sizes = metrics.response_sizes.series(without_dry_run) if reads else None


class Metrics:
    """All metrics of one server. Only to be updated on the event loop; `render` may run on any thread."""

    def __init__(self) -> None:
        labels, without_dry_run = RequestLabels._fields, tuple(f for f in RequestLabels._fields if f != "dry_run")
        self.requests = Counter(
            "apiserver_request_total",
            "Requests answered, by verb, dry run, resource, scope, component and HTTP status code.",
            (*labels, "code"),
        )
        self.request_duration = Histogram(
            "apiserver_request_duration_seconds",
            "Seconds from a request's arrival to its answer, by verb, dry run, resource, scope and component.",
            labels,
            _REQUEST_SECONDS,
        )
        self.request_sli_duration = Histogram(
            "apiserver_request_sli_duration_seconds",
            "Seconds that the server itself took for a request: without webhooks and queueing. No dry runs.",
            without_dry_run,
            _SECONDS,
        )
        self.response_sizes = Histogram(
            "apiserver_response_sizes",
            "Bytes of the answers to reads, by verb, resource, scope and component.",
            without_dry_run,
            _RESPONSE_BYTES,
        )
        self.inflight = Gauge(
            "apiserver_current_inflight_requests",
            "Requests being worked on, but for long-running ones, by kind: mutating or readOnly.",
            ("request_kind",),
        )
        self.long_running = Gauge(
            "apiserver_longrunning_requests",
            "Open long-running requests (watches), by verb, resource, scope and component.",
            without_dry_run,
        )
        self.terminations = Counter(
            "apiserver_request_terminations_total",
            "Requests that the server cut off to protect itself, by verb, resource, scope, component and code.",
            (*without_dry_run, "code"),
        )
        self._add_access()
        self._add_admission()
        self._add_storage()
        self._add_watches()
        self._request_series: dict[RequestLabels, _RequestSeries] = {}
        self._store_series: dict[tuple[str, str, str], tuple[list[float], list[float]]] = {}

    def _add_access(self) -> None:
        self.authentications = Counter(
            "authentication_attempts", "Requests authenticated, by result: success, failure or error.", ("result",)
        )
        self.authentication_duration = Histogram(
            "authentication_duration_seconds",
            "Seconds that authentication took, by result.",
            ("result",),
            _AUTH_SECONDS,
        )
        self.authorizations = Counter(
            "authorization_attempts_total",
            "Requests authorized, by result: allowed, denied, no-opinion or error.",
            ("result",),
        )
        self.authorization_duration = Histogram(
            "authorization_duration_seconds", "Seconds that authorization took, by result.", ("result",), _AUTH_SECONDS
        )
        self.tls_handshake_errors = Counter(
            "apiserver_tls_handshake_errors_total", "Connections dropped because their TLS handshake failed."
        )

    def _add_admission(self) -> None:
        labels = ("name", "type", "operation", "rejected")
        self.admission_duration = Histogram(
            "apiserver_admission_controller_admission_duration_seconds",
            "Seconds that an admission plugin took, by its name, type (admit or validate) and operation.",
            labels,
            _ADMISSION_SECONDS,
        )
        self.webhook_duration = Histogram(
            "apiserver_admission_webhook_admission_duration_seconds",
            "Seconds that an admission webhook took, by its name, type (admit or validating) and operation.",
            labels,
            (*_ADMISSION_SECONDS, 10, 25),
        )
        self.webhook_requests = Counter(
            "apiserver_admission_webhook_request_total",
            "Calls of admission webhooks, by name, type, operation, code of the answer and whether it rejected.",
            ("name", "type", "operation", "code", "rejected"),
        )
        self.webhook_rejections = Counter(
            "apiserver_admission_webhook_rejection_count",
            "Requests that an admission webhook rejected, by name, type, operation, kind of error and code.",
            ("name", "type", "operation", "error_type", "rejection_code"),
        )
        self.webhook_fail_open = Counter(
            "apiserver_admission_webhook_fail_open_count",
            "Failed webhook calls that were ignored as their failurePolicy has it, by name and type.",
            ("name", "type"),
        )

    def _add_storage(self) -> None:
        operation = ("operation", *_RESOURCE)
        self.store_requests = Counter(
            "etcd_requests_total", "Operations on the store, by operation and resource.", operation
        )
        self.store_errors = Counter(
            "etcd_request_errors_total", "Operations on the store that failed, by operation and resource.", operation
        )
        self.store_duration = Histogram(
            "etcd_request_duration_seconds",
            "Seconds that operations on the store took, by operation and resource.",
            operation,
            _REQUEST_SECONDS,
        )
        self.resource_objects = Gauge("apiserver_resource_objects", "Stored objects, by resource.", _RESOURCE)
        self.storage_size = Gauge(
            "apiserver_storage_size_bytes", "Bytes that the store takes on disk.", ("storage_cluster_id",)
        )

        self.transformations = Counter(
            "apiserver_storage_transformation_operations_total",
            "Values encrypted and decrypted, by resource, direction (to_storage, from_storage), provider and status.",
            ("resource", "transformation_type", "transformer_prefix", "status"),
        )
        self.store_used = Gauge("steersman_store_used_bytes", "Bytes of the store that hold something.")
        self.store_log = Gauge("steersman_store_log_bytes", "Bytes of the database's write-ahead log.")
        self.store_quota = Gauge("steersman_store_quota_bytes", "Bytes that the store may hold; 0: any number.")
        self.store_disk_left = Gauge("steersman_store_disk_left_bytes", "Bytes that the database's disk has left.")
        self.store_keys = Gauge("steersman_store_keys", "Keys that the store holds.")
        self.store_revision = Gauge("steersman_store_revision", "The store's current revision.")
        self.store_compacted = Gauge("steersman_store_compacted_revision", "The oldest revision that can be read.")

    def _add_watches(self) -> None:
        resource_version = ("group", "version", "resource")
        self.watch_events = Counter(
            "apiserver_watch_events_total", "Events sent to watching clients, by resource.", resource_version
        )
        self.watch_event_sizes = Histogram(
            "apiserver_watch_events_sizes",
            "Bytes of events sent to clients, by resource.",
            resource_version,
            _EVENT_BYTES,
        )
        self.cache_events_received = Counter(
            "apiserver_watch_cache_events_received_total", "Events that the watch cache took in.", _RESOURCE
        )
        self.cache_events_dispatched = Counter(
            "apiserver_watch_cache_events_dispatched_total", "Events that the watch cache handed on.", _RESOURCE
        )
        self.terminated_watchers = Counter(
            "apiserver_terminated_watchers_total", "Watchers cut off because they read too slowly.", _RESOURCE
        )
        self.cache_revision = Gauge(
            "apiserver_watch_cache_resource_version", "The resourceVersion that the watch cache has reached.", _RESOURCE
        )

    def record_request(
        self, labels: RequestLabels, code: int, seconds: float, size: int = 0, others_seconds: float = 0.0
    ) -> None:
        """Counts an answered request.

        `seconds` is all the time it took, `others_seconds` how much of that was spent in webhooks and queues; `size`
        are the bytes of the answer's body.
        """
        series = self._request_series.get(labels)
        if series is None:
            series = self._request_series[labels] = _RequestSeries(self, labels)
        cell = series.codes.get(code)
        if cell is None:
            cell = series.codes[code] = self.requests.cell((*labels, str(code)))
        cell[0] += 1
        self.request_duration.observe_in(series.durations, seconds)
        if series.own_durations is not None:
            self.request_sli_duration.observe_in(series.own_durations, seconds - others_seconds)
        if series.sizes is not None:
            self.response_sizes.observe_in(series.sizes, size)

    def record_store(self, labels: tuple[str, str, str], seconds: float, failed: bool = False) -> None:
        """Counts an operation on the store, by its name (get, list, create, update or delete), group and resource."""
        series = self._store_series.get(labels)
        if series is None:
            series = self.store_requests.cell(labels), self.store_duration.series(labels)
            self._store_series[labels] = series
        series[0][0] += 1
        self.store_duration.observe_in(series[1], seconds)
        if failed:
            self.store_errors.cell(labels)[0] += 1

    def record_webhook(self, name: str, kind: str, operation: str, code: int, rejected: bool, seconds: float) -> None:
        """Counts a call of an admission webhook; `kind` is admit or validating, `code` 0 for a failed call."""
        shown = "true" if rejected else "false"
        self.webhook_duration.observe(seconds, (name, kind, operation, shown))
        self.webhook_requests.inc(name, kind, operation, str(code or 503), shown)
        if rejected:
            error = "no_error" if code else "calling_webhook_error"
            self.webhook_rejections.inc(name, kind, operation, error, str(code or 503))

    def record_watch_event(self, group: str, version: str, resource: str, size: int, clients: int = 1) -> None:
        """Counts an event of `size` bytes sent to so many watching clients."""
        labels = (group, version, resource)
        self.watch_events.cell(labels)[0] += clients
        self.watch_event_sizes.observe(size, labels, clients)

    def start_long_running(self, labels: RequestLabels) -> list[float]:
        """Counts a watch as open. Returns the count's cell: take 1 from its only number when the watch ends."""
        cell = self.long_running.cell((labels.verb, *labels[2:]))
        cell[0] += 1
        return cell

    def render(self) -> tuple[str, bytes]:
        """Content type and text of a scrape: the metrics above, and those of the process (memory, CPU, files)."""
        own = expose(metric for metric in vars(self).values() if isinstance(metric, Counter | Gauge | Histogram))
        return CONTENT_TYPE, own + _process_metrics()


def _process_metrics() -> bytes:
    # Deferred: importing prometheus_client takes longer than a server without scrapes should wait.
    from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
    from prometheus_client.exposition import generate_latest
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    for collector in (ProcessCollector, PlatformCollector):
        collector(registry=registry)
    GCCollector(registry=registry)
    return generate_latest(registry)
