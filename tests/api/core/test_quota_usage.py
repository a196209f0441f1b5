"""What single objects count for in quotas, where no recording shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.core import resource_lists as lists
from steersman.api.core.quota_usage import evaluator

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
Object = dict[str, Any]


def usage(group: str, resource: str, obj: Object) -> dict[str, str]:
    judge = evaluator(group, resource)
    assert judge is not None
    return lists.written(judge.usage({"metadata": {"name": "x"}, **obj}, NOW))


def pod(status: Object, **spec: Any) -> Object:
    return {"spec": spec, "status": status}


def container(requests: Object | None = None, limits: Object | None = None, **more: Any) -> Object:
    return {"name": "c", "resources": {"requests": requests, "limits": limits}, **more}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, "1"),
        ({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]}, "2"),
        ({"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}, "3"),
        (
            {
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
                "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "500m"}}],
            },
            "500m",
        ),
    ],
)
def test_a_resized_pod_counts_for_the_most_of_what_it_has_and_wants(status: Object, cpu: str) -> None:
    assert usage("", "pods", pod(status, containers=[container({"cpu": "1"})]))["requests.cpu"] == cpu


def test_overhead_huge_pages_and_devices() -> None:
    asked = {"cpu": "1", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"}
    spec = {"containers": [container(asked, {"cpu": "2"})], "overhead": {"cpu": "250m", "memory": "1Mi"}}
    found = usage("", "pods", pod({}, **spec))
    assert found == {
        "count/pods": "1",
        "cpu": "1250m",
        "hugepages-2Mi": "4Mi",
        "limits.cpu": "2250m",
        "memory": "1Mi",
        "pods": "1",
        "requests.cpu": "1250m",
        "requests.example.com/gpu": "2",
        "requests.hugepages-2Mi": "4Mi",
        "requests.memory": "1Mi",
    }


@pytest.mark.parametrize(
    ("meta", "counted"),
    [
        ({"deletionTimestamp": "2026-01-02T03:04:00Z", "deletionGracePeriodSeconds": 30}, True),
        ({"deletionTimestamp": "2026-01-02T03:03:00Z", "deletionGracePeriodSeconds": 30}, False),
    ],
)
def test_a_pod_whose_time_is_over_uses_nothing(meta: Object, counted: bool) -> None:
    found = usage("", "pods", {"metadata": {"name": "x", **meta}, **pod({}, containers=[container({"cpu": "1"})])})
    assert ("cpu" in found) == counted


def test_device_claims_count_the_most_of_their_alternatives() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
        {
            "name": "b",
            "firstAvailable": [
                {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
                {"deviceClassName": "nic", "allocationMode": "All"},
            ],
        },
    ]
    assert usage("resource.k8s.io", "resourceclaims", {"spec": {"devices": {"requests": requests}}}) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "5",
        "nic.deviceclass.resource.k8s.io/devices": "32",
    }


@pytest.mark.parametrize(
    ("operator", "values", "inside"),
    [
        ("Exists", None, True),
        ("DoesNotExist", None, False),
        ("In", ["gold"], True),
        ("In", ["iron"], False),
        ("NotIn", ["gold"], True),
        ("NotIn", ["gold", "silver"], False),
    ],
)
def test_claims_are_in_the_scope_of_any_of_their_attribute_classes(operator: str, values: Any, inside: bool) -> None:
    judge = evaluator("", "persistentvolumeclaims")
    assert judge is not None
    claim = {
        "spec": {"volumeAttributesClassName": "gold"},
        "status": {"currentVolumeAttributesClassName": "silver"},
    }
    requirement = {"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}
    assert judge.in_scope(requirement, claim) == inside


@pytest.mark.parametrize(("group", "resource"), [("", "events"), ("events.k8s.io", "events")])
def test_events_are_never_counted(group: str, resource: str) -> None:
    assert evaluator(group, resource) is None
