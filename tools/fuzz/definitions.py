"""CustomResourceDefinitions that are good, and their next revisions."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from . import objects
from .schemas import SchemaMaker

GROUP = "fuzz.example.com"
Schema = dict[str, Any]
Definition = dict[str, Any]


def anchor() -> Definition:
    """A definition that keeps all versions of the group served, so that a new one needs no new group version."""
    schema = {"type": "object"}
    versions = [version_of(name, schema, name == "v1") for name in ("v1", "v2")]
    return _wrapped("anchors", "Anchor", "Cluster", versions)


def version_of(name: str, schema: Schema, storage: bool) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def _wrapped(plural: str, kind: str, scope: str, versions: list[dict[str, Any]]) -> Definition:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"},
            "versions": versions,
        },
    }


def good(rng: Random, label: str) -> Definition:
    """A definition that the server takes (but for a few defaults that do not fit, and the like)."""
    maker = SchemaMaker(rng)
    with_status, with_scale = rng.random() < 0.5, rng.random() < 0.15
    versions = []
    for name in ("v1", "v2") if rng.random() < 0.25 else ("v1",):
        schema = maker.root(with_status=with_status, with_scale=with_scale)
        if versions and rng.random() < 0.4:
            schema = copy.deepcopy(versions[0]["schema"]["openAPIV3Schema"])
        version = version_of(name, schema, not versions)
        if with_status or with_scale:
            version["subresources"] = {"status": {}} if with_status else {}
        if with_scale:
            version["subresources"]["scale"] = {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            }
        versions.append(version)
    if len(versions) == 2 and rng.random() < 0.5:
        versions[0]["storage"], versions[1]["storage"] = False, True
    scope = "Namespaced" if rng.random() < 0.5 else "Cluster"
    return _wrapped(f"f{label}s", f"F{label}", scope, versions)


def next_revision(rng: Random, definition: Definition) -> Definition:
    """The definition after a change of its schemas: tightened, loosened, or another one; it may be refused."""
    changed = copy.deepcopy(definition)
    for version in changed["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        if rng.random() < 0.1:
            scale = "scale" in (version.get("subresources") or {})
            schema = SchemaMaker(rng).root(with_status="subresources" in version, with_scale=scale)
        for _ in range(rng.randint(1, 5)):
            _tighten(rng, schema)
        version["schema"]["openAPIV3Schema"] = schema
    return changed


def _tighten(rng: Random, schema: Schema) -> None:
    """Change one node so that objects stored before may no longer fit."""
    maker, nodes = SchemaMaker(rng), [each for each in nodes_of(schema) if each is not schema]
    if not nodes:
        return
    node = rng.choice(nodes)
    kind, draw = node.get("type"), rng.random()
    if draw < 0.15 and "x-kubernetes-list-type" not in node and "x-kubernetes-embedded-resource" not in node:
        fresh = maker.schema(1)
        node.clear()
        node.update(fresh)
    elif draw < 0.25:
        node.pop("default", None) if "default" in node else node.update(default=objects.Shaper(rng).value(node))
    elif draw < 0.32:
        node["nullable"] = not node.get("nullable")
    elif kind == "object" and node.get("properties"):
        _change_properties(rng, maker, node)
    elif kind == "array":
        node.update(maker.some_of({"minItems": 2, "maxItems": 1}, 0.6))
    elif kind == "string":
        node.update(maker._string_rules())
        node.update(maker.some_of({"maxLength": 1, "minLength": 4}, 0.4))
    elif kind in ("integer", "number"):
        node.update(maker._number_rules())
    elif draw < 0.7:
        node.update(maker._junctors(node, 1))


def _change_properties(rng: Random, maker: SchemaMaker, node: Schema) -> None:
    draw, names = rng.random(), list(node["properties"])
    keys = _list_keys_in_use(node)
    if draw < 0.3:
        node["required"] = sorted({*node.get("required", ()), rng.choice([*names, "gone"])})
    elif draw < 0.5:
        gone = rng.choice(names)
        if gone not in keys:
            del node["properties"][gone]
    elif draw < 0.8:
        node["properties"][rng.choice(("new", "a", "b"))] = maker.schema(1)
    elif draw < 0.9:
        node.update(maker._junctors(node, 1))
    else:
        node.update(maker.some_of({"minProperties": 3, "maxProperties": 1}))


def _list_keys_in_use(node: Schema) -> set[str]:
    return {name for name in node.get("required", ()) if name in ("name", "key", "a")}


def nodes_of(schema: Any) -> list[Schema]:
    """The schema and all that stand below it as structure."""
    if not isinstance(schema, dict):
        return []
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [schema, *(node for each in below for node in nodes_of(each))]
