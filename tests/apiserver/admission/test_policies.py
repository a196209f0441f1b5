"""Admission policies, beside what the recorded scenarios show of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from steersman.net.pki import ServerFiles

from ...conftest import RunningServer, running

GROUP = "/apis/admissionregistration.k8s.io/v1"
MERGE = {"Content-Type": "application/merge-patch+json"}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
RULES = [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def bind(server: RunningServer, name: str, *, mutating: bool = False, **spec: Any) -> None:
    """Create a policy on config maps, and a binding of the same name."""
    first, plural = ("Mutating", "mutating") if mutating else ("Validating", "validating")
    more = {"reinvocationPolicy": "Never"} if mutating else {}
    binding = {"policyName": name, **({} if mutating else {"validationActions": ["Deny"]}), **spec.pop("binding", {})}
    for kind, part, value in (
        ("AdmissionPolicy", "admissionpolicies", {"matchConstraints": {"resourceRules": RULES}, **more, **spec}),
        ("AdmissionPolicyBinding", "admissionpolicybindings", binding),
    ):
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": first + kind,
            "metadata": {"name": name},
            "spec": value,
        }
        answer = await server.request("POST", f"{GROUP}/{plural}{part}", body)
        assert answer.status == 201, answer.body


async def status_of(server: RunningServer, name: str, **data: str) -> int:
    return (await server.request("POST", CONFIG_MAPS, config_map(name, **data))).status


async def test_changes_of_policies_and_bindings_count_at_once(apiserver: RunningServer) -> None:
    policies, bindings = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
    await bind(apiserver, "p", validations=[{"expression": "has(object.data.ok)"}])
    assert await status_of(apiserver, "a") == 422
    assert await status_of(apiserver, "a", ok="") == 201
    change = {"spec": {"validations": [{"expression": "has(object.data.fine)"}]}}
    await apiserver.request("PATCH", f"{policies}/p", change, headers=MERGE)
    assert await status_of(apiserver, "b", ok="") == 422
    await apiserver.request("DELETE", f"{bindings}/p")
    assert await status_of(apiserver, "b", ok="") == 201


async def test_policies_outlive_the_server_and_may_be_switched_off(certificates: ServerFiles, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store) as server:
        await bind(server, "p", validations=[{"expression": "false"}])
    async with running(certificates, tmp_path, store) as server:
        assert await status_of(server, "a") == 422
    off = frozenset({"ValidatingAdmissionPolicy"})
    async with running(certificates, tmp_path, store, disabled_plugins=off) as server:
        assert await status_of(server, "a") == 201


async def test_custom_resources_are_parameters_as_soon_as_they_are_there(apiserver: RunningServer) -> None:
    kind = {"apiVersion": "test.example.com/v1", "kind": "Limit"}
    reference = {"paramRef": {"name": "most", "parameterNotFoundAction": "Allow"}}
    size = {"expression": "object.data.size() <= params.spec.most"}
    await bind(apiserver, "p", paramKind=kind, validations=[size], binding=reference)
    unknown = await apiserver.request("POST", CONFIG_MAPS, config_map("a"))
    assert "failed to find resource referenced by paramKind" in unknown.body["message"]
    limits = await apiserver.define(kind="Limit")
    assert await status_of(apiserver, "a", x="1", y="2") == 201
    limit = {**kind, "metadata": {"name": "most"}, "spec": {"most": 1}}
    assert (await apiserver.request("POST", limits, limit)).status == 201
    assert await status_of(apiserver, "b", x="1", y="2") == 422
    await apiserver.request("PATCH", f"{limits}/most", {"spec": {"most": 2}}, headers=MERGE)
    assert await status_of(apiserver, "b", x="1", y="2") == 201


async def test_what_one_policy_makes_another_judges(apiserver: RunningServer) -> None:
    added = {"expression": "[JSONPatch{op: 'add', path: '/data/by', value: request.userInfo.username}]"}
    await bind(apiserver, "m", mutating=True, mutations=[{"patchType": "JSONPatch", "jsonPatch": added}])
    await bind(apiserver, "v", validations=[{"expression": "object.data.by == 'admin'"}])
    created = await apiserver.request("POST", CONFIG_MAPS, config_map("a", by="nobody"))
    assert created.status == 201 and created.body["data"] == {"by": "admin"}


async def test_increments_are_not_lost_while_policies_are_asked(apiserver: RunningServer) -> None:
    await bind(apiserver, "v", validations=[{"expression": "int(object.data.count) >= 0"}])
    raised = "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'count': object.data.count}}]"
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": raised}}
    await bind(apiserver, "m", mutating=True, mutations=[patch])
    await apiserver.request("POST", CONFIG_MAPS, config_map("a", count="0"))

    async def increment() -> None:
        while True:
            body = (await apiserver.request("GET", f"{CONFIG_MAPS}/a")).body
            body["data"]["count"] = str(int(body["data"]["count"]) + 1)
            answer = await apiserver.request("PUT", f"{CONFIG_MAPS}/a", body)
            if answer.status == 200:
                return
            assert answer.status == 409

    await asyncio.gather(*(increment() for _ in range(8)))
    final = (await apiserver.request("GET", f"{CONFIG_MAPS}/a")).body
    assert final["data"] == {"count": "8"} and final["metadata"]["annotations"] == {"count": "8"}
