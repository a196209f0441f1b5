"""Good objects with one to three places broken: they get further into the server than junk does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from .requests import CORE, DEPLOYMENTS, JUNK, LEASES, ROLE_BINDINGS, THINGS, VALUES

Place = tuple[str | int, ...]
_ENTRY = {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "apiVersion": "fuzz.example.com/v1"}
_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": True}
_META = {
    "name": "a",
    "labels": {"x": "y"},
    "annotations": {"k": "v"},
    "finalizers": ["a/b"],
    "ownerReferences": [_OWNER],
}
_POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_RBAC = "rbac.authorization.k8s.io"

GOOD: dict[str, dict[str, Any]] = {
    f"{CORE}/configmaps/a": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _META, "data": {"a": "b"}},
    f"{CORE}/secrets/a": {"apiVersion": "v1", "kind": "Secret", "metadata": _META, "stringData": {"a": "b"}},
    f"{CORE}/services/a": {"apiVersion": "v1", "kind": "Service", "metadata": _META, "spec": {"ports": [{"port": 80}]}},
    f"{CORE}/events/a": {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "firstTimestamp": "2020-01-01T00:00:00Z",
        "series": {"count": 1, "lastObservedTime": "2020-01-01T00:00:00.000000Z"},
    },
    f"{THINGS}/a": {
        "apiVersion": "fuzz.example.com/v1",
        "kind": "Thing",
        "metadata": {
            **_META,
            "managedFields": [{**_ENTRY, "fieldsV1": {"f:spec": {"f:list": {'k:{"name":"q"}': {}}}}}],
        },
        "spec": {"n": 1, "s": "abc", "list": [{"name": "q", "v": 1.5}], "any": {"deep": [1, {}]}, "port": "http"},
        "status": {"n": 1},
    },
    f"{THINGS}/a/scale": {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": 2},
    },
    f"{LEASES}/a": {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": _META,
        "spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"},
    },
    f"{DEPLOYMENTS}/a": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _META,
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": _POD},
    },
    f"{ROLE_BINDINGS}/a": {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": _META,
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "u", "apiGroup": _RBAC}],
    },
}


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Every place in a value, the whole included."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*here, key))


def replaced(value: Any, place: Place, new: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], new)
    return copy


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, Any]:
    """The path of an item, and an object that could almost be written there."""
    path, obj = draw(st.sampled_from(list(GOOD.items())))
    value: Any = obj
    for _ in range(draw(st.integers(1, 3))):
        value = replaced(value, draw(st.sampled_from(list(places(value)))), draw(VALUES | JUNK))
    return path, value
