"""What a server makes of a CustomResourceDefinition and of objects of its kind."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from .definitions import Definition, Document, definition_text, examples
from .modules import Module, Package

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
YAML = {"Content-Type": "application/yaml"}
Object = dict[str, Any]


@dataclass
class Observed:
    """Answers, without what differs from run to run; `served` is the definition when it was established.

    `seconds` is how long that took. `schemas` has what is published of its kind, by group version.
    """

    definition: Object
    seconds: float
    served: Object = field(default_factory=dict)
    schemas: dict[str, Object] = field(default_factory=dict)
    examples: dict[str, Object] = field(default_factory=dict)

    def digests(self) -> Object:
        """What can be kept of it: hashes, from which nothing can be copied."""
        return {
            "definition": digest(self.definition),
            "schemas": digest(self.schemas),
            "examples": {key: digest(answer) for key, answer in self.examples.items()},
        }


def digest(value: Any) -> str:
    """A hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


async def observe(
    session: aiohttp.ClientSession,
    definition: Definition,
    packages: Mapping[Module, Package],
    *,
    patience: float = 0,
) -> Observed:
    """Define, wait until it is established, read what is published of it, and create its examples.

    `patience` is how many seconds the server may take to publish what is established.
    """
    text = definition_text(definition, packages)
    started = time.perf_counter()
    created = await _post(session, f"{CRDS}?fieldValidation=Strict", text)
    if created["status"] != 201:
        return Observed(created, 0)
    crd = await _established(session, definition.name)
    observed = Observed(_without_run(created), time.perf_counter() - started, crd)
    spec = crd["spec"]
    deadline = time.monotonic() + patience
    for version in spec["versions"]:
        if version["served"]:
            place = f"apis/{spec['group']}/{version['name']}"
            observed.schemas[place] = await _published(session, place, crd["status"]["acceptedNames"], deadline)
    for document in examples(definition, spec["group"], spec["names"]["kind"], packages):
        observed.examples[document.key] = await _created(session, document, spec)
    return observed


async def _established(session: aiohttp.ClientSession, name: str) -> Object:
    """Watch a definition until it is established."""
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": "60"}
    async with session.get(CRDS, params=query) as response:
        async for line in _lines(response):
            crd: Object = json.loads(line)["object"]
            conditions = {each["type"]: each["status"] for each in crd["status"].get("conditions") or ()}
            if conditions.get("Established") == "True":
                return crd
            assert conditions.get("NamesAccepted") != "False", conditions
    raise TimeoutError(f"{name} is not established")


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines as long as they are: some definitions are larger than what aiohttp takes for one."""
    parts: list[bytes] = []
    async for chunk, _ in response.content.iter_chunks():
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line])
            parts.clear()
        parts.append(rest)


async def _published(session: aiohttp.ClientSession, place: str, names: Object, deadline: float) -> Object:
    """The OpenAPI v3 schemas of a kind and of its list, once the resource is in the paths of its group version."""
    while True:
        async with session.get(f"/openapi/v3/{place}") as response:
            document = (await response.json(content_type=None) if response.status == 200 else None) or {}
        if f"/{place}/{names['plural']}" in (document.get("paths") or ()):
            return {
                name: schema
                for name, schema in document["components"]["schemas"].items()
                for kind in schema.get("x-kubernetes-group-version-kind", ())
                if kind["kind"] in (names["kind"], names["listKind"])
            }
        if time.monotonic() > deadline:
            raise TimeoutError(f"{place} is not published")
        await asyncio.sleep(0.05)


async def _created(session: aiohttp.ClientSession, document: Document, spec: Object) -> Object:
    prefix = f"/apis/{document.top('apiVersion')}"
    if spec["scope"] == "Namespaced":
        namespace = document.meta("namespace") or "default"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        async with session.post("/api/v1/namespaces", json=body) as response:
            assert response.status in (201, 409)
        prefix += f"/namespaces/{namespace}"
    path = f"{prefix}/{spec['names']['plural']}"
    answer = await _post(session, f"{path}?fieldValidation=Strict&fieldManager=examples", document.text)
    if answer["status"] == 201:  # the next may have the same name
        await _delete(session, f"{path}/{answer['body']['metadata']['name']}")
    return _without_run(answer)


async def _delete(session: aiohttp.ClientSession, path: str) -> None:
    async with session.delete(path) as response:
        assert response.status == 200
        held = "finalizers" in (await response.json())["metadata"]
    if held:
        patch = {"Content-Type": "application/merge-patch+json"}
        async with session.patch(path, json={"metadata": {"finalizers": None}}, headers=patch) as response:
            assert response.status == 200


async def _post(session: aiohttp.ClientSession, path: str, text: str) -> Object:
    async with session.post(path, data=io.BytesIO(text.encode()), headers=YAML) as response:
        warnings = response.headers.getall("Warning", [])
        return {"status": response.status, "warnings": warnings, "body": await response.json()}


def _without_run(answer: Object) -> Object:
    """An answer without names, times and versions that are given out anew in each run."""
    meta = {key: value for key, value in answer["body"]["metadata"].items() if key not in _GIVEN_OUT}
    if "generateName" in meta:
        del meta["name"]
    if "managedFields" in meta:
        entries: Iterable[Object] = meta["managedFields"]
        meta["managedFields"] = [{key: value for key, value in each.items() if key != "time"} for each in entries]
    return {**answer, "body": {**answer["body"], "metadata": meta}}


_GIVEN_OUT = ("uid", "resourceVersion", "creationTimestamp")
