"""Who may write roles and bindings may grant what they hold, and no more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import Answer, RunningServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
LOCAL = f"{RBAC}/namespaces/default"
GROUP = "rbac.authorization.k8s.io"
WRITE = ["create", "update", "patch", "get"]


def rule(resource: str, *verbs: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": [*verbs], **more}


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": [*rules]}


def binding(name: str, kind: str, of: str, user: str = "bob") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": user}],
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": of},
    }


async def let(server: RunningServer, *rules: dict[str, Any]) -> None:
    """Let alice write RBAC objects everywhere, read Pods, and follow the rules given."""
    writes = [
        rule(name, *WRITE, group=GROUP) for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    ]
    for path, body in (
        (f"{RBAC}/clusterroles", role("alices", *writes, rule("pods", "get"), *rules)),
        (f"{RBAC}/clusterrolebindings", binding("alices", "ClusterRole", "alices", "alice")),
        (f"{LOCAL}/roles", role("secrets", rule("secrets", "get"))),
        (f"{LOCAL}/rolebindings", binding("secrets", "Role", "secrets")),
    ):
        assert (await server.request("POST", path, body)).status == 201


async def alice(server: RunningServer, method: str, path: str, body: Any, media: str = "application/json") -> Answer:
    return await server.request(method, path, body, token="alicetoken", headers={"Content-Type": media})


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (f"{LOCAL}/roles", role("r", rule("pods", "get")), 201),
        (f"{LOCAL}/roles", role("r", rule("pods", "get", resourceNames=["p"])), 201),
        (f"{LOCAL}/roles", role("r", rule("pods", "get", "delete")), 403),
        (f"{LOCAL}/roles", role("r", rule("pods/log", "get")), 403),
        (f"{LOCAL}/roles?dryRun=All", role("r", rule("secrets", "get")), 403),
        (f"{RBAC}/clusterroles", role("r", {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}), 403),
        (f"{RBAC}/clusterroles", {**role("r"), "aggregationRule": {"clusterRoleSelectors": [{}]}}, 403),
        (f"{LOCAL}/rolebindings", binding("b", "ClusterRole", "alices"), 201),
        (f"{LOCAL}/rolebindings", binding("b", "Role", "secrets"), 403),
        (f"{LOCAL}/rolebindings", binding("b", "ClusterRole", "cluster-admin", "alice"), 403),
        (f"{RBAC}/clusterrolebindings", binding("b", "ClusterRole", "cluster-admin", "alice"), 403),
        (f"{LOCAL}/rolebindings", binding("b", "ClusterRole", "missing"), 404),
        (f"{RBAC}/clusterrolebindings", binding("b", "Role", "secrets"), 400),
    ],
)
async def test_what_is_held_is_what_is_granted(
    apiserver: RunningServer, path: str, body: dict[str, Any], status: int
) -> None:
    await let(apiserver)
    assert (await alice(apiserver, "POST", path, body)).status == status


async def test_the_answer_lists_what_is_missing(apiserver: RunningServer) -> None:
    await let(apiserver)
    refused = await alice(apiserver, "PUT", f"{LOCAL}/roles/new", role("new", rule("pods", "get", "list")))
    assert refused.body["message"] == (
        f'roles.{GROUP} "new" is forbidden: user "alice" (groups=["devs" "system:authenticated"]) is attempting to '
        'grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'
    )


async def test_every_way_to_write_is_checked(apiserver: RunningServer) -> None:
    await let(apiserver)
    wider = role("secrets", rule("secrets", "get", "list"))
    applied = {"apiVersion": f"{GROUP}/v1", "kind": "Role", **wider}
    me = {"subjects": [{"kind": "User", "name": "alice", "apiGroup": GROUP}]}
    add = [{"op": "add", "path": "/rules/0/verbs/-", "value": "list"}]
    for method, path, body, media in (
        ("PUT", f"{LOCAL}/roles/secrets", wider, "application/json"),
        ("PATCH", f"{LOCAL}/roles/secrets", add, "application/json-patch+json"),
        ("PATCH", f"{LOCAL}/roles/secrets", {"rules": wider["rules"]}, "application/merge-patch+json"),
        ("PATCH", f"{LOCAL}/roles/secrets?fieldManager=m&force=true", applied, "application/apply-patch+yaml"),
        ("PATCH", f"{LOCAL}/rolebindings/secrets", me, "application/merge-patch+json"),
        ("PATCH", f"{LOCAL}/rolebindings/secrets", me, "application/strategic-merge-patch+json"),
    ):
        assert (await alice(apiserver, method, path, body, media)).status == 403, (method, path, media)


async def test_finalizers_can_be_taken_off_roles_that_one_does_not_hold(apiserver: RunningServer) -> None:
    await let(apiserver)
    for name in ("roles", "rolebindings"):
        path = f"{LOCAL}/{name}/secrets"
        for finalizers in (["example.com/f"], None):
            changed = {"metadata": {"finalizers": finalizers}}
            assert (await alice(apiserver, "PATCH", path, changed, "application/merge-patch+json")).status == 200
        labels = {"metadata": {"labels": {"a": "b"}}}
        assert (await alice(apiserver, "PATCH", path, labels, "application/merge-patch+json")).status == 403


async def test_escalate_and_bind_allow_what_is_not_held(apiserver: RunningServer) -> None:
    escalate = rule("roles", "escalate", group=GROUP, resourceNames=["secrets"])
    bind = rule("clusterroles", "bind", group=GROUP, resourceNames=["view"])
    await let(apiserver, escalate, bind)
    wider = role("secrets", rule("secrets", "*"))
    assert (await alice(apiserver, "PUT", f"{LOCAL}/roles/secrets", wider)).status == 200
    assert (await alice(apiserver, "POST", f"{LOCAL}/roles", role("other", rule("secrets", "*")))).status == 403
    for name, status in (("view", 201), ("edit", 403)):
        made = await alice(apiserver, "POST", f"{LOCAL}/rolebindings", binding(name, "ClusterRole", name))
        assert made.status == status
