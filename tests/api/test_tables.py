from datetime import UTC, datetime, timedelta

import pytest

from steersman.api import tables
from steersman.api.kinds import builtin_kind

NOW = datetime(2024, 1, 11, tzinfo=UTC)
CREATED = {"name": "a", "namespace": "n", "creationTimestamp": "2024-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400 + 3600, "8d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages(seconds, expected):
    assert tables.human_duration(timedelta(seconds=seconds)) == expected


def test_an_object_without_a_time_has_no_age():
    assert tables.age(None, NOW) == "<unknown>"


@pytest.mark.parametrize(
    ("group", "kind", "body", "cells"),
    [
        ("", "ConfigMap", {"data": {"a": "b"}, "binaryData": {"c": ""}}, ["a", 2, "10d"]),
        ("", "Secret", {"data": {"a": ""}, "type": "Opaque"}, ["a", "Opaque", 1, "10d"]),
        ("", "ServiceAccount", {}, ["a", "10d"]),
        ("", "Namespace", {"status": {"phase": "Active"}}, ["a", "Active", "10d"]),
        ("coordination.k8s.io", "Lease", {"spec": {"holderIdentity": "me"}}, ["a", "me", "10d"]),
        ("rbac.authorization.k8s.io", "Role", {}, ["a", "2024-01-01T00:00:00Z"]),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            {
                "roleRef": {"kind": "ClusterRole", "name": "view"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "User", "name": "v"},
                    {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
                ],
            },
            ["a", "ClusterRole/view", "10d", "u, v", "", "n/s"],
        ),
        (
            "apps",
            "Deployment",
            {
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j"}]}},
                },
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            },
            ["a", "1/2", 2, 1, "10d", "c,d", "i:1,j", "a=b"],
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            {
                "spec": {
                    "group": "x.io",
                    "scope": "Namespaced",
                    "names": {"kind": "Widget", "shortNames": ["w", "wi"]},
                    "versions": [
                        {"name": "v2", "served": True},
                        {"name": "v1", "served": True, "storage": True},
                        {"name": "v0"},
                    ],
                },
                "status": {"conditions": [{"type": "Established", "status": "True"}]},
            },
            ["a", "Namespaced", "v1(storage),v2", "2024-01-01T00:00:00Z", "x.io", "Widget", "w,wi", True],
        ),
    ],
)
def test_rows(group, kind, body, cells):
    builtin = builtin_kind(group, "v1", kind)
    obj, _ = builtin.decode({"metadata": CREATED, **body})
    assert builtin.strategy.row(obj, NOW) == cells
    assert len(builtin.strategy.columns) == len(cells)


def test_columns_are_described():
    columns = builtin_kind("", "v1", "ConfigMap").strategy.columns
    assert [(column["name"], column["type"], column["format"], column["priority"]) for column in columns] == [
        ("Name", "string", "name", 0),
        ("Data", "string", "", 0),
        ("Age", "string", "", 0),
    ]
    assert columns[1]["description"].startswith("Data contains the configuration data.")


def test_kinds_without_columns_of_their_own_show_name_and_creation():
    assert [column["name"] for column in tables.columns("rbac.authorization.k8s.io", "Role")] == ["Name", "Created At"]
