"""What a server tells kubectl about itself."""

from __future__ import annotations

import json

from .conftest import Kubectl


async def test_resources_and_versions(widgets: Kubectl) -> None:
    row = (await widgets("api-resources --api-group=example.com --no-headers -o wide")).split()
    assert row[:5] == ["widgets", "wd", "example.com/v1", "true", "Widget"]
    assert set(row[5].split(",")) == {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert "configmaps" in await widgets("api-resources --api-group= --namespaced -o name")
    assert {"v1", "example.com/v1", "apiextensions.k8s.io/v1"} <= set((await widgets("api-versions")).split())


async def test_explain(widgets: Kubectl) -> None:
    said = await widgets("explain widget")
    assert said.startswith("GROUP:      example.com\nKIND:       Widget\nVERSION:    v1\n")
    assert "A widget." in said
    said = await widgets("explain widget.spec")
    assert "  size\t<integer> -required-\n    How big it is." in said
    assert "  enum: red, green" in said
    assert "ports\t<[]Object>\n    name\t<string> -required-\n    port\t<integer>" in await widgets(
        "explain widget.spec --recursive"
    )
    assert "How big it is." in await widgets("explain wd.spec.size --output=plaintext-openapiv2")
    assert 'field "nope" does not exist' in await widgets.fails("explain widget.nope")
    assert "data\t<map[string]string>" in await widgets("explain configmap")


async def test_raw(widgets: Kubectl) -> None:
    assert json.loads(await widgets("get --raw /apis/example.com/v1"))["kind"] == "APIResourceList"
    found = json.loads(await widgets("get --raw /apis/example.com/v1/namespaces/default/widgets?limit=1"))
    assert (found["kind"], found["items"]) == ("WidgetList", [])
    assert await widgets("get --raw /readyz") == "ok"
    assert "(NotFound)" in await widgets.fails("get --raw /nope")
    created = await widgets(
        "create --raw /apis/example.com/v1/namespaces/default/widgets -f -",
        stdin='{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}',
    )
    assert json.loads(created)["metadata"]["name"] == "a"


async def test_version(kubectl: Kubectl) -> None:
    assert json.loads(await kubectl("version -o json"))["serverVersion"]["major"] == "1"
    assert "is running at" in await kubectl("cluster-info")
