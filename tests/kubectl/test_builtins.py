"""kubectl's own commands for built-in kinds: those that create send protobuf."""

from __future__ import annotations

import asyncio
import json

import pytest

from .conftest import Kubectl, widget


async def test_config_maps(kubectl: Kubectl) -> None:
    assert await kubectl("create configmap c --from-literal=a=1 --from-literal=b=2") == "configmap/c created"
    said = await kubectl.fails("create configmap c --from-literal=a=1")
    assert said == 'error: failed to create configmap: configmaps "c" already exists'
    assert await kubectl("patch configmap c -p", '{"data": {"a": null, "c": "3"}}') == "configmap/c patched"
    assert json.loads(await kubectl("get configmap c -o json"))["data"] == {"b": "2", "c": "3"}
    assert (await kubectl("get cm c")).splitlines()[1].split()[:2] == ["c", "2"]
    assert "b:\n----\n2\n" in await kubectl("describe configmap c")


async def test_secrets(kubectl: Kubectl) -> None:
    assert await kubectl("create secret generic s --from-literal=p=q") == "secret/s created"
    found = json.loads(await kubectl("get secret s -o json"))
    assert (found["type"], found["data"]) == ("Opaque", {"p": "cQ=="})
    assert (await kubectl("get secret s --no-headers")).split()[:3] == ["s", "Opaque", "1"]


async def test_access(kubectl: Kubectl) -> None:
    await kubectl("create serviceaccount robot")
    await kubectl("create role reader --verb=get,list --resource=configmaps")
    await kubectl("create rolebinding rb --role=reader --user=alice --serviceaccount=default:robot")
    role = json.loads(await kubectl("get role reader -o json"))
    assert role["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    wide = (await kubectl("get rolebinding rb -o wide --no-headers")).split()
    assert (wide[:2], wide[-2:]) == (["rb", "Role/reader"], ["alice", "default/robot"])
    await kubectl("create clusterrole cr --verb=get --resource=namespaces --resource-name=x")
    await kubectl("create clusterrolebinding crb --clusterrole=cr --group=devs")
    assert "configmaps" in await kubectl("describe role reader")
    await kubectl("create configmap mine --from-literal=a=1")
    assert await kubectl("get configmap mine --token=alicetoken -o jsonpath={.data.a}") == "1"
    assert await kubectl.fails("get secrets --token=alicetoken") == (
        'Error from server (Forbidden): secrets is forbidden: User "alice" cannot list resource "secrets" in API group '
        '"" in the namespace "default"'
    )
    assert "reconciled" in await kubectl(f"auth reconcile -f {kubectl.write('role.json', role)}")


async def test_can_i(kubectl: Kubectl) -> None:
    if "authorization.k8s.io/v1" not in (await kubectl("api-versions")).split():
        pytest.skip("SelfSubjectAccessReview is issue 7")
    assert await kubectl("auth can-i list secrets") == "yes"
    result = await kubectl.run("auth", "can-i", "list", "secrets", "--token=alicetoken")
    assert (result.code, result.out) == (1, "no")
    assert "system:masters" in await kubectl("auth whoami")


async def test_namespaces(widgets: Kubectl) -> None:
    assert await widgets("create namespace other") == "namespace/other created"
    await widgets(f"create -n other -f {widgets.write('w.json', widget('a'))}")
    await widgets("create configmap c -n other")
    assert (await widgets("get ns other --no-headers")).split()[:2] == ["other", "Active"]
    assert await widgets("delete namespace other --wait") == 'namespace "other" deleted'
    assert "(NotFound)" in await widgets.fails("get namespace other")
    assert await widgets("get widgets -A -o name") == ""
    assert "(Forbidden)" in await widgets.fails("delete namespace default")


async def test_a_namespace_waits_for_finalizers(widgets: Kubectl) -> None:
    await widgets("create namespace other")
    held = widget("held", meta={"finalizers": ["example.com/hold"]})
    await widgets(f"create -n other -f {widgets.write('w.json', held)}")
    deleting = asyncio.create_task(widgets("delete namespace other --wait"))
    await widgets("wait namespace/other --timeout=20s --for=jsonpath={.status.phase}=Terminating")
    assert "because it is being terminated" in await widgets.fails("create configmap c -n other")
    await widgets("patch widget held -n other --type=json -p", '[{"op": "remove", "path": "/metadata/finalizers"}]')
    assert await deleting == 'namespace "other" deleted'


async def test_events(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a'))}")
    uid = await widgets("get widget a -o jsonpath={.metadata.uid}")
    involved = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "namespace": "default", "uid": uid}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a.1", "namespace": "default"},
        "involvedObject": involved,
        "reason": "Grown",
        "message": "It grew.",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    await widgets(f"create -f {widgets.write('e.json', event)}")
    row = (await widgets("get events --no-headers")).split()
    assert row[1:] == ["Normal", "Grown", "widget/a", "It", "grew."]
    assert "It grew." in await widgets("events --for=widget/a")
    assert "It grew." in await widgets("describe widget a")


async def test_workloads_are_records(kubectl: Kubectl) -> None:
    await kubectl("create deployment web --image=nginx --replicas=2")
    await kubectl("set image deployment/web nginx=nginx:2")
    found = json.loads(await kubectl("get deployment web -o json"))
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (2, 2)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert (await kubectl("get deploy --no-headers")).split()[:2] == ["web", "0/2"]
    await kubectl("delete deployment web")
