from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from steersman.client import Condition, CustomResource, DecodeError, Model, ObjectMeta, Resource, custom_resource
from steersman.client.models import KubernetesObject, MicroTime, Time, set_condition


class Port(BaseModel):
    name: str
    number: int = 80


class Nested(BaseModel):
    size: int = 0


class Spec(BaseModel):
    """Knows some of the fields; pydantic's default is to drop the others."""

    version: str = ""
    replicas: int = 1
    ports: list[Port] = Field(default_factory=list)
    by_name: dict[str, Port] = Field(default_factory=dict, alias="byName")
    nested: Nested | None = None


class Status(Model):
    ready: int = 0
    last_seen: Time | None = None
    conditions: list[Condition] = Field(default_factory=list)


@custom_resource("myorg.io/v1")
class MyApp(CustomResource[Spec, Status]): ...


def stored(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "myorg.io/v1",
        "kind": "MyApp",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-29T20:41:38Z",
            "managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
            "selfLink": "unknown to the model",
        },
        "spec": spec,
    }


JSON = st.recursive(
    st.booleans() | st.integers(-100, 100) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
PORT = st.fixed_dictionaries({"name": st.text(max_size=3)}, optional={"number": st.integers(), "x": JSON})
SPEC = st.fixed_dictionaries(
    {},
    optional={
        "version": st.text(max_size=3),
        "replicas": st.integers(),
        "ports": st.lists(PORT, max_size=3),
        "byName": st.dictionaries(st.text(max_size=3), PORT, max_size=3),
        "nested": st.none() | st.fixed_dictionaries({}, optional={"size": st.integers(), "y": JSON}),
        "unknown": JSON,
    },
)


@given(SPEC)
def test_what_was_read_is_written_back_as_it_was(spec: dict[str, Any]) -> None:
    obj = stored(**spec)
    assert MyApp.from_wire(copy.deepcopy(obj)).to_wire() == obj


@given(SPEC, st.integers(2, 9))
def test_a_change_changes_nothing_else(spec: dict[str, Any], replicas: int) -> None:
    obj = stored(**spec)
    app = MyApp.from_wire(copy.deepcopy(obj))
    app.spec.replicas = replicas
    assert app.to_wire() == stored(**{**spec, "replicas": replicas})


@given(
    spec=SPEC, status=st.none() | st.fixed_dictionaries({}, optional={"ready": st.integers(0, 3), "extra": st.just(1)})
)
def test_one_field_is_written_as_in_the_whole(spec: dict[str, Any], status: dict[str, Any] | None) -> None:
    obj = stored(**spec)
    if status is not None:
        obj["status"] = status
    app = MyApp.from_wire(obj)
    for name in ("spec", "status", "metadata", "kind"):
        assert app.field_to_wire(name) == app.to_wire().get(name)
    app.status.ready = 5
    assert app.field_to_wire("status") == app.to_wire()["status"]
    app.status = None  # type: ignore[assignment]
    assert app.field_to_wire("status") is None


def test_unknown_fields_follow_their_list_items() -> None:
    app = MyApp.from_wire(stored(ports=[{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "c", "x": 3}]))
    app.spec.ports.reverse()
    del app.spec.ports[1]
    app.spec.ports.insert(0, Port(name="new"))
    assert app.to_wire()["spec"]["ports"] == [
        {"name": "new", "number": 80},
        {"name": "c", "x": 3},
        {"name": "a", "x": 1},
    ]


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_keeps_unknown_fields(deep: bool) -> None:
    obj = stored(ports=[{"name": "a", "x": 1}], nested={"size": 1, "y": 2}, z=3)
    app = MyApp.from_wire(copy.deepcopy(obj)).model_copy(deep=deep)
    assert app.to_wire() == obj


def test_a_part_that_was_replaced_keeps_its_places_unknown_fields() -> None:
    app = MyApp.from_wire(stored(version="1", unknown="kept", nested={"size": 1, "y": 2}))
    app.spec = app.spec.model_copy(update={"version": "2", "nested": Nested(size=5)})
    assert app.to_wire()["spec"] == {"version": "2", "unknown": "kept", "nested": {"size": 5, "y": 2}}


def test_a_field_set_to_none_is_removed() -> None:
    app = MyApp.from_wire(stored(nested={"size": 1}))
    app.spec.nested = None
    assert "nested" not in app.to_wire()["spec"]


def test_a_default_changed_in_place_is_written() -> None:
    app = MyApp.from_wire(stored())
    app.spec.ports.append(Port(name="a"))
    app.status.ready = 0
    assert app.to_wire()["spec"] == {"ports": [{"name": "a", "number": 80}]}
    assert app.to_wire()["status"] == {"ready": 0}


def test_extra_fields_of_a_model_that_allows_them_can_be_removed() -> None:
    app = MyApp.from_wire(stored())
    assert app.metadata.model_extra == {"selfLink": "unknown to the model"}
    del app.metadata.selfLink  # type: ignore[attr-defined]
    assert "selfLink" not in app.to_wire()["metadata"]


def test_a_new_object_states_its_kind_and_its_defaults_but_no_status() -> None:
    app = MyApp(metadata=ObjectMeta(name="a", labels={"x": "y"}), spec=Spec(version="1"))
    assert app.to_wire() == {
        "apiVersion": "myorg.io/v1",
        "kind": "MyApp",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": {"version": "1", "replicas": 1, "ports": []},
    }
    assert app.status.ready == 0


def test_null_stands_for_an_absent_field() -> None:
    obj = {**stored(version="1"), "status": {"conditions": None, "ready": 1, "lastSeen": None, "else": None}}
    app = MyApp.from_wire(copy.deepcopy(obj))
    assert app.status.conditions == []
    assert app.to_wire()["status"] == {"conditions": None, "ready": 1, "lastSeen": None}
    app.status.conditions.append(Condition(type="Ready", status="True", reason="R"))
    assert len(app.to_wire()["status"]["conditions"]) == 1


def test_objects_are_equal_by_their_fields() -> None:
    assert MyApp.from_wire(stored(version="1")) == MyApp.from_wire(stored(version="1"))
    assert MyApp.from_wire(stored(version="1")) != MyApp.from_wire(stored(version="2"))


def test_an_object_that_does_not_fit_is_shown() -> None:
    with pytest.raises(DecodeError, match=r"^MyApp: spec\.replicas: Input should be a valid integer[^:]*$") as caught:
        MyApp.from_wire(stored(replicas="many"))
    assert caught.value.raw == stored(replicas="many")


def test_the_kind_is_the_classs_name_unless_it_is_given() -> None:
    @custom_resource("apps/v1", kind="Deployment", plural="deployments", namespaced=True)
    class Workload(KubernetesObject): ...

    assert MyApp.api_kind() == Resource("myorg.io/v1", "MyApp")
    assert Workload.api_kind() == Resource("apps/v1", "Deployment", "deployments", True)
    assert Workload().kind == "Deployment"


def test_a_class_without_a_kind_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="Bare names no kind: decorate it with @custom_resource"):

        class Bare(KubernetesObject): ...

        Bare.api_kind()


def test_a_status_with_required_fields_stays_none() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        phase: str

    @custom_resource("myorg.io/v1")
    class Other(CustomResource[Spec, Strict]): ...

    other = Other.from_wire({**stored(), "kind": "Other"})
    assert getattr(other, "status") is None  # noqa: B009 -- its type says that it never is
    assert "status" not in other.to_wire()


def test_an_object_without_a_spec_has_an_empty_one_that_is_not_written() -> None:
    raw = {key: value for key, value in stored().items() if key != "spec"}
    app = MyApp.from_wire(raw)
    assert app.spec == Spec()
    assert app.to_wire() == MyApp.from_wire(raw).to_wire() == raw
    app.spec.replicas = 7
    assert app.to_wire() == {**raw, "spec": {"replicas": 7}}

    class Strict(Model):
        image: str

    @custom_resource("myorg.io/v1", kind="MyApp")
    class Other(CustomResource[Strict, Model]): ...

    with pytest.raises(DecodeError, match="Other: spec: Field required"):
        Other.from_wire(raw)


def test_times_are_written_as_kubernetes_writes_them() -> None:
    class Times(Model):
        time: Time
        micro: MicroTime

    moment = datetime(2026, 11, 29, 21, 41, 38, 5, timezone(timedelta(hours=1)))
    assert Times(time=moment, micro=moment).model_dump(mode="json") == {
        "time": "2026-11-29T20:41:38Z",
        "micro": "2026-11-29T20:41:38.000005Z",
    }


def test_a_time_without_a_zone_is_refused() -> None:
    class Times(Model):
        time: Time

    with pytest.raises(ValueError, match="needs a time zone"):
        Times(time=datetime(2026, 1, 1)).model_dump_json()


def test_a_condition_moves_its_transition_time_with_its_status_only() -> None:
    def ready(status: str, message: str, day: int) -> Condition:
        moment = datetime(2026, 1, day, tzinfo=UTC)
        return Condition(type="Ready", status=status, reason="R", message=message, last_transition_time=moment)

    conditions: list[Condition] = []
    assert set_condition(conditions, ready("False", "starting", 1))
    assert not set_condition(conditions, ready("False", "starting", 2))
    assert set_condition(conditions, ready("False", "still starting", 3))
    assert conditions[0].last_transition_time.day == 1
    assert set_condition(conditions, ready("True", "up", 4))
    assert [(c.status, c.last_transition_time.day) for c in conditions] == [("True", 4)]
