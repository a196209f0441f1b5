"""Rules that take long do not keep the server from others."""

from __future__ import annotations

import asyncio

from tests.conftest import RunningServer

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


async def test_others_are_served_while_rules_are_evaluated(apiserver: RunningServer) -> None:
    path = await apiserver.define(version=_VERSION)
    body = {
        "apiVersion": "test.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "slow"},
        "spec": {"at": "2024-01-02T03:04:05Z"},
    }
    creating = asyncio.create_task(apiserver.request("POST", path, body))
    served = 0
    while not creating.done():
        assert (await apiserver.request("GET", "/version")).status == 200
        served += 1
    answer = await creating
    assert answer.status == 422
    assert "actual cost limit exceeded" in answer.body["message"]
    assert served > 2
