from __future__ import annotations

import copy
import re
from types import MappingProxyType
from typing import Any

import pytest

from steersman.apimachinery.apply.managers import Writer
from steersman.apimachinery.apply.server_side import LAST_APPLIED, ApplyConflict, apply
from steersman.apimachinery.errors import ApiError, BadRequest

from .test_managers import MAIN, STATUS, T0, T1, V1, TwoVersions, entry, spec, widget
from .views import NUMBER, TEXT, VIEW, struct

Object = dict[str, Any]


def config(values: Any = None, **more: Any) -> Object:
    out = {"apiVersion": V1, "kind": "Widget", "metadata": {"name": "w", **more.pop("metadata", {})}, **more}
    return out if values is None else {**out, "spec": values}


def run(live: Object | None, applied: Object, manager: str = "m", subresource: str = "", **options: Any) -> Object:
    before = copy.deepcopy((live, applied))
    settings = {"kind": "Widget", "view": VIEW, "api_version": V1, "now": T1, "reset": STATUS if subresource else MAIN}
    try:
        return apply(live, applied, Writer(manager, "Apply", subresource), **{**settings, **options})
    finally:
        assert (live, applied) == before


def owners(obj: Object) -> list[Object]:
    found: list[Object] = obj["metadata"].get("managedFields", [])
    return found


def test_a_first_apply_creates() -> None:
    result = run(None, config({"a": "1", "nested": {}, "tags": ["x"]}, metadata={"labels": {"l": "1"}}))
    assert result["spec"] == {"a": "1", "nested": {}, "tags": ["x"]}
    fields = {"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:a": {}, "f:nested": {}, "f:tags": {'v:"x"': {}}}}
    assert owners(result) == [entry("m", fields, "Apply", T1)]


def test_what_is_no_longer_applied_goes() -> None:
    live = run(None, config({"a": "1", "n": 1, "parts": [{"name": "a"}, {"name": "b"}]}))
    result = run(live, config({"n": 1, "parts": [{"name": "b"}]}))
    assert result["spec"] == {"n": 1, "parts": [{"name": "b"}]}


def test_what_another_owns_stays() -> None:
    live = widget({"a": "1", "n": 1}, [entry("m", spec("a", "n"), "Apply"), entry("other", spec("a"))])
    result = run(live, config({}))
    assert result["spec"] == {"a": "1"}
    assert owners(result) == [entry("m", {"f:spec": {}}, "Apply", T1), entry("other", spec("a"))]


def test_the_same_again_changes_nothing() -> None:
    live = run(None, config({"a": "1"}))
    assert run(live, config({"a": "1"}), now="2026-01-01T00:00:09Z") == live


def test_sharing_a_value_gives_an_entry_without_a_time() -> None:
    live = run(None, config({"a": "1"}), "one")
    result = run(live, config({"a": "1"}), "two")
    two = {name: value for name, value in entry("two", spec("a"), "Apply").items() if name != "time"}
    assert owners(result) == [two, *owners(live)]


def test_a_conflict_names_the_managers_and_fields() -> None:
    live = widget(
        {"a": "1", "n": 1, "parts": [{"name": "x", "value": "1"}]},
        [
            entry("z", {"f:spec": {"f:n": {}, "f:a": {}}}, "Apply"),
            entry("b", {"f:spec": {"f:parts": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:value": {}}}}}),
        ],
    )
    with pytest.raises(ApplyConflict) as caught:
        run(live, config({"a": "2", "n": 2, "parts": [{"name": "x", "value": "2"}]}))
    assert caught.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "b" using example.com/v1:\n- .spec.parts[name="x"].value\n'
        'conflicts with "z":\n- .spec.a\n- .spec.n'
    )
    assert caught.value.causes[0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "b" using example.com/v1',
        "field": '.spec.parts[name="x"].value',
    }
    with pytest.raises(ApplyConflict) as caught:
        run(live, config({"a": "2"}))
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "z": .spec.a'


def test_force_takes_the_fields() -> None:
    live = widget({"a": "1"}, [entry("one", spec("a"), "Apply")])
    result = run(live, config({"a": "2"}), force=True)
    assert result["spec"] == {"a": "2"}
    assert owners(result) == [entry("m", spec("a"), "Apply", T1)]


def test_an_untracked_object_belongs_to_a_manager_of_its_own() -> None:
    live = widget({"a": "1", "n": 1})
    result = run(live, config({"n": 1}))
    before = entry("before-first-apply", {"f:spec": {".": {}, "f:a": {}, "f:n": {}}}, time=T1)
    assert owners(result)[1:] == [before]
    with pytest.raises(ApplyConflict, match=re.escape('"before-first-apply" using example.com/v1: .spec.a')):
        run(live, config({"a": "2"}))


def test_status_ignores_the_rest() -> None:
    live = widget({"a": "1"}, [entry("m", spec("a"), "Apply")])
    result = run(live, config({"a": "1"}, status={"phase": "x"}), subresource="status")
    status = entry("m", {"f:status": {"f:phase": {}}}, "Apply", T1, subresource="status")
    assert owners(result) == [entry("m", spec("a"), "Apply"), status]
    with pytest.raises(ApplyConflict, match=re.escape('conflict with "m" with subresource "status": .status.phase')):
        run(result, config(status={"phase": "y"}), "other", subresource="status")


def test_an_apply_that_owns_nothing_leaves_no_managed_fields() -> None:
    live = widget({"a": "1"}, [entry("m", spec("a"), "Apply")])
    result = run(live, config({}))
    assert "a" not in (result["spec"] or {})
    assert owners(run(live, config())) == []


def test_entries_of_other_versions_are_pruned_in_theirs() -> None:
    live = widget({"a": "1"}, [entry("m", spec("b"), "Apply", version="example.com/v2")])
    result = run(live, config({"n": 1}), versions=BackAndForth())
    assert result["spec"] == {"n": 1}
    assert owners(result) == [entry("m", spec("n"), "Apply", T1)]
    with pytest.raises(ApplyConflict, match=re.escape('conflict with "m": .spec.b')):
        run(live, config({"a": "2"}), "other", versions=BackAndForth())


class BackAndForth(TwoVersions):
    """v2 has spec.b for spec.a, and keeps spec.n."""

    schema = struct(spec=struct(b=TEXT, n=NUMBER))
    names = MappingProxyType({V1: ("b", "a"), "example.com/v2": ("a", "b")})

    def convert(self, obj: Object, api_version: str) -> Object:
        before, after = self.names[api_version]
        values = {after if name == before else name: value for name, value in (obj.get("spec") or {}).items()}
        return {**obj, "apiVersion": api_version, "spec": values}


def test_a_version_that_cannot_be_reached_fails() -> None:
    live = widget({"a": "1"}, [entry("m", spec("b"), "Apply", version="example.com/v3")])
    with pytest.raises(ApiError, match="no such version"):
        run(live, config({"a": "1"}), versions=TwoVersions())


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"kind": "Gadget"}, "example.com/v1, Kind=Gadget"),
        ({"apiVersion": "v2"}, "/v2, Kind=Widget"),
        ({"apiVersion": None}, "/, Kind=Widget"),
    ],
)
def test_another_type_is_refused(change: Object, name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        run(None, {**config(), **change})
    assert caught.value.message == f"invalid object type: {name}"


def test_managed_fields_may_not_be_applied() -> None:
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        run(None, config({}, metadata={"managedFields": []}))
    assert owners(run(None, config({"a": "1"}, metadata={"managedFields": None})))


def test_what_does_not_fit_the_schema_is_an_error_without_a_reason() -> None:
    with pytest.raises(ApiError) as caught:
        run(None, config({"a": 1}, metadata={"namespace": "ns"}))
    assert (caught.value.code, caught.value.reason) == (500, "")
    assert caught.value.message == (
        "failed to create typed patch object (ns/w; example.com/v1, Kind=Widget): "
        ".spec.a: expected string, got &value.valueUnstructured{Value:1}"
    )


def client_side_applied() -> Object:
    last = '{"apiVersion":"example.com/v1","kind":"Widget","spec":{"a":"1","n":1}}'
    live = widget({"a": "1", "n": 1}, [entry("kubectl-client-side-apply", spec("a", "n"))])
    live["metadata"]["annotations"] = {LAST_APPLIED: last}
    return live


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    result = run(client_side_applied(), config({"a": "2", "percent": "<5%"}), "kubectl")
    assert result["spec"] == {"a": "2", "n": 1, "percent": "<5%"}
    assert result["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},'
        '"spec":{"a":"2","percent":"\\u003c5%"}}\n'
    )
    assert owners(result)[0] == entry("kubectl", spec("a", "percent"), "Apply", T1)


def test_other_managers_do_not() -> None:
    with pytest.raises(ApplyConflict):
        run(client_side_applied(), config({"a": "2"}), "argo")
    changed = client_side_applied()
    changed["spec"]["n"] = 5
    with pytest.raises(ApplyConflict) as caught:
        run(changed, config({"a": "2", "n": 6}), "kubectl")
    assert [cause["field"] for cause in caught.value.causes] == [".spec.n"]


def test_times_of_a_fresh_entry() -> None:
    assert owners(run(widget({"n": 1}, [entry("m", spec("n"), "Apply", T0)]), config({"n": 2})))[0]["time"] == T1
