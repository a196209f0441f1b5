"""Asks a kube-apiserver about definitions that were made of model classes, and objects of them, and compares.

    python -m tools.fuzz.models --reference URL [--token TOKEN] [--objects N] [--seed S] [--record FILE]

The kinds are those of tests/crdgen/kinds.py, which between them say all that a model can. Each definition must be taken
without a warning, and be described as here; each object (about half of them are wrong somewhere) must get the verdict
that `steersman validate` gives, in the same words, with the same defaults. Definitions of the group kinds.example.com
come and go. The exit code is 1 when there are differences.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.crdgen import kinds
from tests.crdgen.objects import objects_of
from tests.crdgen.recorded import save, told

from steersman.apimachinery.codec import json as codec
from steersman.client.errors import DecodeError
from steersman.client.models import KubernetesObject
from steersman.crdgen import crds
from steersman.crdgen.definition import models
from steersman.offline.server import OfflineServer, collection

from .compare import differences, explained
from .values import write
from .wire import Answer, Ask, Server, parsed

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
READY_SECONDS = 15.0
ALL_AT_ONCE = 20
Object = dict[str, Any]


@dataclass
class Tally:
    """What happened so far."""

    counts: Counter[str] = field(default_factory=Counter)
    told: list[Object] = field(default_factory=list)

    def note(self, what: str, where: str, reference: Any, ours: Any, obj: Any = None) -> None:
        self.counts["differences"] += 1
        found = {"what": what, "where": where, "reference": reference, "ours": ours, "object": obj}
        sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def generated(crd: Mapping[str, Any], count: int, number: int) -> list[Object]:
    """Objects of a kind: the same for the same number."""
    found: list[Object] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(objects_of(crd, wrong=True))
    def collect(obj: Object) -> None:
        found.append(obj)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return found


class Comparison:
    """One definition on both sides, and objects of it."""

    def __init__(self, reference: Server, ours: OfflineServer, crd: Object, tally: Tally) -> None:
        self.reference, self.ours, self.crd, self.tally = reference, ours, crd, tally
        self.name: str = crd["metadata"]["name"]
        self.classes = {
            each.api_kind().version: each
            for each in models(kinds)
            if each.api_kind().kind == crd["spec"]["names"]["kind"]
        }

    async def play(self, count: int, number: int) -> None:
        await self._define()
        try:
            await self._describe()
            objects = generated(self.crd, count, number)
            for first in range(0, len(objects), ALL_AT_ONCE):
                await asyncio.gather(*(self._judge(obj) for obj in objects[first : first + ALL_AT_ONCE]))
        finally:
            await self._remove()

    async def _remove(self) -> None:
        path = f"{DEFINITIONS}/{self.name}"
        while (await self.reference.ask(Ask("DELETE", path))).status != 404:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.05)

    async def _define(self) -> None:
        await self._remove()  # what an earlier run has left
        answer = await self.reference.ask(Ask("POST", DEFINITIONS, json.dumps(self.crd)))
        if answer.status != 201 or answer.warnings:
            self.tally.note("definition", self.name, [answer.status, answer.warnings, str(answer.body)], 201)
        scope = self.ours.scope("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        assert scope is not None
        made = await self.ours.create(scope, "", self.crd)
        assert made.ok, made
        assert await self.ours.established(self.name) is None
        self.tally.counts["definitions"] += 1
        deadline = time.monotonic() + READY_SECONDS
        while not await self._is_served():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} is not served")
            await asyncio.sleep(0.05)

    async def _is_served(self) -> bool:
        answer = await self.reference.ask(Ask("GET", f"{DEFINITIONS}/{self.name}"))
        conditions = answer.body["status"].get("conditions") or () if answer.status == 200 else ()
        if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            return False
        served = [version["name"] for version in self.crd["spec"]["versions"] if version["served"]]
        answers = [await self.reference.ask(Ask("GET", self._path(version))) for version in served]
        return all(answer.status == 200 for answer in answers)

    def _path(self, version: str) -> str:
        scope = self.ours.scope(f"{kinds.GROUP}/{version}", self.crd["spec"]["names"]["kind"])
        assert scope is not None
        return collection(scope, "default")

    async def _describe(self) -> None:
        """What is published of the kind, as OpenAPI v3: on the reference some time after it is served."""
        for version in self.crd["spec"]["versions"]:
            if not version["served"]:
                continue
            path = f"/openapi/v3/apis/{kinds.GROUP}/{version['name']}"
            wanted = self._schema((await self.ours.send("GET", path)).body, version["name"])
            assert wanted is not None
            deadline, published = time.monotonic() + READY_SECONDS, None
            while published != wanted and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
                answer = await self.reference.ask(Ask("GET", path))
                published = self._schema(_plain(answer.body), version["name"]) if answer.status == 200 else None
            if published != wanted:
                self.tally.note("OpenAPI", f"{self.name} {version['name']}", published, wanted)
            self.tally.counts["descriptions"] += 1

    def _schema(self, document: Mapping[str, Any], version: str) -> Any:
        kind = {"group": kinds.GROUP, "version": version, "kind": self.crd["spec"]["names"]["kind"]}
        for schema in document.get("components", {}).get("schemas", {}).values():
            if kind in schema.get("x-kubernetes-group-version-kind", ()):
                return schema
        return None

    async def _judge(self, obj: Object) -> None:
        version = obj["apiVersion"].rpartition("/")[2]
        scope = self.ours.scope(obj["apiVersion"], obj["kind"])
        assert scope is not None
        query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "fuzz"}
        body = codec.encode(obj)  # in the spelling that Go has, in which the other one gets it
        answer = await self.reference.ask(Ask("POST", self._path(version), body, query=query))
        verdict = await self.ours.create(scope, "default", obj, **query)
        warned = tuple(f"299 - {json.dumps(text, ensure_ascii=False)}" for text in verdict.warnings)
        own = Answer(verdict.code, warned, parsed(codec.encode(verdict.body)))
        self.tally.told.append({"of": obj, "told": told(answer.status, _plain(answer.body))})
        self.tally.counts["objects"] += 1
        self.tally.counts["objects taken" if answer.status == 201 else "objects refused"] += 1
        lines = differences(answer, own)
        if lines and (reason := explained(answer, own, lines)):
            self.tally.counts[f"explained: {reason}"] += 1
        elif lines:
            self.tally.note("verdict", self.name, lines, [str(answer), str(own)], obj)
        elif answer.status == 201 and not _is_read(self.classes[version], _plain(answer.body)):
            self.tally.counts[f"objects taken that the stricter model of {obj['kind']} does not read"] += 1


def _is_read(model: type[KubernetesObject], made: Object) -> bool:
    try:
        model.from_wire(made)
    except DecodeError:
        return False
    return True


def _plain(body: Any) -> Any:
    """A body with numbers as Python has them."""
    return json.loads(write(body))


async def main(options: argparse.Namespace) -> int:
    tally = Tally()
    made = crds(kinds)
    reference = Server(options.reference, options.token, ALL_AT_ONCE)
    try:
        async with OfflineServer.start() as ours:
            await ours.create_namespace("default")
            for index, crd in enumerate(made):
                share = options.objects * (index + 1) // len(made) - options.objects * index // len(made)
                await Comparison(reference, ours, crd, tally).play(share, options.seed * 1000 + index)
    finally:
        await reference.close()
    sys.stdout.write(f"{len(models(kinds))} model classes, {json.dumps(dict(tally.counts))}\n")
    if options.record:
        save(options.record, tally.told)
    return int(bool(tally.counts["differences"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--reference", required=True, metavar="URL")
    parser.add_argument("--token", default="admintoken")
    parser.add_argument("--objects", type=int, default=5000, metavar="N", help="how many, of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep what the reference says, for the test suite")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(_options())))
