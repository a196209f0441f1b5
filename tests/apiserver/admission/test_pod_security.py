"""PodSecurity: what the audit log is told, labels that say nothing known, and many Pods.

The scenarios in `tests/conformance/scenarios/pod-security` have the rest. Texts are those of a kube-apiserver.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer, RunningServer, running

from steersman.api.pod_security.levels import PREFIX
from steersman.apimachinery.codec import json as codec
from steersman.apiserver.admission import Attributes
from steersman.apiserver.admission.pod_security import MOST_PODS, PodSecurity
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.watchcache import ResourceCache
from steersman.net.pki import ServerFiles
from steersman.store.interface import KeyValue

from ..audit.test_events import Collected, audited

POLICY = b"apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
SPEC = {"containers": [{"name": "c", "image": "i"}]}
ON_HOST = {**SPEC, "hostPID": True}
PRIVILEGED = {"hostPID": True, "containers": [{"name": "c", "securityContext": {"privileged": True}}]}
RESTRICTED = (
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)


def labelled(**labels: str) -> dict[str, str]:
    return {f"{PREFIX}{key.replace('_', '-')}": value for key, value in labels.items()}


async def namespace(server: RunningServer, name: str, **labels: str) -> Answer:
    return await server.request(
        "POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labelled(**labels)}}
    )


async def pod(server: RunningServer, where: str, spec: dict[str, Any]) -> Answer:
    body = {"metadata": {"name": "p"}, "spec": spec}
    return await server.request("POST", f"/api/v1/namespaces/{where}/pods?dryRun=All", body)


async def job(server: RunningServer, where: str, spec: dict[str, Any]) -> Answer:
    body = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {**spec, "restartPolicy": "Never"}}}}
    return await server.request("POST", f"/apis/batch/v1/namespaces/{where}/jobs?dryRun=All", body)


class Told:
    """A server with an audit log."""

    def __init__(self, server: RunningServer, sink: Collected) -> None:
        self.server = server
        self.sink = sink

    async def of(self, answer: Answer) -> dict[str, str]:
        """What the audit log has of a request under the plugin's keys."""
        (event,) = await self.sink.of(answer.headers["Audit-Id"], 1)
        every = event.get("annotations") or {}
        return {key.removeprefix(PREFIX): value for key, value in every.items() if key.startswith(PREFIX)}


@asynccontextmanager
async def telling(certificates: ServerFiles, path: Path, store: str = "memory://", **more: Any) -> AsyncIterator[Told]:
    sink = Collected()
    async with running(certificates, path, store, audit=audited(POLICY, sink), **more) as server:
        yield Told(server, sink)


async def test_the_audit_log_is_told_what_was_enforced_and_what_was_violated(
    certificates: ServerFiles, tmp_path: Path
) -> None:
    async with telling(certificates, tmp_path) as told:
        server = told.server
        await namespace(server, "plain", enforce_version="v1.0")
        assert await told.of(await pod(server, "plain", ON_HOST)) == {"enforce-policy": "privileged:latest"}
        assert await told.of(await job(server, "plain", ON_HOST)) == {}
        await namespace(server, "audited", enforce="baseline", enforce_version="v1.0", audit="restricted")
        violated = {"audit-violations": f'would violate PodSecurity "restricted:latest": {RESTRICTED}'}
        accepted = await pod(server, "audited", SPEC)
        assert accepted.status == 201
        assert await told.of(accepted) == {"enforce-policy": "baseline:v1.0", **violated}
        assert await told.of(await job(server, "audited", SPEC)) == violated
        refused = await pod(server, "audited", ON_HOST)
        assert refused.status == 403
        both = f'would violate PodSecurity "restricted:latest": host namespaces (hostPID=true), {RESTRICTED}'
        assert await told.of(refused) == {"enforce-policy": "baseline:v1.0", "audit-violations": both}


async def test_labels_that_say_nothing_known_are_taken_for_the_strictest(
    certificates: ServerFiles, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    off = running(certificates, tmp_path, store, disabled_plugins=frozenset({"PodSecurity"}))
    async with off as server:
        assert (await namespace(server, "wrong", enforce="nope")).status == 201
        assert (await namespace(server, "silent", audit="nope", warn="nope")).status == 201
    async with telling(certificates, tmp_path, store) as told:
        why = 'Invalid value: "nope": must be one of privileged, baseline, restricted'
        failed = {"error": f"Failed to parse policy: metadata.labels[{PREFIX}enforce]: {why}"}
        refused = await pod(told.server, "wrong", SPEC)
        assert (
            refused.body["message"] == f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {RESTRICTED}'
        )
        assert await told.of(refused) == {"enforce-policy": "restricted:latest", **failed}
        accepted = await job(told.server, "wrong", SPEC)
        assert accepted.status == 201 and "Warning" not in accepted.headers
        assert await told.of(accepted) == failed
        accepted = await pod(told.server, "silent", ON_HOST)
        assert accepted.status == 201 and "Warning" not in accepted.headers
        both = ", ".join(f"metadata.labels[{PREFIX}{mode}]: {why}" for mode in ("audit", "warn"))
        told_of = {"enforce-policy": "privileged:latest", "error": f"Failed to parse policy: [{both}]"}
        assert await told.of(accepted) == told_of


async def test_it_can_be_switched_off(certificates: ServerFiles, tmp_path: Path) -> None:
    async with running(certificates, tmp_path, disabled_plugins=frozenset({"PodSecurity"})) as server:
        await namespace(server, "n", enforce="restricted")
        answer = await pod(server, "n", ON_HOST)
        assert answer.status == 201 and "Warning" not in answer.headers


async def test_pods_of_a_namespace_that_is_missing_are_not_let_in(certificates: ServerFiles, tmp_path: Path) -> None:
    async with telling(certificates, tmp_path, disabled_plugins=frozenset({"NamespaceLifecycle"})) as told:
        refused = await pod(told.server, "nowhere", SPEC)
        message = 'Internal error occurred: failed to lookup namespace "nowhere"'
        assert (refused.status, refused.body["message"]) == (500, message)
        assert await told.of(refused) == {"error": f'{message}: namespaces "nowhere" not found'}
        accepted = await job(told.server, "nowhere", SPEC)
        assert accepted.status == 201
        assert await told.of(accepted) == {
            "error": 'failed to lookup namespace "nowhere": namespaces "nowhere" not found'
        }


def pods_of(count: int) -> ResourceCache:
    """A cache with that many Pods on their host, all but the last of one controller; the last is privileged, too."""
    cache = ResourceCache(b"/registry/pods/", 0, 0)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    for number in range(count):
        last = number == count - 1
        meta = {"name": f"p-{number:05}", "namespace": "n", "ownerReferences": [] if last else [owner]}
        value = codec.encode({"metadata": meta, "spec": PRIVILEGED if last else ON_HOST})
        cache.load(KeyValue(f"/registry/pods/n/{meta['name']}".encode(), value, number + 1, number + 1))
    return cache


async def warned(server: RunningServer, pods: ResourceCache, patience: float) -> list[str]:
    """The warnings when a namespace with these Pods is to enforce the baseline."""
    scope = server.plane.server.core.catalog.look_up("", "v1", "namespaces")
    assert scope is not None
    warnings: list[str] = []
    old, new = ({"metadata": {"name": "n", "labels": labels}} for labels in ({}, labelled(enforce="baseline")))
    attributes = Attributes("UPDATE", scope, "n", "n", new, old, UserInfo("u"), warn=warnings.extend)
    await PodSecurity({"pods": pods}.__getitem__, patience).validate(attributes)
    return warnings


async def test_of_many_pods_the_first_are_looked_at_and_those_of_other_controllers(apiserver: RunningServer) -> None:
    count = MOST_PODS + 2
    violated = 'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"'
    assert await warned(apiserver, pods_of(count), 600.0) == [
        f"new PodSecurity enforce level only checked against the first {MOST_PODS} of {count} existing pods",
        violated,
        f"p-00000 (and {MOST_PODS - 2} other pods): host namespaces",
        f"p-{count - 1:05}: host namespaces, privileged",
    ]


@pytest.mark.parametrize(("count", "seen"), [(3, "1 of 3"), (2, "1 of 2")])
async def test_looking_ends_when_time_is_over(apiserver: RunningServer, count: int, seen: str) -> None:
    first, *rest = await warned(apiserver, pods_of(count), 0.0)
    assert first == f"new PodSecurity enforce level only checked against the first {seen} existing pods"
    assert rest[-1] == "p-00000: host namespaces"
