import pytest

NOT_QUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"


@pytest.fixture
def namespaces(lifecycle):
    return lifecycle("", "Namespace")


def test_a_new_namespace_is_active_and_labelled(namespaces):
    stored, errors = namespaces.create(
        metadata={"labels": {"kubernetes.io/metadata.name": "other", "team": "t"}}, status={"phase": "Terminating"}
    )
    assert errors == []
    assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a", "team": "t"}
    assert stored["spec"] == {"finalizers": ["kubernetes"]}
    assert stored["status"] == {"phase": "Active"}


def test_own_finalizers_come_first(namespaces):
    assert namespaces.create(spec={"finalizers": ["x.io/ns"]})[0]["spec"] == {"finalizers": ["x.io/ns", "kubernetes"]}


def test_a_name_that_is_too_long_is_too_long_for_its_label_too(namespaces):
    _, errors = namespaces.create(metadata={"name": "a" * 64})
    assert [error.split(":")[0] for error in errors] == ["metadata.name", "metadata.labels"]


def test_a_generated_name_is_labelled_in_the_end(namespaces):
    kind = namespaces.kind
    obj, _ = kind.decode({"metadata": {"generateName": "a-"}})
    kind.strategy.default(obj)
    assert "labels" not in obj["metadata"]
    obj["metadata"]["name"] = "a-bcdfg"
    assert kind.strategy.before_create(obj) == []
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a-bcdfg"}


def test_an_update_changes_neither_finalizers_nor_status(namespaces):
    old, _ = namespaces.create(spec={"finalizers": ["x.io/ns"]})
    new, errors = namespaces.update(old, spec={"finalizers": []}, status={"phase": "Terminating"})
    assert errors == []
    assert (new["spec"], new["status"]) == (old["spec"], old["status"])


def test_finalize_changes_finalizers_only(namespaces):
    old, _ = namespaces.create()
    new, errors = namespaces.update(old, "finalize", spec={"finalizers": ["x.io/a"]}, status={"phase": "Terminating"})
    assert errors == []
    assert (new["spec"], new["status"]) == ({"finalizers": ["x.io/a"]}, {"phase": "Active"})


def test_finalizers_are_judged_on_both_paths(namespaces):
    old, errors = namespaces.create(spec={"finalizers": ["plain"]})
    assert errors == [f'spec.finalizers: Invalid value: "plain": {NOT_QUALIFIED}']
    _, errors = namespaces.update(old, "finalize", spec={"finalizers": ["x.io/a", "plain"]})
    assert errors == [f'spec.finalizers[1]: Invalid value: "plain": {NOT_QUALIFIED}']


def test_status_must_fit_the_deletion(namespaces):
    old, _ = namespaces.create()
    new, errors = namespaces.update(
        old, "status", status={"phase": "Active", "conditions": [{"type": "x", "status": "True"}]}
    )
    assert errors == []
    assert new["status"]["conditions"] == [{"type": "x", "status": "True", "lastTransitionTime": None}]
    _, errors = namespaces.update(old, "status", status={"phase": "Terminating"})
    assert errors == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]
    deleted = {**old, "metadata": {**old["metadata"], "deletionTimestamp": "2024-02-01T00:00:00Z"}}
    _, errors = namespaces.update(deleted, "status", status={"phase": "Active"})
    assert errors == [
        "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
    ]
