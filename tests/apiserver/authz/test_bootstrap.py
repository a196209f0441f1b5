import json
from typing import Any

import pytest

from steersman.apiserver.authn.user import ANONYMOUS_USER, UserInfo
from steersman.apiserver.authz.attributes import Attributes
from steersman.apiserver.authz.bootstrap import AUTOUPDATE, NAMESPACES, Reconciliation, default_policy, reconcile
from steersman.apiserver.authz.rbac import RbacAuthorizer

BOB = UserInfo("bob", groups=("system:authenticated",))
POLICY = default_policy()


def named(kind: str, name: str) -> dict[str, Any]:
    return next(found for found in default_policy() if (found["kind"], found["metadata"]["name"]) == (kind, name))


@pytest.fixture(scope="module")
def authorizer() -> RbacAuthorizer:
    loaded = RbacAuthorizer()
    for found in POLICY:
        loaded.upsert(found["kind"], found)
    return loaded


def may_get(authorizer: RbacAuthorizer, user: UserInfo, path: str) -> bool:
    return authorizer.authorize(Attributes(user, "get", path=path, resource_request=False)).allowed


def test_every_object_is_complete_and_there_once() -> None:
    keys = [(found["kind"], found["metadata"].get("namespace"), found["metadata"]["name"]) for found in POLICY]
    assert len(keys) == len(set(keys))
    for found in POLICY:
        assert found["apiVersion"] == "rbac.authorization.k8s.io/v1"
        assert found["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert found["metadata"]["annotations"] == {AUTOUPDATE: "true"}
        assert ("namespace" in found["metadata"]) is (found["kind"] in ("Role", "RoleBinding"))
        assert found["metadata"].get("namespace", NAMESPACES[0]) in NAMESPACES


def test_every_binding_refers_to_a_role_that_is_there(authorizer: RbacAuthorizer) -> None:
    for found in POLICY:
        if found["kind"].endswith("Binding"):
            assert authorizer.role_rules(found["roleRef"], found["metadata"].get("namespace", ""))


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_health_and_version_are_for_everyone(authorizer: RbacAuthorizer, path: str) -> None:
    assert may_get(authorizer, ANONYMOUS_USER, path)
    assert may_get(authorizer, BOB, path)


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps/v1", "/openapi/v3"])
def test_discovery_is_for_the_authenticated(authorizer: RbacAuthorizer, path: str) -> None:
    assert may_get(authorizer, BOB, path)
    assert not may_get(authorizer, ANONYMOUS_USER, path)


def test_metrics_are_for_monitoring(authorizer: RbacAuthorizer) -> None:
    assert not may_get(authorizer, BOB, "/metrics")
    assert may_get(authorizer, UserInfo("m", groups=("system:monitoring",)), "/metrics")


@pytest.mark.parametrize("resource", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"])
def test_everyone_authenticated_may_ask_about_themselves(authorizer: RbacAuthorizer, resource: str) -> None:
    group = "authorization.k8s.io"
    assert authorizer.authorize(Attributes(BOB, "create", group, "v1", resource)).allowed
    assert not authorizer.authorize(Attributes(BOB, "list", group, "v1", resource)).allowed


def test_controllers_may_do_their_work(authorizer: RbacAuthorizer) -> None:
    collector = UserInfo("system:serviceaccount:kube-system:generic-garbage-collector")
    assert authorizer.authorize(Attributes(collector, "delete", "example.com", "v1", "widgets", "", "x", "a")).allowed
    leader = UserInfo("system:kube-controller-manager")
    lease = Attributes(leader, "update", "coordination.k8s.io", "v1", "leases", "", "kube-system")
    assert authorizer.authorize(lease._replace(name="kube-controller-manager")).allowed


def test_each_call_gives_new_objects() -> None:
    default_policy()[0]["metadata"]["labels"]["a"] = "b"
    assert "a" not in default_policy()[0]["metadata"]["labels"]


def test_what_is_missing_is_created_and_what_is_there_is_left() -> None:
    for found in POLICY:
        assert reconcile(found, None).operation == "create"
        assert reconcile(found, None).object == found
        assert reconcile(found, json.loads(json.dumps(found))).operation == "none"


def test_missing_rules_labels_and_annotations_are_added_and_others_kept() -> None:
    expected = named("ClusterRole", "system:basic-user")
    mine = {"verbs": ["get"], "nonResourceURLs": ["/mine"]}
    first = {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"]}
    existing = {**expected, "metadata": {"name": "system:basic-user", "labels": {"a": "b"}}, "rules": [mine, first]}
    before = json.dumps(existing)
    result = reconcile(expected, existing)
    assert json.dumps(existing) == before
    assert result.operation == "update"
    assert result.object is not None
    assert result.object["metadata"]["labels"] == {"a": "b", "kubernetes.io/bootstrapping": "rbac-defaults"}
    assert result.object["metadata"]["annotations"] == {AUTOUPDATE: "true"}
    assert result.object["rules"] == [
        mine,
        first,
        {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectrulesreviews"]},
        {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    ]
    assert reconcile(expected, result.object).operation == "none"


def test_autoupdate_false_protects() -> None:
    expected = named("ClusterRole", "system:basic-user")
    metadata = {"name": "system:basic-user", "annotations": {AUTOUPDATE: "false"}}
    assert reconcile(expected, {**expected, "metadata": metadata, "rules": None}).operation == "none"


def test_missing_subjects_are_added_and_a_changed_role_ref_recreates() -> None:
    expected = named("ClusterRoleBinding", "system:discovery")
    mine = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "me"}
    result = reconcile(expected, {**expected, "subjects": [mine]})
    assert result.operation == "update"
    assert result.object is not None
    assert result.object["subjects"] == [mine, *expected["subjects"]]
    other = {**expected, "roleRef": {**expected["roleRef"], "name": "other"}}
    assert reconcile(expected, other) == Reconciliation("recreate", expected)


def test_aggregation_rules_are_reconciled() -> None:
    plain, aggregated = named("ClusterRole", "cluster-admin"), named("ClusterRole", "edit")
    selector = {"matchLabels": {"mine": "true"}}
    result = reconcile(plain, {**plain, "aggregationRule": {"clusterRoleSelectors": [selector]}})
    assert result.object == plain
    result = reconcile(aggregated, {**aggregated, "aggregationRule": {"clusterRoleSelectors": [selector]}})
    assert result.object is not None
    wanted = aggregated["aggregationRule"]["clusterRoleSelectors"]
    assert result.object["aggregationRule"]["clusterRoleSelectors"] == [selector, *wanted]
    assert reconcile(aggregated, {**aggregated, "aggregationRule": None}).operation == "update"
