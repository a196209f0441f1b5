from __future__ import annotations

from typing import Any

from steersman.apimachinery.apply.managers import Writer, track_update
from steersman.apimachinery.apply.scale import SCALE_VERSION, to_parent, to_scale
from steersman.apimachinery.apply.typed import from_crd

from .test_managers import T0, T1, V1, entry
from .views import META, NUMBER, struct

PATHS = {V1: ("spec", "size"), "example.com/v2": None}
SCALE = from_crd(struct(spec=struct(replicas=NUMBER)), META)


def size(**more: Any) -> dict[str, Any]:
    return {"f:spec": {**more, "f:size": {}}}


def write(parent: list[Any], manager: str, before: int, after: int) -> Any:
    """The parent's entries after `manager` put `after` where the Scale had `before`."""
    live = {"metadata": {"name": "w", "managedFields": to_scale(parent, PATHS)}, "spec": {"replicas": before}}
    new = {"metadata": {"name": "w"}, "spec": {"replicas": after}}
    writer = Writer(manager, subresource="scale")
    scale = track_update(live, new, writer, view=SCALE, api_version=SCALE_VERSION, now=T1)
    return to_parent(parent, scale, PATHS, V1)


def test_the_owner_of_the_replicas_loses_them_to_a_writer_of_scale() -> None:
    parent = [entry("user", size(**{"f:image": {}}), "Apply")]
    scaled = {name: value for name, value in entry("hpa", size(), subresource="scale").items() if name != "time"}
    assert write(parent, "hpa", 2, 3) == [entry("user", {"f:spec": {"f:image": {}}}, "Apply"), scaled]


def test_one_scale_writer_follows_another() -> None:
    parent = write([entry("user", size(), "Apply")], "hpa", 2, 3)
    assert [owner["manager"] for owner in parent] == ["hpa"]
    assert [owner["manager"] for owner in write(parent, "kubectl", 3, 4)] == ["kubectl"]


def test_an_applier_keeps_what_did_not_change() -> None:
    parent = [entry("user", size(), "Apply")]
    assert write(parent, "hpa", 2, 2) == parent


def test_only_owners_of_the_replicas_are_seen_in_a_scale() -> None:
    parent = [
        entry("a", size(), "Apply"),
        entry("b", {"f:spec": {"f:image": {}}}),
        entry("c", size(), version="example.com/v2"),
        entry("d", size(), version="example.com/v0"),
    ]
    seen = to_scale(parent, PATHS)
    assert seen == [entry("a", {"f:spec": {"f:replicas": {}}}, "Apply", T0, SCALE_VERSION)]
    after = to_parent(parent, seen, PATHS, V1)
    assert after is not None
    assert [owner["manager"] for owner in after] == ["a", "b", "c"]


def test_nothing_owned_is_no_managed_fields() -> None:
    assert to_scale(None, PATHS) == []
    assert to_parent(None, [], PATHS, V1) is None
