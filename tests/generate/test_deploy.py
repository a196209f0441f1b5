"""The manifests of a deployment: what stands in them, and what servers make of them."""

from __future__ import annotations

import argparse
import asyncio
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from tests.generate import hooked
from tests.generate.permissions import CRD, HOOKED, OPERATOR, define, fresh, running
from tests.kubectl.conftest import Kubectl, kubectl, kubectl_binary

import steersman as st
from steersman.client.config import load
from steersman.crdgen import crd_for, module_for
from steersman.generate.deploy import everything
from steersman.generate.deployment import Options, deployment, termination_seconds
from steersman.generate.errors import GenerateError
from steersman.generate.yaml_text import manifests
from steersman.offline.sources import Source
from steersman.offline.validate import validate
from steersman.runtime import run_command

__all__ = ["kubectl", "kubectl_binary"]


def options(**more: Any) -> Options:
    return Options("op", "ops", "example.com/op:1", "demo.operator", **more)


def made_for(path: Path, **more: Any) -> list[dict[str, Any]]:
    return everything(*fresh(path), options(**more))[0]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found = [obj for obj in objects if obj["kind"] == kind]
    assert len(found) == 1, found
    return found[0]


def container(manager: st.Manager, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = deployment(manager, options(**more))["spec"]["template"]["spec"]["containers"][0]
    return found


def parsed(arguments: list[str]) -> argparse.Namespace:
    """What `steersman run` takes them for."""
    parser = argparse.ArgumentParser()
    run_command.add_parser(parser.add_subparsers())
    return parser.parse_args(arguments)


@pytest.mark.parametrize("operator", [OPERATOR, HOOKED], ids=lambda path: path.stem)
async def test_a_server_finds_nothing_wrong(operator: Path) -> None:
    objects = made_for(operator)
    verdicts, wrong = await validate([Source("deploy.yaml", manifests(objects).encode())])
    assert [verdict.result for verdict in verdicts] == ["valid"] * len(objects)
    assert [each for verdict in verdicts for each in verdict.findings] == wrong == []


@pytest.mark.parametrize("operator", [OPERATOR, HOOKED], ids=lambda path: path.stem)
async def test_they_are_applied_in_their_order_again_and_again(apiserver: Any, operator: Path) -> None:
    async with await apiserver.client(field_manager="kubectl") as client:
        for _ in range(2):
            for obj in made_for(operator):
                await client.apply(obj)
        pod = of_kind(made_for(operator), "Deployment")["spec"]["template"]
        metadata = {"name": "a", "namespace": "ops"}
        await client.create({"apiVersion": "v1", "kind": "Pod", **pod, "metadata": metadata})


async def test_a_definition_that_names_a_service_may_come_to_name_a_url(apiserver: Any) -> None:
    """As when an operator that is deployed runs on a development machine for once."""
    async with await apiserver.client() as client:
        objects = made_for(HOOKED)
        await define(client, of_kind(objects, "CustomResourceDefinition"))
        async with running(fresh(HOOKED)[1], load(kubeconfig=apiserver.kubeconfig)) as manager:
            async with asyncio.timeout(60):
                await manager.ready.wait()
            crd = await client.get(CRD, "shops.hooked.example.com")
    reached = crd["spec"]["conversion"]["webhook"]["clientConfig"]
    assert set(reached) == {"url", "caBundle"}


@pytest.mark.parametrize("arguments", [(), ("--server-side", "--force-conflicts")], ids=["client", "server"])
async def test_kubectl_applies_them_and_leaves_what_the_operator_has_added(
    kubectl: Kubectl, apiserver: Any, arguments: tuple[str, ...]
) -> None:
    """The operator's authority stays in the configurations of its webhooks, and in the definition that it converts."""
    kubectl.write("deploy.json", *made_for(HOOKED))
    await kubectl("apply -f deploy.json", *arguments)
    manager = fresh(HOOKED)[1]
    manager.configure(webhook_service="ops/op-webhook")
    async with running(manager, load(kubeconfig=apiserver.kubeconfig)), asyncio.timeout(60):
        await manager.ready.wait()
    await kubectl("apply -f deploy.json", *arguments)
    for phase in ("validating", "mutating"):
        assert await kubectl(
            f"get {phase}webhookconfiguration shops -o jsonpath={{.webhooks[0].clientConfig.caBundle}}"
        )
    path = "{.spec.conversion.webhook.clientConfig.caBundle}"
    assert await kubectl(f"get crd shops.hooked.example.com -o jsonpath={path}")


def test_what_there_is_for_the_example() -> None:
    objects = made_for(OPERATOR)
    assert [obj["kind"] for obj in objects] == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Deployment",
        "PodDisruptionBudget",
    ]
    assert of_kind(objects, "Deployment")["spec"]["replicas"] == 2
    namespace = of_kind(objects, "Namespace")["metadata"]
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert not [obj for obj in made_for(OPERATOR, crds=False) if obj["kind"] == "CustomResourceDefinition"]


def test_what_there_is_besides_for_webhooks() -> None:
    objects = made_for(HOOKED)
    assert [obj["kind"] for obj in objects][-5:] == [
        "Service",
        "Deployment",
        "PodDisruptionBudget",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ]
    service, pod = of_kind(objects, "Service"), of_kind(objects, "Deployment")["spec"]["template"]
    assert pod["metadata"]["labels"].items() >= service["spec"]["selector"].items()
    ports = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
    assert ports == {"health": 8081, "webhooks": 9443}
    assert service["spec"]["ports"][0]["targetPort"] in ports
    crd = of_kind(objects, "CustomResourceDefinition")
    reached = crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
    assert (reached["namespace"], reached["name"], reached["port"]) == ("ops", "op-webhook", 443)
    for phase in ("Validating", "Mutating"):
        hook = of_kind(objects, f"{phase}WebhookConfiguration")["webhooks"][0]
        assert hook["clientConfig"]["service"]["name"] == "op-webhook"


def test_pods_are_restricted_and_bounded() -> None:
    pod = of_kind(made_for(HOOKED), "Deployment")["spec"]["template"]["spec"]
    found = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert found["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(found["resources"]["requests"]) == set(found["resources"]["limits"]) == {"cpu", "memory"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & set(pod)
    assert [set(volume) for volume in pod["volumes"]] == [{"name", "emptyDir"}]
    assert [each["topologyKey"] for each in pod["topologySpreadConstraints"]] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]


def test_what_the_process_is_told_is_understood() -> None:
    given = parsed(container(fresh(HOOKED)[1])["args"])
    assert (given.file, given.health, given.metrics) == ("demo.operator", ":8081", None)
    assert (given.webhooks, given.webhook_service) == (":9443", "ops/op-webhook")
    assert parsed(container(fresh(OPERATOR)[1], metrics_port=9090)["args"]).metrics == ":9090"


def test_addresses_that_others_reach_are_kept() -> None:
    manager = st.Manager(name="op", health=":7001", metrics="127.0.0.1:7002", webhooks=st.Webhooks("[::]:7003"))
    manager.webhook(hooked.Shop, validate=hooked.validate)
    found = container(manager, metrics_port=7004)
    assert {port["name"]: port["containerPort"] for port in found["ports"]} == {
        "health": 7001,
        "metrics": 7004,
        "webhooks": 7003,
    }
    given = parsed(found["args"])
    assert (given.health, given.metrics, given.webhooks) == (None, ":7004", ":7003")


def test_a_service_that_the_manager_names_is_the_one() -> None:
    module, manager = fresh(HOOKED)
    manager.configure(webhook_service="elsewhere/hooks")
    objects = everything(module, manager, options())[0]
    assert of_kind(objects, "Service")["metadata"]["namespace"] == "elsewhere"
    args = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert parsed(args).webhook_service == "elsewhere/hooks"


def test_objects_in_other_versions_are_read_through_the_operator_before_it_is_complete() -> None:
    manager = st.Manager(name="op")
    assert container(manager)["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert "lifecycle" not in container(manager)
    converting = container(fresh(HOOKED)[1])
    assert converting["readinessProbe"]["httpGet"]["path"] == "/readyz?exclude=caches"
    assert converting["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}


@pytest.mark.parametrize(("grace", "seconds"), [(0, 15), (30, 45), (30.5, 46), (105, 120)])
def test_a_pod_has_longer_than_the_manager_and_shorter_than_a_node(grace: float, seconds: int) -> None:
    assert termination_seconds(st.Manager(grace=grace)) == seconds


@pytest.mark.parametrize("grace", [106, math.inf])
def test_what_no_node_waits_for_is_refused(grace: float) -> None:
    with pytest.raises(GenerateError, match="use at most grace=105"):
        termination_seconds(st.Manager(grace=grace))


def test_who_is_alone_is_never_two() -> None:
    manager = st.Manager(name="op")
    manager.controller(hooked.Shop, hooked.reconcile)
    alone = deployment(manager, options())["spec"]
    assert (alone["replicas"], alone["strategy"]) == (1, {"type": "Recreate"})
    with pytest.raises(GenerateError, match="give the Manager a leader_election"):
        deployment(manager, options(replicas=2))
    only_asked = st.Manager(name="op")
    only_asked.webhook(hooked.Shop, validate=hooked.validate)
    assert deployment(only_asked, options(replicas=2))["spec"]["strategy"]["type"] == "RollingUpdate"


def test_definitions_of_others_are_not_among_the_manifests() -> None:
    @st.custom_resource("other.example.com/v1")
    class Certificate(st.CustomResource[hooked.New, None]): ...

    module = ModuleType("operator")
    module.__dict__.update(Certificate=Certificate, Shop=hooked.Shop)
    manager = st.Manager(name="op")
    manager.controller(hooked.Shop, hooked.reconcile).owns(Certificate)
    crd = of_kind(everything(module, manager, options())[0], "CustomResourceDefinition")
    assert crd["metadata"]["name"] == "shops.hooked.example.com"


def test_models_made_from_a_definition_are_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_shops.py").write_text(module_for([crd_for(hooked.ShopV1)]))
    operator = tmp_path / "watcher.py"
    operator.write_text(
        "import steersman as st\nfrom their_shops import Shop\n"
        "async def look(ctx, shop): ...\nmanager = st.Manager(name='op')\nmanager.controller(Shop, look)\n"
    )
    assert not [obj for obj in made_for(operator) if obj["kind"] == "CustomResourceDefinition"]


def test_certificates_from_elsewhere_are_noted() -> None:
    manager = st.Manager(name="op", webhooks=st.Webhooks(certificates=object()))  # type: ignore[arg-type]
    manager.webhook(hooked.Shop, validate=hooked.validate)
    notes = everything(hooked, manager, options())[1]
    assert notes == ["the webhooks' certificates come from elsewhere: mount them into the Pods"]


TEXTS = [
    "1e3",
    "0o17",
    "0x1F",
    "12:30:00",
    "1_000",
    "on",
    "y",
    "~",
    "",
    "null",
    "2026-01-01",
    "a: b",
    "- a",
    "#",
    "=",
    "<<",
]
TEXTS += [
    "one\ntwo\n",
    "one\n\ntwo",
    " one\ntwo ",
    "tail \nx\n",
    "\n",
    "\ttab",
    "ü\u2028\ufeff",
    '"',
    "'",
    "&a",
    "*a",
    "!x",
    "%",
    "@",
    "`",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_written_is_read_as_the_same(text: str) -> None:
    from steersman.apimachinery.codec import yaml as ours

    obj = {"z": text, "a": [text, {"k": text}], text or "key": [], "n": None, "b": True, "i": 10**12, "f": 0.5}
    written = manifests([obj, obj], "two lines\nof a header")
    assert list(yaml.safe_load_all(written)) == [obj, obj]
    assert list(ours.decode_all(written.encode())) == [obj, obj]
    assert written.startswith("# two lines\n# of a header\n---\nz: ")
