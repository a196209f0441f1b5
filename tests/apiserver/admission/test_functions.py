"""Python functions as admission plugins of a server in the same process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from steersman.apimachinery.errors import BadRequest
from steersman.apiserver.admission import AdmittedWrite, Denied, mutating, validating
from steersman.net.pki import ServerFiles

from ...conftest import RunningServer, running

Object = dict[str, Any]
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str = "a", **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


@mutating("labels", resources=["configmaps", "widgets.test.example.com"])
def label(write: AdmittedWrite) -> None:
    write.object["metadata"].setdefault("labels", {})["by"] = write.user.name
    write.warn(f"{write.resource} {write.name} is labelled")


@mutating("slow", resources=["configmaps"])
async def slow(write: AdmittedWrite) -> None:
    await asyncio.sleep(0)
    write.object["data"] = {"kind": write.kind, "operation": write.operation, "old": str(write.old.get("data"))}


@validating("no-secrets", operations=["CREATE", "DELETE"], resources=["configmaps"])
async def no_secrets(write: AdmittedWrite) -> None:
    if write.name == "secret" or write.old.get("data"):
        raise Denied(f"{write.operation.lower()} is not for you")


async def test_a_function_changes_what_is_stored(certificates: ServerFiles, tmp_path: Path) -> None:
    async with running(certificates, tmp_path, admission_plugins=[label, slow]) as server:
        made = await server.request("POST", CONFIG_MAPS, config_map())
        assert made.body["metadata"]["labels"] == {"by": "admin"}
        assert made.body["data"] == {"kind": "ConfigMap", "operation": "CREATE", "old": "None"}
        assert made.headers["Warning"] == '299 - "configmaps a is labelled"'
        changed = await server.request("PUT", f"{CONFIG_MAPS}/a", config_map())
        assert changed.body["data"]["operation"] == "UPDATE"
        assert "CREATE" in changed.body["data"]["old"]
        assert (await server.request("GET", f"{CONFIG_MAPS}/a")).body == changed.body


async def test_custom_resources_are_defaulted_and_pruned_after_a_function(
    certificates: ServerFiles, tmp_path: Path
) -> None:
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
    }
    version = {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}

    @mutating("spec")
    def change(write: AdmittedWrite) -> None:
        if write.kind == "Widget":
            write.object["spec"] = {"size": 3, "unknown": True}

    async with running(certificates, tmp_path, admission_plugins=[change]) as server:
        path = await server.define(version=version)
        widget = {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        assert (await server.request("POST", path, widget)).body["spec"] == {"size": 3, "color": "red"}


async def test_a_function_refuses(certificates: ServerFiles, tmp_path: Path) -> None:
    async with running(certificates, tmp_path, admission_plugins=[no_secrets]) as server:
        refused = await server.request("POST", CONFIG_MAPS, config_map("secret"))
        assert (refused.status, refused.body["message"]) == (
            403,
            'configmaps "secret" is forbidden: create is not for you',
        )
        assert (await server.request("POST", CONFIG_MAPS, config_map("b", data={"x": "y"}))).status == 201
        assert (await server.request("PUT", f"{CONFIG_MAPS}/b", config_map("b", data={"x": "z"}))).status == 200
        kept = await server.request("DELETE", f"{CONFIG_MAPS}/b")
        assert kept.body["message"] == 'configmaps "b" is forbidden: delete is not for you'


async def test_a_validating_function_changes_nothing(certificates: ServerFiles, tmp_path: Path) -> None:
    @validating("greedy", resources=["configmaps"])
    def greedy(write: AdmittedWrite) -> None:
        write.object["data"] = {"mine": "now"}
        write.object["metadata"]["labels"] = {"mine": "now"}

    async with running(certificates, tmp_path, admission_plugins=[greedy]) as server:
        made = await server.request("POST", CONFIG_MAPS, config_map(data={"x": "y"}))
        assert made.body["data"] == {"x": "y"}
        assert "labels" not in made.body["metadata"]


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (BadRequest("not like this"), 400, "not like this"),
        (RuntimeError("a secret"), 500, 'Internal error occurred: admission plugin "broken" failed'),
    ],
)
async def test_what_a_function_raises_is_answered(
    certificates: ServerFiles,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    text: str,
) -> None:
    @mutating("broken", resources=["configmaps"])
    def broken(write: AdmittedWrite) -> None:
        raise error

    with caplog.at_level(logging.CRITICAL):
        async with running(certificates, tmp_path, admission_plugins=[broken]) as server:
            answer = await server.request("POST", CONFIG_MAPS, config_map())
    assert (answer.status, answer.body["message"]) == (status, text)


async def test_a_function_that_leaves_no_object(certificates: ServerFiles, tmp_path: Path) -> None:
    @mutating("broken", resources=["configmaps"])
    def broken(write: AdmittedWrite) -> None:
        write.object["data"] = ["no", "map"]

    async with running(certificates, tmp_path, admission_plugins=[broken]) as server:
        answer = await server.request("POST", CONFIG_MAPS, config_map())
    assert answer.status == 500
    assert 'admission plugin "broken" left no such object: ' in answer.body["message"]


@pytest.mark.parametrize("path", ["", "/status"])
async def test_subresources_are_asked_for_by_name(certificates: ServerFiles, tmp_path: Path, path: str) -> None:
    seen: list[tuple[str, str]] = []

    @validating("watcher", resources=[f"widgets.test.example.com{path}"])
    def watcher(write: AdmittedWrite) -> None:
        seen.append((write.operation, write.subresource))

    async with running(certificates, tmp_path, admission_plugins=[watcher]) as server:
        widgets = await server.define()
        await _write_twice(server, widgets)
    assert seen == ([("UPDATE", "status")] if path else [("CREATE", "")])


async def _write_twice(server: RunningServer, widgets: str) -> None:
    widget = {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    made = await server.request("POST", widgets, widget)
    await server.request("PUT", f"{widgets}/w/status", {**made.body, "status": {"x": 1}})


async def test_a_function_can_be_disabled(certificates: ServerFiles, tmp_path: Path) -> None:
    options: Object = {
        "admission_plugins": [label, no_secrets],
        "disabled_plugins": frozenset({"labels", "no-secrets"}),
    }
    async with running(certificates, tmp_path, **options) as server:
        made = await server.request("POST", CONFIG_MAPS, config_map("secret"))
        assert made.status == 201
        assert "labels" not in made.body["metadata"]
