"""Answers of webhooks that are out of the ordinary."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from aiohttp import web

from ...conftest import RunningServer
from .test_webhooks import CONFIG_MAPS, Hook, Object, config_map, entry, patch_of, register, serving

STAMP = {"op": "add", "path": "/data/stamp", "value": "yes"}


def encoded(*operations: Object) -> str:
    return base64.b64encode(json.dumps(operations).encode()).decode()


async def answer(apiserver: RunningServer, hook: Hook, response: Object | web.Response, **more: Any) -> Any:
    """What a create is answered with when the mutating webhook answers so."""

    async def judge(request: Object) -> Object | web.Response:
        return response

    hook.judge = judge
    await register(apiserver, "Mutating", entry(hook, **more))
    return await apiserver.request("POST", CONFIG_MAPS, config_map("a", a="b"))


async def test_a_webhook_that_is_overloaded_is_asked_again(apiserver: RunningServer) -> None:
    async def judge(request: Object) -> Object | web.Response:
        if len(hook.requests) < 4:
            return web.Response(status=429 if len(hook.requests) % 2 else 503, headers={"Retry-After": "0"})
        return patch_of(STAMP)

    async with serving() as hook:
        hook.judge = judge
        await register(apiserver, "Mutating", entry(hook, timeoutSeconds=30))
        created = await apiserver.request("POST", CONFIG_MAPS, config_map("a", a="b"))

        assert created.status == 201, created.body
        assert created.body["data"] == {"a": "b", "stamp": "yes"}
        assert len(hook.requests) == 4


async def test_a_webhook_that_wants_to_be_asked_later_than_it_has_time_has_failed(apiserver: RunningServer) -> None:
    async with serving() as hook:
        later = web.Response(status=429, headers={"Retry-After": "60"})
        refused = await answer(apiserver, hook, later, timeoutSeconds=1)

        assert refused.status == 500
        assert refused.body["message"].endswith('/hook?timeout=1s": context deadline exceeded')


async def test_without_a_time_a_webhook_is_not_asked_again(apiserver: RunningServer) -> None:
    async with serving() as hook:
        refused = await answer(apiserver, hook, web.Response(status=503))

        assert refused.status == 500
        assert len(hook.requests) == 1


@pytest.mark.parametrize(
    ("path", "asked"),
    [("//a/../b/", "/b"), ("/a{}[]", "/a%7B%7D%5B%5D"), ("/%61%20b", "/a%20b"), ("/a%2fb", "/a/b"), ("", "/")],
)
async def test_a_webhooks_path_is_cleaned(apiserver: RunningServer, path: str, asked: str) -> None:
    async with serving() as hook:
        await register(apiserver, "Mutating", entry(hook, clientConfig=hook.client_config(url=hook.url + path)))
        assert (await apiserver.request("POST", CONFIG_MAPS, config_map("a"))).status == 201
        assert hook.paths == [asked]


async def test_a_patch_may_have_line_breaks_and_any_number_of_operations(apiserver: RunningServer) -> None:
    text = encoded(*[{"op": "test", "path": "/data/a", "value": "b"}] * 10_001, STAMP)
    async with serving() as hook:
        broken = "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
        created = await answer(apiserver, hook, {"allowed": True, "patchType": "JSONPatch", "patch": broken})

        assert created.status == 201, created.body
        assert created.body["data"] == {"a": "b", "stamp": "yes"}


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ("%%%", "failed to call webhook: illegal base64 data at input byte 0"),
        ("W10", "failed to call webhook: illegal base64 data at input byte 0"),
        ([{}], "json: cannot unmarshal object into Go struct field AdmissionResponse.response.patch of type uint8"),
        ({}, "json: cannot unmarshal object into Go struct field AdmissionResponse.response.patch of type []uint8"),
    ],
)
async def test_a_patch_that_is_no_text_of_bytes(apiserver: RunningServer, patch: Any, reason: str) -> None:
    async with serving() as hook:
        refused = await answer(apiserver, hook, {"allowed": True, "patchType": "JSONPatch", "patch": patch})

        assert refused.status == 500
        assert refused.body["message"].endswith(reason)


async def test_an_answer_that_cannot_be_unpacked(apiserver: RunningServer) -> None:
    async with serving() as hook:
        plain = web.Response(text="{}", headers={"Content-Encoding": "gzip"})
        refused = await answer(apiserver, hook, plain)

        assert refused.status == 500
        why = "unexpected error when reading response body. Please retry. Original error: gzip: invalid header"
        assert refused.body["message"].endswith(f"failed to call webhook: {why}")


async def test_a_refusal_with_a_code_that_http_has_no_room_for(apiserver: RunningServer) -> None:
    async with serving() as hook:
        refused = await answer(apiserver, hook, {"allowed": False, "status": {"code": 1000, "message": "no"}})

        assert refused.status == 500
        assert refused.body["message"] == 'admission webhook "hook.example.com" denied the request: no'


ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"operation": "x"}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": ""}, "missing fieldsType in managed fields entry 1"),
        ({"fieldsType": "FieldsV2"}, 'invalid fieldsType "FieldsV2" in managed fields entry 1'),
    ],
)
async def test_managed_fields_that_a_webhook_spoils_are_restored(
    apiserver: RunningServer, change: Object, reason: str
) -> None:
    async with serving() as hook:
        operation = {"op": "replace", "path": "/metadata/managedFields", "value": [ENTRY, {**ENTRY, **change}]}
        created = await answer(apiserver, hook, patch_of(operation))

        assert created.status == 201, created.body
        owned = [each["fieldsV1"] for each in created.body["metadata"]["managedFields"]]
        assert owned == [{"f:data": {".": {}, "f:a": {}}}]
        assert reason in created.headers["Warning"].replace('\\"', '"')
        assert ".metadata.managedFields was in an invalid state after admission" in created.headers["Warning"]
