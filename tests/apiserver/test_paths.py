"""What a path may name, and what it may not reach."""

from __future__ import annotations

from typing import Any

import pytest

NAMESPACES = "/api/v1/namespaces"
CONFIG_MAPS = f"{NAMESPACES}/default/configmaps"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        (f"{CONFIG_MAPS}/", 200, ""),
        (f"{NAMESPACES}/default%2Fconfigmaps", 200, ""),
        ("/%61pi/v1/namespaces/default", 200, ""),
        ("/api//v1/namespaces", 404, "could not find"),
        ("/apis//v1/namespaces", 404, "404 page not found"),
        ("/api/v2/pods", 404, "could not find"),
        ("/apis/apps/v9", 404, "could not find"),
        ("/apis/apps/v9/deployments", 404, "could not find"),
        ("/apis/nobody.example.com/v1", 404, "404 page not found"),
        (f"{NAMESPACES}/default//configmaps", 404, "could not find"),
        (f"{CONFIG_MAPS}/a%2Fb", 404, "could not find"),
        (f"{CONFIG_MAPS}/%2e%2e", 400, 'Name parameter invalid: "..": may not be'),
        (f"{CONFIG_MAPS}/%252F", 400, 'Name parameter invalid: "%2F": may not contain'),
        (f"{CONFIG_MAPS}/a%00b", 404, "not found"),
        ("/version//", 200, ""),
        ("/version/x", 404, "could not find"),
        ("/version//x", 404, "could not find"),
        ("/versionx", 404, "404 page not found"),
        ("/openid/v1/jwks//", 200, ""),
        ("/openid/v1/jwks/x", 404, "could not find"),
        ("/openid/v1/x", 404, "404 page not found"),
        ("/.well-known/openid-configuration/x", 404, "could not find"),
        ("/api//", 200, ""),
        ("/apis//", 404, "404 page not found"),
        ("/apis/apps/v1//", 200, ""),
    ],
)
async def test_paths(apiserver: Any, path: str, status: int, text: str) -> None:
    from yarl import URL

    answer = await apiserver.request("GET", URL(path, encoded=True))
    assert answer.status == status
    message = answer.body.get("message", "") if isinstance(answer.body, dict) else answer.body
    assert text in message


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/pods", "/namespaces/default/configmaps/a", "/namespaces/default"])
async def test_a_path_of_a_watch_is_for_get_alone(apiserver: Any, method: str, path: str) -> None:
    assert (await apiserver.request(method, f"/api/v1/watch{path}")).status == 405


async def test_subresources_of_built_in_kinds_have_no_heads(apiserver: Any) -> None:
    assert (await apiserver.request("HEAD", f"{NAMESPACES}/default/status")).status == 405


async def test_a_refusal_of_permission_is_not_to_be_guessed_at(apiserver: Any) -> None:
    refused = await apiserver.request("GET", CONFIG_MAPS, token="alicetoken")
    assert (refused.status, refused.headers["X-Content-Type-Options"]) == (403, "nosniff")


async def test_one_namespace_is_watched_at_its_old_path(apiserver: Any) -> None:
    answer = await apiserver.request("GET", "/api/v1/watch/namespaces/default?timeoutSeconds=1")
    text = answer.body if isinstance(answer.body, str) else str(answer.body)
    assert text.count("ADDED") == 1 and "kubernetes.io/metadata.name" in text


async def test_the_right_to_one_namespace_reaches_no_other(apiserver: Any) -> None:
    """A role in a namespace covers that namespace object, and none that is named below it."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "delete", "update"]}
    await apiserver.request("POST", f"{rbac}/roles", {"metadata": {"name": "own"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "own"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    binding = {"metadata": {"name": "own"}, "roleRef": reference, "subjects": [subject]}
    await apiserver.request("POST", f"{rbac}/rolebindings", binding)
    assert (await apiserver.request("GET", f"{NAMESPACES}/default", token="alicetoken")).status == 200
    assert (await apiserver.request("GET", f"{NAMESPACES}/kube-system", token="alicetoken")).status == 403
    for method in ("GET", "DELETE"):
        answer = await apiserver.request(method, f"{NAMESPACES}/default/namespaces/kube-system", token="alicetoken")
        assert answer.status == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [("limit=-1", 200), ("limit=" + "9" * 20, 400), ("limit=x", 400), ("timeoutSeconds=" + "9" * 5000, 400)],
)
async def test_numbers_in_queries(apiserver: Any, query: str, status: int) -> None:
    assert (await apiserver.request("GET", f"{CONFIG_MAPS}?{query}")).status == status


async def test_versions_that_are_no_64_bit_numbers(apiserver: Any) -> None:
    answer = await apiserver.request("GET", f"{CONFIG_MAPS}?resourceVersion={2**64}")
    assert answer.status == 400 and "value out of range" in answer.body["message"]
    answer = await apiserver.request("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={2**64}")
    assert answer.status == 500 and "value out of range" in answer.body["message"]


@pytest.mark.parametrize("kind", ["apply-patch+yaml", "merge-patch+json", "json-patch+json"])
async def test_patch_of_a_missing_lease(apiserver: Any, kind: str) -> None:
    """Only apply creates what is missing, though a PUT of a Lease would."""
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x"
    body = b"[]" if kind.startswith("json") else b'{"apiVersion":"coordination.k8s.io/v1","kind":"Lease"}'
    body = body.replace(b"}", b',"metadata":{"name":"x"}}') if kind.startswith("apply") else body
    headers = {"Content-Type": f"application/{kind}"}
    answer = await apiserver.request("PATCH", f"{path}?fieldManager=me", body, headers=headers)
    assert answer.status == (201 if kind.startswith("apply") else 404), answer.body


async def test_put_of_what_was_deleted(apiserver: Any) -> None:
    """404, but for a kind that PUT creates: there the uid is a precondition."""
    meta = {"metadata": {"name": "x"}}
    for path, status in ((CONFIG_MAPS, 404), ("/apis/coordination.k8s.io/v1/namespaces/default/leases", 409)):
        created = await apiserver.request("POST", path, meta)
        assert (await apiserver.request("DELETE", f"{path}/x")).status == 200
        assert (await apiserver.request("PUT", f"{path}/x", created.body)).status == status
