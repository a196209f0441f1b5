"""`steersman migrate`: what is in the store afterwards, and what it says when it cannot go on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steersman.cli import main
from steersman.client.client import Client
from steersman.client.resources import Resource
from steersman.migration import storage

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "widgets.test.example.com"
WIDGET = Resource("test.example.com/v1", "Widget", "widgets", True)


def version(name: str, *, stored: bool, **schema: Any) -> dict[str, Any]:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **schema}
    root = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": True, "storage": stored, "schema": {"openAPIV3Schema": root}}


async def widgets(apiserver: Any, count: int) -> None:
    """That many objects stored as v1alpha1, of a definition whose storage version is now v1."""
    await define(apiserver)
    async with await apiserver.client() as client:
        for index in range(count):
            meta = {"name": f"w{index:03}", "namespace": "default"}
            await client.create({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": meta, "spec": {}})
    await change_versions(apiserver, [version("v1alpha1", stored=False), version("v1", stored=True)])


async def define(apiserver: Any) -> None:
    versions = [version("v1alpha1", stored=True), version("v1", stored=False)]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "test.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME}}
    answer = await apiserver.request("POST", CRDS, {**crd, "spec": spec})
    assert answer.status == 201, answer.body
    await apiserver.until_served("test.example.com", "v1", "widgets")


async def change_versions(apiserver: Any, versions: list[dict[str, Any]]) -> None:
    crd = (await apiserver.request("GET", f"{CRDS}/{NAME}")).body
    crd["spec"]["versions"] = versions
    answer = await apiserver.request("PUT", f"{CRDS}/{NAME}", crd)
    assert answer.status == 200, answer.body


async def stored(apiserver: Any) -> list[str]:
    """The versions in the store's bytes, object by object."""
    prefix = b"/registry/test.example.com/widgets/"
    found = await apiserver.plane.store.range(prefix, prefix[:-1] + b"0")
    return [item.value.split(b'"')[3].decode().rpartition("/")[2] for item in found.items]


async def stored_versions(apiserver: Any) -> list[str]:
    crd = (await apiserver.request("GET", f"{CRDS}/{NAME}")).body
    return list(crd["status"]["storedVersions"])


async def run(apiserver: Any, *arguments: str) -> int:
    return await asyncio.to_thread(main, ["migrate", "--kubeconfig", str(apiserver.kubeconfig), *arguments])


async def test_every_object_is_stored_anew_and_old_versions_can_go(
    apiserver: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    await widgets(apiserver, 3)
    await apiserver.request("PATCH", "/apis/test.example.com/v1/namespaces/default/widgets/w001", {}, **MERGE)
    assert await stored(apiserver) == ["v1alpha1", "v1", "v1alpha1"]
    before = await objects(apiserver)
    assert await run(apiserver, NAME) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{NAME}: may be stored as v1alpha1, v1; the storage version is v1",
        f"{NAME}: 3 objects rewritten",
        f"{NAME}: storedVersions is v1",
    ]
    assert await stored(apiserver) == ["v1", "v1", "v1"]
    assert await stored_versions(apiserver) == ["v1"]
    after = await objects(apiserver)
    pairs = list(zip(before, after, strict=True))
    assert [old["metadata"] == new["metadata"] for old, new in pairs] == [False, True, False]
    for old, new in pairs:
        old["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
    assert before == after
    await change_versions(apiserver, [version("v1", stored=True)])


MERGE = {"headers": {"Content-Type": "application/merge-patch+json"}}


async def objects(apiserver: Any) -> list[dict[str, Any]]:
    items = (await apiserver.request("GET", "/apis/test.example.com/v1/widgets")).body["items"]
    return list(items)


async def test_a_dry_run_stores_nothing(apiserver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    await widgets(apiserver, 2)
    assert await run(apiserver, "--all", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 of 1 definitions have objects that may be stored in an old version",
        f"{NAME}: may be stored as v1alpha1, v1; the storage version is v1",
        f"{NAME}: 2 objects would be rewritten",
        f"{NAME}: storedVersions would become v1",
    ]
    assert await stored(apiserver) == ["v1alpha1", "v1alpha1"]
    assert await stored_versions(apiserver) == ["v1alpha1", "v1"]


async def test_nothing_is_left_to_do(apiserver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    await define(apiserver)
    assert await run(apiserver, NAME) == 0
    assert capsys.readouterr().out == f"{NAME}: all objects are stored as v1alpha1\n"
    assert await run(apiserver, "--all") == 0
    assert capsys.readouterr().out == "0 of 1 definitions have objects that may be stored in an old version\n"


async def test_pages_of_a_long_list(apiserver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    await widgets(apiserver, 520)
    assert await run(apiserver, NAME) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == [
        f"{NAME}: 500 objects rewritten, so far",
        f"{NAME}: 520 objects rewritten",
    ]
    assert set(await stored(apiserver)) == {"v1"}


async def test_who_writes_meanwhile_has_done_the_work(apiserver: Any) -> None:
    """One object is written and one deleted between the list and the rewriting."""
    await widgets(apiserver, 3)
    said: list[str] = []
    async with await apiserver.client() as client:
        rewritten = OvertakenClient(client, apiserver)
        outcome = await storage.migrate(rewritten, NAME, said.append)  # type: ignore[arg-type]
    assert (outcome.rewritten, outcome.overtaken, outcome.refused) == (1, 2, [])
    assert await stored(apiserver) == ["v1", "v1"]
    assert await stored_versions(apiserver) == ["v1"]


class OvertakenClient:
    """A client beside which others write, just before its first patch."""

    def __init__(self, client: Client, apiserver: Any) -> None:
        self._client = client
        self._others = asyncio.Lock()
        self._apiserver = apiserver
        self._done = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def patch(self, *arguments: Any, **more: Any) -> Any:
        async with self._others:
            if not self._done:
                self._done = True
                path = "/apis/test.example.com/v1/namespaces/default/widgets"
                await self._apiserver.request("PATCH", f"{path}/w000", {"spec": {"a": 1}}, **MERGE)
                await self._apiserver.request("DELETE", f"{path}/w001")
        return await self._client.patch(*arguments, **more)


async def test_a_definition_that_changes_meanwhile_is_begun_again(apiserver: Any) -> None:
    """The storage version goes back while objects are rewritten: they are rewritten once more."""
    await widgets(apiserver, 2)
    said: list[str] = []

    async def flip() -> None:
        await change_versions(apiserver, [version("v1alpha1", stored=True), version("v1", stored=False)])

    async with await apiserver.client() as client:
        waiting: list[asyncio.Task[None]] = []

        def say(line: str) -> None:
            said.append(line)
            if line.endswith("2 objects rewritten") and not waiting:
                waiting.append(asyncio.ensure_future(flip()))

        class Slow(OvertakenClient):
            async def modify(self, *arguments: Any, **more: Any) -> Any:
                await asyncio.gather(*waiting)
                return await self._client.modify(*arguments, **more)

            async def patch(self, *arguments: Any, **more: Any) -> Any:
                return await self._client.patch(*arguments, **more)

        await storage.migrate(Slow(client, apiserver), NAME, say)  # type: ignore[arg-type]
    assert f"{NAME}: the definition has changed meanwhile: once more" in said
    assert await stored(apiserver) == ["v1alpha1", "v1alpha1"]
    assert await stored_versions(apiserver) == ["v1alpha1"]


async def test_objects_that_are_refused(apiserver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """They are told, and the versions stay."""
    await widgets(apiserver, 2)
    rule = {"x-kubernetes-validations": [{"rule": "self != oldSelf", "message": "it must change"}]}
    tight = version("v1", stored=True, properties={"a": {"type": "string", "maxLength": 5}}, **rule)
    await change_versions(apiserver, [version("v1alpha1", stored=False), tight])
    assert await run(apiserver, NAME) == 1
    out = capsys.readouterr().out.splitlines()
    assert sorted(out[1:3])[0] == (
        'widgets: default/w000 cannot be rewritten: Widget.test.example.com "w000" is invalid: spec: Invalid value: '
        "it must change"
    )
    assert out[3:] == [
        f"{NAME}: 0 objects rewritten",
        f"{NAME}: 2 objects refused: storedVersions stays as it is",
    ]
    assert await stored_versions(apiserver) == ["v1alpha1", "v1"]


async def test_who_may_not_write_is_told_so(apiserver: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await widgets(apiserver, 1)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    rbac = "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules}
    await apiserver.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    }
    await apiserver.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    theirs = tmp_path / "bob"
    theirs.write_text(apiserver.kubeconfig.read_text().replace("admintoken", "bobtoken"))
    assert await asyncio.to_thread(main, ["migrate", "--kubeconfig", str(theirs), NAME]) == 1
    assert 'User "bob" cannot patch resource "widgets"' in capsys.readouterr().err
    assert await stored(apiserver) == ["v1alpha1"]


async def test_definitions_that_cannot_be_migrated(apiserver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    await widgets(apiserver, 1)
    unserved = [{**each, "served": False} for each in (version("v1alpha1", stored=False), version("v1", stored=True))]
    await change_versions(apiserver, unserved)
    assert await run(apiserver, "nothing.example.com", NAME) == 1
    assert capsys.readouterr().err.splitlines() == [
        'steersman migrate: customresourcedefinitions.apiextensions.k8s.io "nothing.example.com" not found',
        f"steersman migrate: {NAME}: no version is served, so that its objects cannot be reached; serve one",
    ]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [([], 2), (["a.example.com", "--all"], 2), (["--all", "--kubeconfig", "missing"], 1), (["--surely"], 2)],
)
def test_usage(
    arguments: list[str],
    status: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code: Any = main(["migrate", *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == status
    assert capsys.readouterr().err.count("\n") == 1
