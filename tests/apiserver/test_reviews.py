"""Questions about identity and permission, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import RunningServer

AUTHENTICATION, AUTHORIZATION = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
PODS = {"verb": "get", "resource": "pods"}


async def ask(server: RunningServer, path: str, spec: Any = None, status: int = 201, **more: Any) -> Any:
    answer = await server.request("POST", path, {} if spec is None else {"spec": spec}, **more)
    assert answer.status == status, answer.body
    return answer.body


async def allow(server: RunningServer, user: str, resource: str, *verbs: str) -> None:
    """Let a user do something in the namespace `default`."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    role = {"metadata": {"name": user}, "rules": [{"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}]}
    binding = {
        "metadata": {"name": user},
        "subjects": [{"kind": "User", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
    }
    assert (await server.request("POST", f"{rbac}/roles", role)).status == 201
    assert (await server.request("POST", f"{rbac}/rolebindings", binding)).status == 201


async def test_everyone_may_ask_what_they_may_do(apiserver: RunningServer) -> None:
    await allow(apiserver, "bob", "pods", "get")
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    for namespace, allowed in (("default", True), ("kube-system", False)):
        spec = {"resourceAttributes": {**PODS, "namespace": namespace}}
        review = await ask(apiserver, path, spec, token="bobtoken")
        assert review["status"]["allowed"] is allowed
        real = await apiserver.request("GET", f"/api/v1/namespaces/{namespace}/pods/x", token="bobtoken")
        assert (real.status == 404) is allowed


async def test_only_the_permitted_ask_about_others(apiserver: RunningServer) -> None:
    spec = {"user": "zoe", "groups": ["system:masters"], "resourceAttributes": PODS}
    for path in ("subjectaccessreviews", "namespaces/default/localsubjectaccessreviews"):
        refused = await ask(apiserver, f"{AUTHORIZATION}/{path}", spec, 403, token="bobtoken")
        assert 'User "bob" cannot create resource' in refused["message"]
    review = await ask(apiserver, f"{AUTHORIZATION}/subjectaccessreviews", spec)
    assert review["status"] == {"allowed": True}
    for_other = await ask(apiserver, f"{AUTHORIZATION}/subjectaccessreviews", {**spec, "groups": ["x"]})
    assert for_other["status"] == {"allowed": False}


async def test_a_status_that_is_sent_is_not_the_answer(apiserver: RunningServer) -> None:
    body = {"spec": {"resourceAttributes": PODS}, "status": {"allowed": True, "reason": "so I say"}}
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    answer = await apiserver.request("POST", path, body, token="bobtoken")
    assert answer.body["status"] == {"allowed": False}


async def test_a_local_review_stays_in_its_namespace(apiserver: RunningServer) -> None:
    path = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    spec = {"user": "zoe", "resourceAttributes": {**PODS, "namespace": "default"}}
    assert (await ask(apiserver, path, spec))["metadata"]["namespace"] == "default"
    elsewhere = await ask(apiserver, path, {"user": "zoe", "resourceAttributes": PODS}, 422)
    assert [cause["field"] for cause in elsewhere["details"]["causes"]] == ["spec.resourceAttributes.namespace"]
    of_path = await ask(apiserver, path, {"user": "zoe", "nonResourceAttributes": {"path": "/x", "verb": "get"}}, 422)
    assert "disallowed on this kind of request" in of_path["message"]
    everywhere = await apiserver.request("POST", f"{AUTHORIZATION}/localsubjectaccessreviews", {"spec": spec})
    assert everywhere.status == 404


@pytest.mark.parametrize(
    ("selectors", "error"),
    [
        ({"labelSelector": {"rawSelector": "a in (b)"}}, None),
        ({"labelSelector": {"rawSelector": "a in ("}}, "labelSelector ignored due to parse error"),
        ({"fieldSelector": {"rawSelector": "a"}}, "fieldSelector ignored due to parse error"),
        (
            {"labelSelector": {"requirements": [{"key": "a", "operator": "New"}, {"key": "b", "operator": "Exists"}]}},
            "labelSelector partially ignored due to parse error",
        ),
    ],
)
async def test_selectors_that_cannot_be_read_are_told_of(
    apiserver: RunningServer, selectors: dict[str, Any], error: str | None
) -> None:
    spec = {"resourceAttributes": {**PODS, **selectors}}
    status = (await ask(apiserver, f"{AUTHORIZATION}/selfsubjectaccessreviews", spec))["status"]
    assert status.get("evaluationError") == (error and f"spec.resourceAttributes.{error}")


async def test_the_rules_of_the_one_who_asks(apiserver: RunningServer) -> None:
    await allow(apiserver, "bob", "pods", "get", "list")
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    status = (await ask(apiserver, path, {"namespace": "default"}, token="bobtoken"))["status"]
    assert {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]} in status["resourceRules"]
    assert any("/healthz" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    elsewhere = (await ask(apiserver, path, {"namespace": "kube-system"}, token="bobtoken"))["status"]
    assert all("pods" not in rule["resources"] for rule in elsewhere["resourceRules"])


async def test_who_am_i(apiserver: RunningServer) -> None:
    path = f"{AUTHENTICATION}/selfsubjectreviews"
    alice = (await ask(apiserver, path, token="alicetoken"))["status"]["userInfo"]
    assert alice == {"username": "alice", "uid": "alice-uid", "groups": ["devs", "system:authenticated"]}
    headers = {"Impersonate-User": "zoe", "Impersonate-Group": "zoo"}
    zoe = (await ask(apiserver, path, headers=headers))["status"]["userInfo"]
    assert zoe == {"username": "zoe", "groups": ["zoo", "system:authenticated"]}
    refused = await ask(apiserver, path, None, 403, token="alicetoken", headers=headers)
    assert "cannot impersonate-on:user-info:create" in refused["message"]
    await ask(apiserver, path, None, 403, token=None)
    await ask(apiserver, path, None, 401, token="wrong", headers=headers)


async def test_whose_token_is_this(apiserver: RunningServer) -> None:
    path = f"{AUTHENTICATION}/tokenreviews"
    good = (await ask(apiserver, path, {"token": "alicetoken"}))["status"]
    assert good["user"]["username"] == "alice"
    assert good["audiences"] == ["https://kubernetes.default.svc"]
    for spec in ({"token": "wrong"}, {"token": "alicetoken", "audiences": ["elsewhere"]}):
        assert (await ask(apiserver, path, spec))["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_reviews_are_created_and_nothing_else(apiserver: RunningServer) -> None:
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert (await apiserver.request(method, path, b"{}")).status == 405
    for below in (f"{path}/x", f"{AUTHORIZATION}/watch/subjectaccessreviews"):
        assert (await apiserver.request("GET", below)).status == 404
    listed = (await apiserver.request("GET", AUTHORIZATION)).body["resources"]
    assert [item["name"] for item in listed if item["verbs"] == ["create"]] == [item["name"] for item in listed]
    metrics = (await apiserver.request("GET", "/metrics")).body
    assert "subjectaccessreviews" not in metrics.partition("apiserver_resource_objects")[2].partition("# HELP")[0]
