from datetime import UTC, datetime

import pytest

from steersman.apimachinery import field_selectors
from steersman.apimachinery.selectors import SelectorError

TIME = "2024-01-01T00:00:00.000000Z"
COMPLETE = {
    "eventTime": TIME,
    "reportingController": "x.io/op",
    "reportingInstance": "op-1",
    "action": "Reconcile",
    "reason": "Made",
    "regarding": {"kind": "Widget", "name": "w", "namespace": "n"},
    "note": "hello",
    "type": "Normal",
}


@pytest.fixture
def core_events(lifecycle):
    return lifecycle("", "Event")


@pytest.fixture
def new_events(lifecycle):
    return lifecycle("events.k8s.io", "Event")


def test_both_apis_show_one_object(core_events, new_events):
    shown, errors = new_events.create(**COMPLETE)
    assert errors == []
    assert shown["deprecatedSource"] == {}
    assert shown["deprecatedFirstTimestamp"] is None
    stored = new_events.kind.strategy.to_storage(shown)
    assert stored == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": shown["metadata"],
        "involvedObject": {"kind": "Widget", "namespace": "n", "name": "w"},
        "reason": "Made",
        "message": "hello",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": TIME,
        "action": "Reconcile",
        "reportingComponent": "x.io/op",
        "reportingInstance": "op-1",
    }
    assert new_events.kind.strategy.from_storage(stored) == shown
    assert core_events.kind.strategy.to_storage(stored) is stored


def test_an_old_recorder_needs_little(core_events):
    stored, errors = core_events.create(
        involvedObject={"namespace": "n"}, count=1, firstTimestamp="2024-01-01T00:00:00Z", source={"component": "op"}
    )
    assert errors == []
    assert stored["eventTime"] is None
    assert stored["reportingComponent"] == ""


@pytest.mark.parametrize("involved", [{}, {"namespace": "other"}])
def test_the_namespaces_must_agree(core_events, involved):
    _, errors = core_events.create(involvedObject=involved)
    shown = involved.get("namespace", "")
    assert errors == [f'involvedObject.namespace: Invalid value: "{shown}": does not match event.namespace']


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({"type": "Strange"}, ['type: Invalid value: "": has invalid value: Strange']),
        ({"eventTime": None}, ["eventTime: Required value"]),
        ({"action": "", "reason": ""}, ["action: Required value", "reason: Required value"]),
        ({"note": "n" * 1025}, ['message: Invalid value: "": can have at most 1024 characters']),
        ({"reportingInstance": "r" * 129}, ['reportingInstance: Invalid value: "": can have at most 128 characters']),
        ({"deprecatedCount": 1}, ['count: Invalid value: "": needs to be unset']),
        (
            {"series": {"count": 1}},
            [
                'series.count: Invalid value: "": should be at least 2',
                "series.lastObservedTime: Required value",
            ],
        ),
    ],
)
def test_the_new_api_demands_complete_events(new_events, change, errors):
    assert new_events.create(**{**COMPLETE, **change})[1] == errors


def test_the_controller_has_another_name_in_each_api(core_events, new_events):
    _, errors = new_events.create(**{**COMPLETE, "reportingController": ""})
    assert errors[0] == "reportingController: Required value"
    _, errors = core_events.create(
        eventTime=TIME, involvedObject={"namespace": "n"}, action="a", reason="r", reportingInstance="i"
    )
    assert errors[0] == "reportingComponent: Required value"


def test_little_but_the_series_may_change(new_events):
    old, _ = new_events.create(**COMPLETE)
    series = {"count": 2, "lastObservedTime": TIME}
    assert new_events.update(old, **COMPLETE, series=series)[1] == []
    _, errors = new_events.update(old, **{**COMPLETE, "note": "other", "regarding": {"kind": "X", "namespace": "n"}})
    reference = '{"Kind":"X","Namespace":"n","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}'
    assert errors == [
        f"involvedObject: Invalid value: {reference}: field is immutable",
        'message: Invalid value: "other": field is immutable',
    ]


def test_the_core_api_may_change_anything(core_events):
    old, _ = core_events.create(involvedObject={"namespace": "n"}, count=1)
    assert core_events.update(old, involvedObject={"namespace": "n", "name": "x"}, count=2)[1] == []


@pytest.mark.parametrize(
    ("group", "selector", "matches"),
    [
        ("", "involvedObject.name=w,reason=Made", True),
        ("", "source=x.io/op", True),
        ("events.k8s.io", "regarding.name=w,reportingController=x.io/op", True),
        ("events.k8s.io", "type=Warning", False),
    ],
)
def test_field_selectors_read_each_form(lifecycle, new_events, group, selector, matches):
    shown, _ = new_events.create(**COMPLETE)
    strategy = lifecycle(group, "Event").kind.strategy
    obj = shown if group else new_events.kind.strategy.to_storage(shown)
    assert strategy.select(field_selectors.parse(selector)).matches(strategy.fields_of(obj)) is matches


@pytest.mark.parametrize(("group", "field"), [("", "message"), ("", "regarding.name"), ("events.k8s.io", "source")])
def test_fields_that_events_cannot_be_selected_by(lifecycle, group, field):
    with pytest.raises(SelectorError, match=f"field label not supported: {field}"):
        lifecycle(group, "Event").kind.strategy.select(field_selectors.parse(f"{field}=x"))


def test_a_row_prefers_the_series(new_events):
    now = datetime(2024, 1, 1, 0, 5, tzinfo=UTC)
    shown, _ = new_events.create(**COMPLETE, series={"count": 7, "lastObservedTime": "2024-01-01T00:04:00.000000Z"})
    assert new_events.kind.strategy.row(shown, now) == [
        "60s",
        "Normal",
        "Made",
        "widget/w",
        "",
        "x.io/op, op-1",
        "hello",
        "5m",
        7,
        "a",
    ]
