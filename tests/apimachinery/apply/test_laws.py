"""The laws of server-side apply, for any objects and configurations."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.apimachinery.apply.compare import compare

from .test_managers import entry, spec, widget
from .test_merge import specs
from .test_server_side import config, owners, run
from .views import VIEW

LATER = "2031-01-01T00:00:00Z"
MANAGERS = ("alpha", "beta", "gamma")
Object = dict[str, Any]
# An empty map or list that is applied counts for what an owner gives up: the scenarios tell what happens then.
filled = specs.map(lambda values: {name: value for name, value in values.items() if value})
steps = st.lists(st.tuples(st.sampled_from(MANAGERS), filled), max_size=4)
no_deadline = settings(deadline=None)


START = widget({"n": 1}, [entry("other", spec("n"))])


def without_nulls(value: Any) -> Any:
    """As a typed object is read back: what lost its last field is not there."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def applied(live: Object, manager: str, values: Any, **options: Any) -> Object:
    return run(live, config(values), manager, force=True, complete=without_nulls, **options)


def after(taken: list[tuple[str, Any]], live: Object = START) -> Object:
    for manager, values in taken:
        live = applied(live, manager, values)
    return live


def unordered(obj: Object) -> Object:
    """The object with its sets and lists by key in one order."""
    values = dict(obj.get("spec") or {})
    for name in ("tags", "parts"):
        if name in values:
            values[name] = sorted(values[name], key=str)
    return {**obj, "spec": values}


@no_deadline
@given(steps, st.sampled_from(MANAGERS), filled)
def test_apply_is_idempotent(taken: list[tuple[str, Any]], manager: str, values: Any) -> None:
    once = applied(after(taken), manager, values)
    again = applied(once, manager, values, now=LATER)
    assert again == once


@no_deadline
@given(steps, filled, filled)
def test_managers_with_disjoint_fields_commute(taken: list[tuple[str, Any]], first: Any, second: Any) -> None:
    second = {name: value for name, value in second.items() if name not in first}
    start = after([(MANAGERS[2], values) for _, values in taken])
    one = applied(applied(start, "alpha", first), "beta", second)
    other = applied(applied(start, "beta", second), "alpha", first)
    assert unordered(one) == unordered(other)


@no_deadline
@given(steps)
def test_what_no_one_owns_any_more_is_gone(taken: list[tuple[str, Any]]) -> None:
    left = after([*taken, *((manager, {}) for manager in MANAGERS)])
    assert left["spec"] == {"n": 1}


@no_deadline
@given(filled, filled)
def test_what_no_one_owns_is_not_lost_to_a_new_applier(unowned: Any, values: Any) -> None:
    """Giving up a part of a list may lose the rest of it, as the scenario unowned-beside-what-is-given-up tells."""
    live = widget({**unowned, "n": 1}, [entry("other", spec("n"))])
    change = compare(VIEW, {"spec": live["spec"]}, {"spec": applied(live, "alpha", values)["spec"]})
    assert not change.removed


@no_deadline
@given(steps, filled)
def test_every_applied_field_has_an_owner(taken: list[tuple[str, Any]], values: Any) -> None:
    result = applied(after(taken), "alpha", values)
    (mine,) = [each for each in owners(result) if each["manager"] == "alpha"] or [{"fieldsV1": {}}]
    assert set(mine["fieldsV1"].get("f:spec", {})) - {"."} == {f"f:{name}" for name in values}
