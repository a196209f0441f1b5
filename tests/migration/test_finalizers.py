"""`steersman finalizers`: a namespace that does not go, and who keeps it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.cli import main
from steersman.client.resources import Resource

MAP = Resource("v1", "ConfigMap", "configmaps", True)
NAMESPACE = Resource("v1", "Namespace", "namespaces", False)


async def command(apiserver: Any, *arguments: str) -> int:
    return await asyncio.to_thread(main, ["finalizers", *arguments, "--kubeconfig", str(apiserver.kubeconfig)])


async def stuck(client: Any) -> None:
    """A namespace that is being deleted, with three objects that wait for somebody who is away."""
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}})
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {"app": "x"})):
        finalizers = ["example.com/away", *(["example.com/too"] if name == "c" else [])]
        metadata = {"name": name, "namespace": "old", "labels": labels, "finalizers": finalizers}
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await client.delete(NAMESPACE, "old")
    async with asyncio.timeout(30), client.watch(MAP, namespace="old") as events:
        waiting: set[str] = set()
        async for event in events:
            if event.object["metadata"].get("deletionTimestamp"):
                waiting.add(event.object["metadata"]["name"])
            if waiting >= {"a", "b", "c"}:
                return


async def test_what_holds_a_namespace_is_named_and_let_go(apiserver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    async with await apiserver.client() as client:
        await stuck(client)
        assert await command(apiserver, "--namespace", "old") == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(": ")[0] for line in lines] == [f"configmaps old/{name}" for name in "abc"]
        assert lines[2].endswith("held by example.com/away, example.com/too")

        assert await command(apiserver, "strip", "-n", "old", "-l", "app=x", "--finalizer", "example.com/away") == 1
        assert "configmaps old/a: freed of example.com/away" in capsys.readouterr().out
        assert [item["metadata"]["name"] async for item in client.list(MAP, namespace="old", label_selector="app")] == [
            "b",
            "c",
        ]
        assert await command(apiserver, "strip", "-n", "old", "--dry-run") == 0
        assert "would be freed" in capsys.readouterr().out
        assert await command(apiserver, "strip", "configmaps", "-n", "old") == 0
        async with asyncio.timeout(30):  # it may have gone before one could watch
            while "old" in [item["metadata"]["name"] async for item in client.list(NAMESPACE)]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await command(apiserver) == 0


async def test_objects_that_are_not_being_deleted_keep_theirs(apiserver: Any) -> None:
    async with await apiserver.client() as client:
        metadata = {"name": "m", "namespace": "default", "finalizers": ["example.com/mine"]}
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        assert await command(apiserver, "strip", "-n", "default") == 0
        assert (await client.get(MAP, "m"))["metadata"]["finalizers"] == ["example.com/mine"]


async def test_to_strip_everything_must_be_meant(apiserver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert await command(apiserver, "strip") == 2
    assert capsys.readouterr().err == "steersman finalizers: say what to strip: a kind, --namespace or --selector\n"
