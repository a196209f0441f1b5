"""The daily work with built-in kinds: what kubectl says is what it says of a kube-apiserver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .conftest import Kubectl


def deployment(image: str = "nginx:1", replicas: int = 2) -> dict[str, Any]:
    containers = [
        {"name": "c", "image": image, "ports": [{"containerPort": 80}]},
        {"name": "side", "image": "side:1"},
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        },
    }


@pytest.fixture
async def web(kubectl: Kubectl) -> Kubectl:
    """kubectl on a server with a Deployment, whose manifest is web.json; new.json changes it."""
    kubectl.write("web.json", deployment())
    kubectl.write("new.json", deployment("nginx:2", 3))
    assert await kubectl("apply -f web.json") == "deployment.apps/web created"
    return kubectl


async def test_apply_says_what_it_did(web: Kubectl) -> None:
    assert await web("apply -f web.json") == "deployment.apps/web unchanged"
    assert await web("apply --dry-run=client -f new.json") == "deployment.apps/web configured (dry run)"
    assert await web("apply --dry-run=server -f new.json") == "deployment.apps/web configured (server dry run)"
    assert await web("get deployment web -o jsonpath={.spec.replicas}") == "2"
    assert await web("apply -f new.json") == "deployment.apps/web configured"
    images = "jsonpath={.spec.template.spec.containers[*].image}"
    assert await web(f"get deployment web -o {images}") == "nginx:2 side:1"


@pytest.mark.parametrize("side", ["--server-side=false", "--server-side"])
async def test_diff_tells_by_its_exit_code(web: Kubectl, side: str) -> None:
    assert (await web.run("diff", side, "-f", "web.json")).code == (0 if side.endswith("false") else 1)
    changed = await web.run("diff", side, "-f", "new.json")
    assert changed.code == 1
    lines = {line.strip(" +-") for line in changed.out.splitlines() if line.startswith("+ ")}
    assert {"replicas: 3", "image: nginx:2"} <= {line.removeprefix("- ") for line in lines}
    assert (await web.run("diff", side, "-f", "no-such-file.json")).code > 1
    assert await web("get deployment web -o jsonpath={.spec.replicas}") == "2"


async def test_server_side_apply_takes_over_with_force_only(web: Kubectl) -> None:
    assert await web("apply --server-side -f web.json") == "deployment.apps/web serverside-applied"
    refused = await web.fails("apply --server-side --field-manager=other -f new.json")
    assert refused.splitlines()[:3] == [
        'error: Apply failed with 2 conflicts: conflicts with "kubectl":',
        "- .spec.replicas",
        '- .spec.template.spec.containers[name="c"].image',
    ]
    forced = "apply --server-side --field-manager=other --force-conflicts -f new.json"
    assert await web(forced) == "deployment.apps/web serverside-applied"
    refused = await web.fails("diff --server-side -f web.json")
    assert 'Apply failed with 2 conflicts: conflicts with "other":' in refused
    managers = await web("get deployment web --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}")
    assert {"kubectl", "other"} <= set(managers.split())


async def test_scale_asks_for_what_is_there(web: Kubectl) -> None:
    assert await web("scale deployment/web --replicas=5") == "deployment.apps/web scaled"
    refused = await web.fails("scale deployment/web --replicas=4 --current-replicas=3")
    assert refused == "error: Expected replicas to be 3, was 5"
    assert await web("scale deployment/web --replicas=4 --current-replicas=5") == "deployment.apps/web scaled"
    assert await web("get deployment web -o jsonpath={.spec.replicas}") == "4"


async def test_set(web: Kubectl) -> None:
    said = [
        await web(f"set {what}")
        for what in (
            "image deployment/web c=nginx:3 side=side:2",
            "env deployment/web -c=c X=y",
            "resources deployment/web -c=c --limits=cpu=200m,memory=512Mi",
            "serviceaccount deployment/web builder",
        )
    ]
    assert said == [
        f"deployment.apps/web {what} updated" for what in ("image", "env", "resource requirements", "serviceaccount")
    ]
    assert await web.fails("set image deployment/web nope=x") == 'error: unable to find container named "nope"'
    spec = (await web.run("get", "deployment", "web", "-o", "json")).json["spec"]["template"]["spec"]
    first, second = spec["containers"]
    assert (first["image"], second["image"], spec["serviceAccountName"]) == ("nginx:3", "side:2", "builder")
    assert first["env"] == [{"name": "X", "value": "y"}]
    assert first["resources"] == {"limits": {"cpu": "200m", "memory": "512Mi"}}
    assert first["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


async def test_label_and_annotate(web: Kubectl) -> None:
    assert await web("label deployment/web tier=front") == "deployment.apps/web labeled"
    refused = await web.fails("label deployment/web tier=back")
    assert refused == "error: 'tier' already has a value (front), and --overwrite is false"
    assert await web("label --overwrite deployment/web tier=back") == "deployment.apps/web labeled"
    assert (await web("get deploy -l tier=back -o name")) == "deployment.apps/web"
    assert await web("label deployment/web tier-") == "deployment.apps/web unlabeled"
    assert await web("annotate deployment/web note=hello") == "deployment.apps/web annotated"
    assert await web("get deployment web -o jsonpath={.metadata.annotations.note}") == "hello"


async def test_autoscale_and_expose(web: Kubectl) -> None:
    assert await web("autoscale deployment/web --min=1 --max=3 --cpu=50%") == (
        "horizontalpodautoscaler.autoscaling/web autoscaled"
    )
    row = (await web("get hpa --no-headers")).split()
    assert row[:7] == ["web", "Deployment/web", "cpu:", "<unknown>/50%", "1", "3", "0"]
    assert await web("expose deployment/web --port=80 --target-port=8080") == "service/web exposed"
    assert await web("expose deployment/web --port=80 --type=NodePort --name=np") == "service/np exposed"
    shown = await web("get svc web np -o jsonpath={.items[*].spec['selector','ports']}")
    assert '"targetPort":8080' in shown
    assert shown.count('{"app":"web"}') == 2


CREATE = {
    "deployment made --image=busybox --replicas=2": "deployment.apps/made",
    "job j --image=busybox": "job.batch/j",
    "cronjob cj --image=busybox --schedule=@daily": "cronjob.batch/cj",
    "secret generic s --from-literal=a=b": "secret/s",
    "configmap cm --from-literal=a=b": "configmap/cm",
    "role r --verb=get,list --resource=pods,deployments.apps": "role.rbac.authorization.k8s.io/r",
    "rolebinding rb --role=r --user=alice": "rolebinding.rbac.authorization.k8s.io/rb",
    "clusterrole cr --verb=get --resource=nodes": "clusterrole.rbac.authorization.k8s.io/cr",
    "clusterrolebinding crb --clusterrole=cr --group=devs": "clusterrolebinding.rbac.authorization.k8s.io/crb",
    "quota q --hard=pods=10,cpu=4": "resourcequota/q",
    "serviceaccount robot": "serviceaccount/robot",
    "namespace ns": "namespace/ns",
    "ingress in --rule=foo.com/bar=svc:8080": "ingress.networking.k8s.io/in",
    "priorityclass pc --value=100": "priorityclass.scheduling.k8s.io/pc",
    "poddisruptionbudget pdb --selector=app=web --min-available=1": "poddisruptionbudget.policy/pdb",
    "service clusterip svc --tcp=80:80": "service/svc",
    "service nodeport np --tcp=80:80": "service/np",
    "service externalname ext --external-name=a.b.c": "service/ext",
}


async def test_create_everything(kubectl: Kubectl) -> None:
    for command, name in CREATE.items():
        assert await kubectl(f"create {command}") == f"{name} created"
    assert await kubectl("create job again --from=cronjob/cj") == "job.batch/again created"
    assert (await kubectl("create token robot --duration=10m")).count(".") == 2
    refused = await kubectl.fails("create secret generic s --from-literal=a=b")
    assert refused == 'error: failed to create secret secrets "s" already exists'
    names = set((await kubectl("get all -o name")).split())
    workloads = {"deployment.apps/made", "job.batch/again", "job.batch/j", "cronjob.batch/cj"}
    assert names == workloads | {"service/svc", "service/np", "service/ext"}


async def test_nodes(kubectl: Kubectl) -> None:
    await kubectl(
        f"apply -f {kubectl.write('n.json', {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n'}})}"
    )
    assert await kubectl("taint nodes n k=v:NoSchedule") == "node/n tainted"
    refused = await kubectl.fails("taint nodes n k=v:NoSchedule")
    assert refused == "error: node n already has k taint(s) with same effect(s) and --overwrite is false"
    assert await kubectl("taint nodes n k=w:NoSchedule --overwrite") == "node/n modified"
    assert await kubectl("taint nodes n k:NoSchedule-") == "node/n untainted"
    assert await kubectl("cordon n") == "node/n cordoned"
    assert (await kubectl("get nodes --no-headers")).split()[:2] == ["n", "Unknown,SchedulingDisabled"]
    assert await kubectl("drain n") == "node/n already cordoned\nnode/n drained"
    assert await kubectl("uncordon n") == "node/n uncordoned"


async def test_a_quota_is_felt(kubectl: Kubectl) -> None:
    await kubectl("create quota q --hard=count/configmaps=2,cpu=1")
    await kubectl("wait --for=jsonpath={.status.used.count/configmaps}=1 quota/q --timeout=10s")
    await kubectl("create configmap a")
    refused = await kubectl.fails("create configmap b")
    assert refused.endswith(
        "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2"
    )
    refused = await kubectl.fails("run p --image=x")
    assert refused == ('Error from server (Forbidden): pods "p" is forbidden: failed quota: q: must specify cpu for: p')
    row = (await kubectl("get quota --no-headers")).rsplit(maxsplit=1)[0]
    assert " ".join(row.split()) == "q count/configmaps: 2/2, cpu: 0/1"


async def test_limits_are_told(kubectl: Kubectl) -> None:
    limits = [{"type": "Container", "default": {"memory": "64Mi"}, "max": {"memory": "128Mi"}}]
    bounds = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": limits}}
    await kubectl(f"apply -f {kubectl.write('limits.json', bounds)}")
    assert await kubectl("run p --image=x") == "pod/p created"
    given = await kubectl("get pod p -o jsonpath={.spec.containers[0].resources.limits.memory}")
    assert given == "64Mi"
    await asyncio.gather(kubectl("get limits l"), kubectl("describe limits l"))
    overrides = '{"spec":{"containers":[{"name":"q","image":"x","resources":{"limits":{"memory":"1Gi"}}}]}}'
    refused = await kubectl.fails("run q --image=x", f"--overrides={overrides}")
    assert refused.endswith("maximum memory usage per Container is 128Mi, but limit is 1Gi")
