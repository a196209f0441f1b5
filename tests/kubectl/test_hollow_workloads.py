"""Workloads that progress although nothing runs, as kubectl sees them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from steersman.net.pki import ServerFiles

from ..conftest import running
from .conftest import Kubectl

WAIT = "--timeout=20s"


@pytest.fixture
async def kubectl(kubectl_binary: Path, certificates: ServerFiles, tmp_path: Path) -> AsyncIterator[Kubectl]:
    """kubectl on a server with hollow workloads."""
    async with running(certificates, tmp_path, hollow_workloads=True) as server:
        directory = tmp_path / "kubectl"
        directory.mkdir()
        yield Kubectl(kubectl_binary, server.kubeconfig, directory)


def workload(kind: str, name: str, *, behaviour: str = "", **spec: Any) -> dict[str, Any]:
    annotations = {"steersman.dev/hollow": behaviour} if behaviour else {}
    template: dict[str, Any] = {
        "metadata": {"labels": {"app": name}, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    group = "batch" if kind == "Job" else "apps"
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    body = {**selector, "template": template, **spec}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


async def got(kubectl: Kubectl, what: str) -> Any:
    return json.loads(await kubectl(f"get {what} -o json"))


async def test_a_deployment_rolls_out_on_and_back(kubectl: Kubectl) -> None:
    await kubectl("create deployment web --image=nginx:1 --replicas=3")
    done = 'deployment "web" successfully rolled out'
    assert (await kubectl(f"rollout status deployment/web {WAIT}")).endswith(done)
    first = (await got(kubectl, "rs"))["items"][0]["metadata"]["name"]

    await kubectl("set image deployment/web nginx=nginx:2")
    assert (await kubectl(f"rollout status deployment/web {WAIT}")).endswith(done)
    images = [pod["spec"]["containers"][0]["image"] for pod in (await got(kubectl, "pods"))["items"]]
    assert images == ["nginx:2"] * 3

    await kubectl("rollout undo deployment/web")
    assert (await kubectl(f"rollout status deployment/web {WAIT}")).endswith(done)
    sets = {each["metadata"]["name"]: each for each in (await got(kubectl, "rs"))["items"]}
    assert {name: each["spec"]["replicas"] for name, each in sets.items()}[first] == 3
    history = (await kubectl("rollout history deployment/web")).splitlines()[2:]
    assert [line.split()[0] for line in history] == ["2", "3"]

    await kubectl("scale deployment/web --replicas=5")
    await kubectl(f"wait deployment/web --for=jsonpath={{.status.readyReplicas}}=5 {WAIT}")
    await kubectl("scale deployment/web --replicas=0")
    await kubectl(f"wait pod -l app=web --for=delete {WAIT}")
    await kubectl(f"delete deployment/web {WAIT}")


async def test_a_deployment_is_restarted_and_goes_back_to_a_revision(kubectl: Kubectl) -> None:
    done = 'deployment "web" successfully rolled out'
    await kubectl("create deployment web --image=nginx:1 --replicas=2")
    await kubectl(f"rollout status deployment/web {WAIT}")
    before = {pod["metadata"]["name"] for pod in (await got(kubectl, "pods -l app=web"))["items"]}
    await kubectl("annotate deployment/web kubernetes.io/change-cause=again")
    assert await kubectl("rollout restart deployment/web") == "deployment.apps/web restarted"
    assert (await kubectl(f"rollout status deployment/web {WAIT}")).endswith(done)
    assert before.isdisjoint(pod["metadata"]["name"] for pod in (await got(kubectl, "pods -l app=web"))["items"])
    history = (await kubectl("rollout history deployment/web")).splitlines()[2:]
    assert [line.split() for line in history] == [["1", "<none>"], ["2", "again"]]

    assert await kubectl("rollout undo deployment/web --to-revision=1") == "deployment.apps/web rolled back"
    assert (await kubectl(f"rollout status deployment/web {WAIT}")).endswith(done)
    assert "nginx:1" in await kubectl("rollout history deployment/web --revision=3")
    await kubectl("rollout pause deployment/web")
    assert "restart paused deployment" in await kubectl.fails("rollout restart deployment/web")
    assert await kubectl("rollout resume deployment/web") == "deployment.apps/web resumed"


async def test_a_deployment_whose_pods_never_get_ready(kubectl: Kubectl) -> None:
    await kubectl(f"create -f {kubectl.write('d.json', workload('Deployment', 'd', behaviour='NotReady', replicas=2))}")
    await kubectl(f"wait deployment/d --for=jsonpath={{.status.unavailableReplicas}}=2 {WAIT}")
    assert "timed out" in await kubectl.fails("rollout status deployment/d --timeout=1s")
    pods = (await got(kubectl, "pods"))["items"]
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}

    change = {"spec": {"template": {"metadata": {"annotations": {"steersman.dev/hollow": "Running"}}}}}
    await kubectl("patch deployment d -p", json.dumps(change))
    await kubectl(f"rollout status deployment/d {WAIT}")


async def test_a_deployment_that_a_quota_holds_up_says_so(kubectl: Kubectl) -> None:
    await kubectl("create quota q --hard=pods=2")
    await kubectl("wait --for=jsonpath={.status.used.pods}=0 quota/q --timeout=10s")
    await kubectl("create deployment web --image=nginx:1 --replicas=3")
    await kubectl(f"wait deployment/web --for=condition=ReplicaFailure {WAIT}")
    await kubectl(f"wait deployment/web --for=jsonpath={{.status.readyReplicas}}=2 {WAIT}")
    failure = "{.status.conditions[?(@.type=='ReplicaFailure')].message}"
    assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in await kubectl(
        f"get deployment web -o jsonpath={failure}"
    )
    await kubectl("delete quota q")
    assert (await kubectl(f"rollout status deployment/web {WAIT}")).endswith("successfully rolled out")
    assert await kubectl(f"get deployment web -o jsonpath={failure}") == ""


@pytest.mark.parametrize("budget", ["--min-available=2", "--max-unavailable=1", "--min-available=50%"])
async def test_a_budget_lets_pods_go_one_by_one(kubectl: Kubectl, budget: str) -> None:
    await kubectl("create deployment web --image=nginx:1 --replicas=3")
    await kubectl(f"rollout status deployment/web {WAIT}")
    await kubectl(f"create poddisruptionbudget b --selector=app=web {budget}")
    await kubectl(f"wait pdb/b --for=jsonpath={{.status.disruptionsAllowed}}=1 {WAIT}")
    status = (await got(kubectl, "pdb b"))["status"]
    assert (status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]) == (3, 2, 3)
    name = (await got(kubectl, "pods -l app=web"))["items"][0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/default/pods/{name}/eviction"
    await kubectl(f"create --raw {path} -f {kubectl.write('e.json', eviction)}")
    await kubectl(f"wait pdb/b --for=jsonpath={{.status.currentHealthy}}=3 {WAIT}")
    await kubectl(f"wait pdb/b --for=condition=DisruptionAllowed {WAIT}")
    await kubectl("scale deployment/web --replicas=1")
    await kubectl(f"wait pdb/b --for=jsonpath={{.status.currentHealthy}}=1 {WAIT}")
    allowed = {"--min-available=2": "0", "--max-unavailable=1": "1", "--min-available=50%": "0"}[budget]
    await kubectl(f"wait pdb/b --for=jsonpath={{.status.disruptionsAllowed}}={allowed} {WAIT}")


async def test_recreate_never_has_both(kubectl: Kubectl) -> None:
    body = workload("Deployment", "d", replicas=2, strategy={"type": "Recreate"})
    await kubectl(f"create -f {kubectl.write('d.json', body)}")
    await kubectl(f"rollout status deployment/d {WAIT}")
    await kubectl("set image deployment/d c=i:2")
    await kubectl(f"rollout status deployment/d {WAIT}")
    images = {pod["spec"]["containers"][0]["image"] for pod in (await got(kubectl, "pods"))["items"]}
    assert images == {"i:2"}


async def test_a_stateful_set_has_numbered_pods_with_claims(kubectl: Kubectl) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    body = workload("StatefulSet", "db", replicas=3, serviceName="db", volumeClaimTemplates=claims)
    await kubectl(f"create -f {kubectl.write('s.json', body)}")
    await kubectl(f"rollout status sts/db {WAIT}")
    pods = (await got(kubectl, "pods"))["items"]
    assert [pod["metadata"]["name"] for pod in pods] == ["db-0", "db-1", "db-2"]
    names = [each["metadata"]["name"] for each in (await got(kubectl, "pvc"))["items"]]
    assert names == ["data-db-0", "data-db-1", "data-db-2"]

    await kubectl("set image sts/db c=i:2")
    await kubectl(f"rollout status sts/db {WAIT}")
    pods = (await got(kubectl, "pods"))["items"]
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"i:2"}

    await kubectl("scale sts/db --replicas=1")
    await kubectl(f"wait sts/db --for=jsonpath={{.status.replicas}}=1 {WAIT}")
    assert len((await got(kubectl, "pvc"))["items"]) == 3


async def test_a_daemon_set_has_one_pod_on_the_only_node(kubectl: Kubectl) -> None:
    await kubectl(f"create -f {kubectl.write('ds.json', workload('DaemonSet', 'ds'))}")
    await kubectl(f"rollout status ds/ds {WAIT}")
    pods = (await got(kubectl, "pods"))["items"]
    assert [pod["spec"]["nodeName"] for pod in pods] == ["hollow-node"]
    assert (await kubectl("get nodes --no-headers")).split()[:2] == ["hollow-node", "Ready"]


async def test_jobs_succeed_or_fail(kubectl: Kubectl) -> None:
    await kubectl(f"create -f {kubectl.write('j.json', workload('Job', 'j', completions=3, parallelism=2))}")
    await kubectl(f"wait job/j --for=condition=Complete {WAIT}")
    assert (await got(kubectl, "job/j"))["status"]["succeeded"] == 3

    bad = workload("Job", "bad", behaviour="Failed", backoffLimit=1)
    await kubectl(f"create -f {kubectl.write('bad.json', bad)}")
    await kubectl(f"wait job/bad --for=condition=Failed {WAIT}")
    status = (await got(kubectl, "job/bad"))["status"]
    assert status["failed"] == 2
    assert {each["type"]: each["reason"] for each in status["conditions"]}["Failed"] == "BackoffLimitExceeded"


async def test_pods_do_what_they_say(kubectl: Kubectl) -> None:
    for behaviour in ("Running", "NotReady", "Succeeded", "Failed", "Pending"):
        name = behaviour.lower()
        await kubectl(f"run {name} --image=i --annotations=steersman.dev/hollow={behaviour}")
    await kubectl(f"wait pod/running --for=condition=Ready {WAIT}")
    for name, phase in (("notready", "Running"), ("succeeded", "Succeeded"), ("failed", "Failed")):
        await kubectl(f"wait pod/{name} --for=jsonpath={{.status.phase}}={phase} {WAIT}")
    assert (await got(kubectl, "pod/pending"))["status"]["phase"] == "Pending"
    assert "1/1" in await kubectl("get pod running --no-headers")
    await kubectl(f"delete pod --all {WAIT}")
    assert (await got(kubectl, "pods"))["items"] == []
