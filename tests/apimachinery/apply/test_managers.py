from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from steersman.apimachinery.apply.fieldset import FieldSet
from steersman.apimachinery.apply.managers import OneSchema, Writer, restore_times, track_update
from steersman.apimachinery.apply.names import manager_name, validate_field_manager
from steersman.apimachinery.apply.typed import TypeView, from_crd
from steersman.apimachinery.errors import InternalError
from steersman.apimachinery.meta import validate_managed_fields

from .views import META, SCHEMA, TEXT, VIEW, struct

V1, T0, T1 = "example.com/v1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
MAIN, STATUS = FieldSet.of(("status",)), FieldSet.of(("metadata",), ("spec",))
Object = dict[str, Any]


def widget(spec: Any = None, managed: Any = None, **more: Any) -> Object:
    metadata = {"name": "w", "uid": "u", "creationTimestamp": T0, **more.pop("metadata", {})}
    if managed is not None:
        metadata["managedFields"] = managed
    return {"apiVersion": V1, "kind": "Widget", "metadata": metadata, "spec": spec or {}, **more}


def entry(
    manager: str, fields: Any, operation: str = "Update", time: str = T0, version: str = V1, **more: str
) -> Object:
    out = {"manager": manager, "operation": operation, "apiVersion": version, "time": time}
    return {**out, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def track(live: Object | None, new: Object, manager: str = "m", subresource: str = "", **options: Any) -> Any:
    options = {"view": VIEW, "api_version": V1, "now": T1, "reset": STATUS if subresource else MAIN, **options}
    before = copy.deepcopy((live, new))
    result = track_update(live, new, Writer(manager, subresource=subresource), **options)
    assert (live, new) == before
    return result


def spec(*names: str) -> Object:
    return {"f:spec": {f"f:{name}": {} for name in names}}


def test_a_create_owns_all_that_it_brings_but_identity() -> None:
    new = widget({"a": "1", "tags": ["x"]}, metadata={"labels": {"l": "1"}}, status={"phase": "x"})
    assert track(None, new) == [
        entry(
            "m",
            {
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
                "f:spec": {".": {}, "f:a": {}, "f:tags": {".": {}, 'v:"x"': {}}},
            },
            time=T1,
        )
    ]


def test_a_create_with_nothing_to_own_tracks_nothing() -> None:
    assert track(None, {"apiVersion": V1, "kind": "Widget", "metadata": {"name": "w"}}) is None


def test_what_an_empty_object_has_already_is_not_added() -> None:
    view = TypeView(VIEW.root, {"spec": {"nested": {}, "labels": None, "a": ""}})
    new = widget({"nested": {"x": "1"}, "labels": {"l": "1"}, "a": ""})
    assert track(None, new, view=view) == [
        entry("m", {"f:spec": {"f:labels": {"f:l": {}}, "f:nested": {"f:x": {}}}}, time=T1)
    ]


def test_changed_fields_go_from_others_to_the_writer() -> None:
    live = widget({"a": "1", "n": 1}, [entry("one", spec("a")), entry("two", spec("n"))])
    assert track(live, widget({"a": "2", "n": 1})) == [entry("two", spec("n")), entry("m", spec("a"), time=T1)]


def test_removed_fields_are_owned_by_no_one_and_give_no_entry() -> None:
    live = widget({"a": "1", "n": 1}, [entry("one", spec("a")), entry("two", spec("n"))])
    assert track(live, widget({"n": 1})) == [entry("two", spec("n"))]


def test_the_same_values_change_no_entry() -> None:
    live = widget({"a": "1"}, [entry("one", spec("a"), "Apply")])
    result = track(live, widget({"a": "1"}))
    assert result == live["metadata"]["managedFields"]
    assert result[0] is live["metadata"]["managedFields"][0]


def test_a_manager_keeps_one_entry_for_its_updates_and_another_for_apply() -> None:
    live = widget({"a": "1", "n": 1}, [entry("m", spec("a"), "Apply"), entry("m", spec("n"))])
    assert track(live, widget({"a": "1", "n": 2, "percent": 1})) == [
        entry("m", spec("a"), "Apply"),
        entry("m", spec("n", "percent"), time=T1),
    ]


def test_the_status_subresource_has_its_own_entry() -> None:
    live = widget({"a": "1"}, [entry("m", spec("a"))])
    new = widget({"a": "2"}, metadata={"labels": {"l": "1"}}, status={"phase": "x"})
    assert track(live, new, subresource="status") == [
        entry("m", spec("a")),
        entry("m", {"f:status": {".": {}, "f:phase": {}}}, time=T1, subresource="status"),
    ]


def test_the_main_resource_never_touches_status() -> None:
    mine = entry("s", {"f:status": {".": {}, "f:phase": {}}}, subresource="status")
    live = widget({"a": "1"}, [mine], status={"phase": "x"})
    assert track(live, widget({"a": "1"}, status={"phase": "y"})) == [mine]
    assert track(live, widget({"a": "1"})) == [mine]


def test_an_object_without_entries_stays_untracked() -> None:
    assert track(widget({"a": "1"}), widget({"a": "2"})) is None


@pytest.mark.parametrize("sent", [[], [{}], [{"manager": "", "time": None}]])
def test_empty_managed_fields_end_tracking(sent: Any) -> None:
    live = widget({"a": "1"}, [entry("one", spec("a"))])
    assert track(live, widget({"a": "2"}, sent)) is None
    assert track(live, widget({"a": "1"}, sent), subresource="status") == live["metadata"]["managedFields"]


@pytest.mark.parametrize(
    "sent",
    [
        [entry("x", {"nonsense": {}})],
        [entry("x", {}, "Replace")],
        [{**entry("x", {}), "fieldsType": "FieldsV2"}],
        [{**entry("x", {}), "apiVersion": ""}],
        [entry("x", {}, time="yesterday")],
        [entry("x", {}, time="2026-01-01T00:00:00")],
        ["text"],
        "text",
    ],
)
def test_invalid_managed_fields_count_as_left_out(sent: Any) -> None:
    live = widget({"a": "1"}, [entry("one", spec("a"))])
    assert track(live, widget({"a": "1"}, sent)) == live["metadata"]["managedFields"]


def test_a_client_may_write_managed_fields() -> None:
    live = widget({"a": "1", "n": 1}, [entry("one", spec("a", "n"))])
    sent = [entry("two", {"f:spec": {"f:n": {}, "f:a": {}, "x:later": {}}}, time="2026-01-01T02:00:00+02:00")]
    assert orjson.dumps(track(live, widget({"a": "1", "n": 1}, sent))) == orjson.dumps([entry("two", spec("a", "n"))])


def test_entries_are_ordered_by_operation_time_and_name() -> None:
    entries = [
        entry("z", spec("a"), "Apply", T1),
        entry("b", spec("n")),
        entry("c", spec("n"), version="example.com/v2"),
        entry("c", {"f:status": {}}, subresource="status"),
        entry("a", spec("percent"), time=T1),
    ]
    new = widget({"a": "1", "n": 1, "percent": 1}, list(reversed(entries)), status={})
    result = track(widget({"a": "1", "n": 1, "percent": 1}, [entry("q", spec("a"))], status={}), new)
    assert result == [entries[0], entries[1], entries[3], entries[2], entries[4]]


def test_the_oldest_updates_merge_when_there_are_more_than_ten_managers() -> None:
    names = [f"k{number:02}" for number in range(12)]
    old = [
        entry(f"m{number:02}", {"f:spec": {"f:labels": {f"f:{name}": {}}}}, time=f"2026-01-01T00:00:{number:02}Z")
        for number, name in enumerate(names[:10])
    ]
    live = widget({"labels": dict.fromkeys(names[:10], "x")}, old)
    result = track(live, widget({"labels": dict.fromkeys(names[:11], "x")}), "new", now="2026-01-02T00:00:00Z")
    merged = entry("ancient-changes", {"f:spec": {"f:labels": {"f:k00": {}, "f:k01": {}}}}, time=old[1]["time"])
    assert result[0] == merged
    assert result[1:9] == old[2:]
    assert len(result) == 10
    live = widget({"labels": dict.fromkeys(names[:11], "x")}, result)
    result = track(live, widget({"labels": dict.fromkeys(names, "x")}), "newer", now="2026-01-03T00:00:00Z")
    assert result[0]["fieldsV1"] == {"f:spec": {"f:labels": {"f:k00": {}, "f:k01": {}, "f:k02": {}}}}
    assert len(result) == 10


def test_apply_entries_do_not_count_towards_the_ten() -> None:
    appliers = [entry(f"a{number}", spec("a"), "Apply") for number in range(12)]
    live = widget({"a": "1"}, appliers)
    assert len(track(live, widget({"a": "1", "n": 1}))) == 13


class TwoVersions:
    """v2 calls spec.a spec.b; v3 cannot be reached."""

    schema = struct(spec=struct(b=TEXT))

    def view(self, api_version: str) -> TypeView | None:
        if api_version.endswith("v3"):
            raise InternalError("no such version")
        return from_crd(self.schema, META) if api_version.endswith("v2") else None

    def convert(self, obj: Object, api_version: str) -> Object:
        return {**obj, "apiVersion": api_version, "spec": {"b": obj["spec"]["a"]} if "a" in obj["spec"] else {}}


def test_entries_of_other_versions_lose_what_changed_there() -> None:
    live = widget({"a": "1"}, [entry("two", spec("b"), version="example.com/v2")])
    assert track(live, widget({"a": "2"}), versions=TwoVersions()) == [entry("m", spec("a"), time=T1)]
    assert track(live, widget({"a": "1", "n": 1}), versions=TwoVersions()) == [
        entry("two", spec("b"), version="example.com/v2"),
        entry("m", spec("n"), time=T1),
    ]


def test_entries_of_a_version_that_is_gone_are_dropped() -> None:
    live = widget({"a": "1"}, [entry("old", spec("a"), version="example.com/v0"), entry("one", spec("a"))])
    assert track(live, widget({"a": "1"}), versions=TwoVersions()) == [entry("one", spec("a"))]


def test_what_cannot_be_converted_leaves_the_entries_as_they_are() -> None:
    live = widget({"a": "1"}, [entry("old", spec("a"), version="example.com/v3"), entry("one", spec("a"))])
    assert track(live, widget({"a": "2"}), versions=TwoVersions()) == live["metadata"]["managedFields"]


def test_versions_with_one_schema_share_the_comparison() -> None:
    live = widget({"a": "1", "n": 1}, [entry("two", spec("a", "n"), version="example.com/v2")])
    result = track(live, widget({"a": "2", "n": 1}), versions=OneSchema(VIEW))
    assert result == [entry("two", spec("n"), version="example.com/v2"), entry("m", spec("a"), time=T1)]


def test_a_field_that_became_atomic_is_owned_whole() -> None:
    atomic = copy.deepcopy(SCHEMA)
    atomic["properties"]["spec"]["properties"]["labels"]["x-kubernetes-map-type"] = "atomic"
    atomic["properties"]["spec"]["properties"]["tags"]["x-kubernetes-list-type"] = "atomic"
    view = from_crd(atomic, META)
    owned = {"f:spec": {"f:labels": {"f:k": {}}, "f:n": {}, "f:tags": {".": {}, 'v:"x"': {}}}}
    values = {"labels": {"k": "1", "l": "1"}, "tags": ["x"], "n": 1}
    live = widget(values, [entry("one", owned, "Apply")])
    same = [entry("one", spec("labels", "n", "tags"), "Apply")]
    for _ in range(2):  # the second time from what the view remembers
        assert track(live, widget(values), view=view) == same
    assert track(live, widget({**values, "labels": {"k": "1"}}), view=view) == [
        entry("one", spec("n", "tags"), "Apply"),
        entry("m", spec("labels"), time=T1),
    ]


def test_times_alone_are_no_change() -> None:
    live = widget({"a": "1"}, [entry("one", spec("a"))])
    later = widget({"a": "1"}, [entry("one", spec("a"), time=T1)])
    assert restore_times(live, later) == live
    for other in (
        widget({"a": "2"}, [entry("one", spec("a"), time=T1)]),
        widget({"a": "1"}, [entry("two", spec("a"), time=T1)]),
        widget({"a": "1"}, [entry("one", spec("n"), time=T1)]),
        widget({"a": "1"}),
    ):
        assert restore_times(live, other) is other


@pytest.mark.parametrize(
    ("parameter", "user_agent", "name"),
    [
        ("mine", "kubectl/1.37", "mine"),
        ("", "kubectl/v1.37.2 (linux/amd64)", "kubectl"),
        ("", "no slash", "no slash"),
        ("", "", "unknown"),
        ("", "/x", "unknown"),
        ("", "a\x07b\u200bc/1", "abc"),
        ("", "x" * 130, "x" * 128),
        ("", "é" * 70, "é" * 64),
        ("", "x" + "é" * 70, "x" + "é" * 63),
    ],
)
def test_manager_name(parameter: str, user_agent: str, name: str) -> None:
    assert manager_name(parameter, user_agent) == name


def test_validation_of_names() -> None:
    assert validate_field_manager("") == []
    assert validate_field_manager("é" * 64) == []
    assert [str(error) for error in validate_field_manager("é" * 65)] == [
        "fieldManager: Too long: may not be more than 128 bytes"
    ]
    assert [str(error) for error in validate_field_manager("é\x07b\t", "manager")] == [
        'manager: Invalid value: "é\\ab\\t": invalid character U+0007 (at position 2)',
        'manager: Invalid value: "é\\ab\\t": invalid character U+0009 (at position 4)',
    ]


def test_validation_of_entries() -> None:
    entries = [
        entry("fine", {}),
        {"manager": "a\tb", "operation": "Patch", "fieldsType": "V9", "subresource": "s" * 257},
        {},
    ]
    assert [str(error) for error in validate_managed_fields(entries)] == [
        'metadata.managedFields[1].operation: Unsupported value: "Patch": supported values: "Apply", "Update"',
        'metadata.managedFields[1].fieldsType: Invalid value: "V9": must be `FieldsV1`',
        'metadata.managedFields[1].manager: Invalid value: "a\\tb": invalid character U+0009 (at position 1)',
        "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
        "metadata.managedFields[2].operation: Required value: must not be empty",
    ]
