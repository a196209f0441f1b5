import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from steersman.apimachinery.request_info import parse_request
from steersman.apiserver.metrics import Metrics, RequestLabels, path_labels, request_labels

GET = RequestLabels("GET", "", "g", "v1", "widgets", "", "resource")


def scrape(metrics: Metrics) -> dict[str, Metric]:
    content_type, text = metrics.render()
    assert content_type.startswith("text/plain; version=0.0.4")
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def samples(family: Metric, ending: str = "") -> dict[tuple[tuple[str, str], ...], float]:
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for sample in family.samples
        if sample.name == family.name + ending
    }


def value(metrics: Metrics, name: str, ending: str = "", **labels: str) -> float:
    found = samples(scrape(metrics)[name], ending)
    return found[tuple(sorted(labels.items()))]


@pytest.mark.parametrize(
    ("method", "path", "query", "content_type", "expected"),
    [
        ("GET", "namespaces/x/configmaps/a", "", "", ("GET", "", "resource")),
        ("HEAD", "namespaces/x/configmaps/a", "", "", ("GET", "", "resource")),
        ("GET", "namespaces/x/configmaps", "", "", ("LIST", "", "namespace")),
        ("GET", "configmaps", "", "", ("LIST", "", "cluster")),
        ("GET", "configmaps", "watch=1", "", ("WATCH", "", "cluster")),
        ("GET", "namespaces/x/configmaps", "watch=false", "", ("LIST", "", "namespace")),
        ("POST", "namespaces/x/configmaps", "dryRun=All", "", ("POST", "All", "resource")),
        ("POST", "namespaces/x/configmaps", "dryRun=All&dryRun=All", "", ("POST", "All", "resource")),
        ("GET", "namespaces", "dryRun=", "", ("LIST", "invalid", "cluster")),
        ("DELETE", "namespaces/x/configmaps", "dryRun=some", "", ("DELETE", "invalid", "namespace")),
        ("PATCH", "namespaces/x/configmaps/a", "", "application/merge-patch+json", ("PATCH", "", "resource")),
        ("PATCH", "namespaces/x/configmaps/a", "", "application/apply-patch+yaml", ("APPLY", "", "resource")),
        ("GET", "namespaces/x/pods/a/log", "", "", ("CONNECT", "", "resource")),
        ("BREW", "namespaces/x/configmaps/a", "", "", ("other", "", "resource")),
    ],
)
def test_the_labels_of_a_request(
    method: str, path: str, query: str, content_type: str, expected: tuple[str, str, str]
) -> None:
    labels = request_labels(parse_request(method, f"/api/v1/{path}", query), content_type)
    assert (labels.verb, labels.dry_run, labels.scope) == expected
    assert (labels.group, labels.version, labels.component) == ("", "v1", "apiserver")


def test_the_labels_of_another_path() -> None:
    labels = path_labels(parse_request("GET", "/readyz/ping", "watch=x"), "/readyz")
    assert labels == RequestLabels("WATCH", subresource="/readyz", component="")
    assert path_labels(parse_request("GET", "/readyz", ""), "/readyz").verb == "GET"


def test_a_request_is_counted_timed_and_measured() -> None:
    metrics = Metrics()
    metrics.record_request(GET, 200, 0.03, 900)
    metrics.record_request(GET, 200, 2.0, 2000, others_seconds=1.95)
    metrics.record_request(GET, 404, 0.005, 100)
    labels = GET._asdict()
    assert value(metrics, "apiserver_request", "_total", **labels, code="200") == 2
    assert value(metrics, "apiserver_request", "_total", **labels, code="404") == 1
    name = "apiserver_request_duration_seconds"
    assert value(metrics, name, "_count", **labels) == 3
    assert value(metrics, name, "_sum", **labels) == pytest.approx(2.035)
    buckets = [
        value(metrics, name, "_bucket", **labels, le=le) for le in ("0.005", "0.025", "0.05", "1.5", "2", "+Inf")
    ]
    assert buckets == [1, 1, 2, 2, 3, 3]
    del labels["dry_run"]
    assert value(metrics, "apiserver_request_sli_duration_seconds", "_bucket", **labels, le="0.1") == 3
    assert value(metrics, "apiserver_response_sizes", "_bucket", **labels, le="1000") == 2
    assert value(metrics, "apiserver_response_sizes", "_bucket", **labels, le="1e+06") == 3


def test_writes_have_no_sizes_and_dry_runs_no_sli() -> None:
    metrics = Metrics()
    metrics.record_request(GET._replace(verb="PUT", dry_run="All"), 200, 0.1, 10)
    families = scrape(metrics)
    assert "apiserver_request_duration_seconds" in families
    assert "apiserver_response_sizes" not in families
    assert "apiserver_request_sli_duration_seconds" not in families


def test_what_has_not_happened_is_not_exposed() -> None:
    assert not [name for name in scrape(Metrics()) if name.startswith(("apiserver_", "etcd_"))]


def test_gauges_follow_and_sources_are_asked_at_each_scrape() -> None:
    metrics = Metrics()
    cell = metrics.start_long_running(GET._replace(verb="WATCH"))
    labels = {name: text for name, text in GET._replace(verb="WATCH")._asdict().items() if name != "dry_run"}
    assert value(metrics, "apiserver_longrunning_requests", **labels) == 1
    cell[0] -= 1
    assert value(metrics, "apiserver_longrunning_requests", **labels) == 0
    stored = {("", "configmaps"): 3.0}
    metrics.resource_objects.source = lambda: stored
    assert value(metrics, "apiserver_resource_objects", group="", resource="configmaps") == 3
    stored["", "configmaps"] = 4
    assert value(metrics, "apiserver_resource_objects", group="", resource="configmaps") == 4
    metrics.inflight.set(7, ("mutating",))
    metrics.inflight.add(-2, ("mutating",))
    assert value(metrics, "apiserver_current_inflight_requests", request_kind="mutating") == 5


def test_store_and_watch_events() -> None:
    metrics = Metrics()
    metrics.record_store(("create", "g", "widgets"), 0.001)
    metrics.record_store(("create", "g", "widgets"), 0.001, failed=True)
    store = {"operation": "create", "group": "g", "resource": "widgets"}
    assert value(metrics, "etcd_requests", "_total", **store) == 2
    assert value(metrics, "etcd_request_errors", "_total", **store) == 1
    assert value(metrics, "etcd_request_duration_seconds", "_count", **store) == 2
    metrics.record_watch_event("g", "v1", "widgets", 1024)
    watch = {"group": "g", "version": "v1", "resource": "widgets"}
    assert value(metrics, "apiserver_watch_events", "_total", **watch) == 1
    assert value(metrics, "apiserver_watch_events_sizes", "_bucket", **watch, le="1024") == 1


def test_the_process_is_measured() -> None:
    families = scrape(Metrics())
    assert samples(families["process_resident_memory_bytes"])[()] > 1e6
    assert "python_info" in families


def test_every_family_can_be_exposed() -> None:
    metrics = Metrics()
    for family in [found for found in vars(metrics).values() if hasattr(found, "labels")]:
        values = tuple("x" for _ in family.labels)
        family.observe(1.0, values) if hasattr(family, "observe") else family.add(1, values)
    names = {name for name in scrape(metrics) if not name.startswith(("process_", "python_"))}
    assert len(names) == len([found for found in vars(metrics).values() if hasattr(found, "labels")])
