"""Rules that take long do not keep the server from others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from tests.conftest import RunningServer

_AS_IF_BLOCKED = 2  # what is answered before and after a time without any turn of the loop
_LOOPS = "lists.range(900).all(x, lists.range(900).all(y, self.at.getHours('Europe/Paris') + x + y >= 0))"
_VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {"at": {"type": "string", "format": "date-time"}},
                    "x-kubernetes-validations": [{"rule": _LOOPS}],
                }
            },
        }
    },
}


_LONG = " && ".join(["object.metadata.name != 'a'"] * 700)
_CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


async def _served_meanwhile(apiserver: RunningServer, writing: Coroutine[Any, Any, Any]) -> tuple[Any, int]:
    """What a request is answered, and how many others were answered before it."""
    task = asyncio.create_task(writing)
    served = 0
    while not task.done():
        assert (await apiserver.request("GET", "/version")).status == 200
        served += 1
    return await task, served


def _widget(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "slow"}, "spec": spec}


async def test_others_are_served_while_rules_are_evaluated(apiserver: RunningServer) -> None:
    path = await apiserver.define(version=_VERSION)
    body = _widget({"at": "2024-01-02T03:04:05Z"})
    answer, served = await _served_meanwhile(apiserver, apiserver.request("POST", path, body))
    assert answer.status == 422
    assert "actual cost limit exceeded" in answer.body["message"]
    assert served > _AS_IF_BLOCKED


async def test_others_are_served_while_rules_are_compiled(apiserver: RunningServer) -> None:
    rules = [{"rule": " && ".join(["self.n > 1"] * 1200)}, *({"rule": f"self.n > {index}"} for index in range(100))]
    spec = {"type": "object", "properties": {"n": {"type": "integer"}}, "x-kubernetes-validations": rules}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    path, served = await _served_meanwhile(apiserver, apiserver.define(version={**_VERSION, "schema": schema}))
    assert served > _AS_IF_BLOCKED
    answer, served = await _served_meanwhile(apiserver, apiserver.request("POST", path, _widget({"n": 100})))
    assert answer.status == 201
    assert served > _AS_IF_BLOCKED


async def test_others_are_served_while_policies_and_conditions_are_compiled(apiserver: RunningServer) -> None:
    meta = {"metadata": {"name": "slow.example.com"}}
    policy = meta | {
        "spec": {"matchConstraints": {"resourceRules": [_CONFIG_MAPS]}, "validations": [{"expression": _LONG}]}
    }
    binding = meta | {"spec": {"policyName": "slow.example.com", "validationActions": ["Deny"]}}
    hook = {
        "name": "slow.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [_CONFIG_MAPS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "never", "expression": f"!({_LONG})"}],
    }
    config_map = {"metadata": {"name": "b"}}
    writes = [
        (f"{_ADMISSION}/validatingadmissionpolicies", policy, True),
        (f"{_ADMISSION}/validatingadmissionpolicybindings", binding, False),
        ("/api/v1/namespaces/default/configmaps?dryRun=All", config_map, True),
        (f"{_ADMISSION}/validatingwebhookconfigurations", meta | {"webhooks": [hook]}, True),
        ("/api/v1/namespaces/default/configmaps?dryRun=All", config_map, True),
        ("/api/v1/namespaces/default/configmaps?dryRun=All", {"metadata": {"name": "a"}}, False),
    ]
    for path, body, slow in writes:
        answer, served = await _served_meanwhile(apiserver, apiserver.request("POST", path, body))
        assert answer.status == (422 if body["metadata"] == {"name": "a"} else 201), answer.body
        assert not slow or served > _AS_IF_BLOCKED, path
