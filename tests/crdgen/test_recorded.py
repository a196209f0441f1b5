"""Objects of generated definitions get the verdict that a kube-apiserver has given them."""

from __future__ import annotations

from collections import Counter

from tests.crdgen import kinds
from tests.crdgen.recorded import load, told

from steersman.crdgen import crds
from steersman.offline.server import OfflineServer


async def test_the_verdicts_are_those_of_a_kube_apiserver() -> None:
    recorded, counts = load(), Counter[str]()
    async with OfflineServer.start() as server:
        await server.create_namespace("default")
        definitions = server.scope("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        assert definitions is not None
        for crd in crds(kinds):
            assert (await server.create(definitions, "", crd)).ok
            assert await server.established(crd["metadata"]["name"]) is None
        for entry in recorded:
            obj = entry["of"]
            scope = server.scope(obj["apiVersion"], obj["kind"])
            assert scope is not None, obj
            answer = await server.create(scope, "default", obj, dryRun="All", fieldValidation="Strict")
            assert told(answer.code, answer.body) == entry["told"], obj
            counts["taken" if answer.ok else "refused"] += 1
            counts[obj["kind"]] += 1
    assert counts["taken"] > 100
    assert counts["refused"] > 100
    assert set(counts) - {"taken", "refused"} == {crd["spec"]["names"]["kind"] for crd in crds(kinds)}
