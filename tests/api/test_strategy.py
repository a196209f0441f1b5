"""What every kind's strategy does, shown on kinds without rules of their own."""

import pytest

from steersman.api.kinds import builtin_kind
from steersman.apimachinery import field_selectors
from steersman.apimachinery.selectors import SelectorError

LIVE = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2024-01-01T00:00:00Z"}


SPEC = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}


def deployment(spec=None, **metadata):
    kind = builtin_kind("apps", "v1", "Deployment")
    obj, _ = kind.decode({"metadata": {**LIVE, **metadata}, "spec": {**SPEC, **(spec or {})}})
    kind.strategy.default(obj)
    return obj


def test_status_and_generation_are_not_the_clients_on_create():
    kind = builtin_kind("apps", "v1", "Deployment")
    obj = {**deployment(generation=9), "status": {"replicas": 4}}
    obj["metadata"] = {"name": "a", "namespace": "n", "uid": "u", "generation": 9}
    assert kind.strategy.before_create(obj) == []
    assert obj["status"] == {}
    assert obj["metadata"]["generation"] == 1


def test_kinds_without_generation_keep_what_they_are_given():
    kind = builtin_kind("", "v1", "ConfigMap")
    obj, _ = kind.decode({"metadata": {"name": "a", "namespace": "n", "generation": 9}})
    assert kind.strategy.before_create(obj) == []
    assert obj["metadata"]["generation"] == 9


@pytest.mark.parametrize(
    ("spec", "metadata", "generation"),
    [
        ({}, {}, 3),
        ({"replicas": 2}, {}, 4),
        ({}, {"annotations": {"a": "b"}}, 4),
        ({}, {"labels": {"a": "b"}}, 3),
    ],
)
def test_a_deployments_generation_follows_spec_and_annotations(spec, metadata, generation):
    strategy = builtin_kind("apps", "v1", "Deployment").strategy
    old, new = deployment(generation=3), deployment(spec, **metadata, generation=77)
    assert strategy.before_update(new, old) == []
    assert new["metadata"]["generation"] == generation


def test_what_clients_cannot_change_is_carried_over():
    strategy = builtin_kind("apps", "v1", "Deployment").strategy
    held = {"deletionTimestamp": "2024-02-01T00:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["x.io/y"]}
    old = {**deployment(**held), "status": {"replicas": 3}}
    new = {**deployment(creationTimestamp="2030-01-01T00:00:00Z", uid=None), "status": {"replicas": 9}}
    assert strategy.before_update(new, old) == []
    assert new["status"] == {"replicas": 3}
    assert new["metadata"] == {**LIVE, "deletionTimestamp": "2024-02-01T00:00:00Z", "deletionGracePeriodSeconds": 0}


def test_errors_are_told_once_though_found_twice():
    strategy = builtin_kind("apps", "v1", "Deployment").strategy
    errors = strategy.before_update(deployment(labels={"/x": ""}, uid="other", finalizers=["plain"]), deployment())
    assert [error.field for error in errors] == ["metadata.labels", "metadata.uid", "metadata.finalizers[0]"]


def test_status_is_all_that_its_subresource_changes():
    strategy = builtin_kind("apps", "v1", "Deployment").strategy.subresource("status")
    old = deployment({"replicas": 1}, generation=2)
    new = {**deployment({"replicas": 5}), "status": {"replicas": 4}}
    assert strategy.before_update(new, old) == []
    assert (new["spec"], new["status"], new["metadata"]["generation"]) == (old["spec"], {"replicas": 4}, 2)


def test_kinds_without_status_have_no_status_strategy():
    with pytest.raises(KeyError):
        builtin_kind("", "v1", "ConfigMap").strategy.subresource("status")


@pytest.mark.parametrize(
    ("group", "kind", "create_on_update", "unconditional"),
    [
        ("", "ConfigMap", False, True),
        ("", "Service", True, True),
        ("coordination.k8s.io", "Lease", True, False),
        ("rbac.authorization.k8s.io", "Role", True, True),
        ("policy", "PodDisruptionBudget", False, False),
    ],
)
def test_flags(group, kind, create_on_update, unconditional):
    strategy = builtin_kind(group, "v1", kind).strategy
    assert strategy.allow_create_on_update is create_on_update
    assert strategy.allow_unconditional_update is unconditional


@pytest.mark.parametrize(
    ("group", "kind", "finalizers", "accepted"),
    [
        ("", "ConfigMap", ["plain"], False),
        ("", "ConfigMap", ["x.io/plain", "orphan"], True),
        ("coordination.k8s.io", "Lease", ["plain"], True),
    ],
)
def test_finalizers_of_most_groups_are_qualified(group, kind, finalizers, accepted):
    builtin = builtin_kind(group, "v1", kind)
    obj, _ = builtin.decode({"metadata": {"name": "a", "namespace": "n", "finalizers": finalizers}})
    assert (builtin.strategy.before_create(obj) == []) is accepted


@pytest.mark.parametrize(("kind", "name", "accepted"), [("Service", "a.b", False), ("ConfigMap", "a.b", True)])
def test_names_follow_the_kind(kind, name, accepted):
    builtin = builtin_kind("", "v1", kind)
    obj, _ = builtin.decode({"metadata": {"name": name, "namespace": "n"}})
    assert (builtin.strategy.before_create(obj) == []) is accepted


@pytest.mark.parametrize(
    ("kind", "selector", "message"),
    [
        ("ConfigMap", "data.k=v", '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("Pod", "spec.x=v", "field label not supported: spec.x"),
        ("Namespace", "metadata.namespace=v", "field label not supported: metadata.namespace"),
    ],
)
def test_fields_that_cannot_be_selected_by(kind, selector, message):
    with pytest.raises(SelectorError) as caught:
        builtin_kind("", "v1", kind).strategy.select(field_selectors.parse(selector))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("kind", "obj", "selector", "matches"),
    [
        ("ConfigMap", {"metadata": {"name": "a"}}, "metadata.name=a", True),
        ("Secret", {"metadata": {}, "type": "Opaque"}, "type!=Opaque", False),
        ("Pod", {"metadata": {}, "spec": {"nodeName": "n1"}}, "spec.nodeName=n1", True),
        ("Pod", {"metadata": {}, "spec": {}}, "spec.nodeName=", True),
        ("Node", {"metadata": {}, "spec": {}}, "spec.unschedulable=false", True),
        ("Node", {"metadata": {}, "spec": {"unschedulable": True}}, "spec.unschedulable=true", True),
        ("Pod", {"metadata": {}}, "spec.hostNetwork=false", True),
    ],
)
def test_field_selectors(kind, obj, selector, matches):
    strategy = builtin_kind("", "v1", kind).strategy
    found = strategy.select(field_selectors.parse(selector))
    assert found.matches(strategy.fields_of(obj)) is matches
