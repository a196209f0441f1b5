"""Kinds for the fuzzer of ownership: schemas in which everything that decides who owns what occurs often.

Few names and few values, so that managers meet.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from .definitions import GROUP, nodes_of, version_of

Schema = dict[str, Any]
Definition = dict[str, Any]
NAMES = ("a", "b", "c", "name")
SCALARS: tuple[Schema, ...] = (
    {"type": "string"},
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "number"},
    {"type": "string", "format": "date-time"},
    {"x-kubernetes-int-or-string": True},
)
KEYS: tuple[Schema, ...] = ({"type": "string"}, {"type": "string"}, {"type": "integer"}, {"type": "boolean"})
KEY_DEFAULTS = {"string": "x", "integer": 1, "boolean": True}


class KindMaker:
    """Draws structural schemas, and definitions with them."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def definition(self, label: str) -> Definition:
        """A definition with a status, mostly with a scale, sometimes with a second version."""
        scale = self.chance(0.6)
        first = self.root(scale)
        versions = [version_of("v1", first, True)]
        if self.chance(0.3):
            second = self.root(scale) if self.chance(0.4) else copy.deepcopy(first)
            if self.chance(0.5):
                self.reshape(second)
            versions.append(version_of("v2", second, False))
            if self.chance(0.3):
                versions[0]["storage"], versions[1]["storage"] = False, True
        for version in versions:
            version["subresources"] = {"status": {}} if self.chance(0.9) else {}
            if scale:
                version["subresources"]["scale"] = {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                }
        names = {"plural": f"o{label}s", "singular": f"o{label}", "kind": f"O{label}", "listKind": f"O{label}List"}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"o{label}s.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions},
        }

    def root(self, scale: bool) -> Schema:
        """The schema of a whole resource."""
        spec = self._struct(3)
        spec.pop("x-kubernetes-map-type", None)
        status = self._struct(2)
        if scale:
            spec["properties"]["replicas"] = status["properties"]["replicas"] = {"type": "integer"}
        schema: Schema = {"type": "object", "properties": {"spec": spec, "status": status}}
        if self.chance(0.4):
            schema["properties"]["data"] = self.schema(2)
        if self.chance(0.1):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        return schema

    def schema(self, depth: int) -> Schema:
        """A schema of any kind, with `depth` levels below it at most."""
        makers: list[tuple[Callable[[int], Schema], float]] = [(self._scalar, 4)]
        if depth > 0:
            makers += [(self._struct, 4), (self._map, 2.5), (self._map_list, 4), (self._set, 2), (self._list, 1)]
            makers += [(self._embedded, 0.7), (self._untyped, 1)]
        maker = self.rng.choices([each for each, _ in makers], [weight for _, weight in makers])[0]
        schema = maker(depth - 1)
        if self.chance(0.1):
            schema["nullable"] = True
        return schema

    def _scalar(self, _: int) -> Schema:
        schema = dict(self.rng.choice(SCALARS))
        if schema.get("type") in KEY_DEFAULTS and "format" not in schema and self.chance(0.15):
            schema["default"] = KEY_DEFAULTS[schema["type"]]
        return schema

    def _struct(self, depth: int) -> Schema:
        names = self.rng.sample(NAMES, self.rng.randint(1, 3))
        schema: Schema = {"type": "object", "properties": {name: self.schema(depth) for name in names}}
        if self.chance(0.15):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if self.chance(0.25):
            schema["x-kubernetes-map-type"] = self.rng.choice(("atomic", "granular"))
        if self.chance(0.1):
            schema["default"] = {}
        return schema

    def _map(self, depth: int) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.schema(depth)}
        if self.chance(0.25):
            schema["x-kubernetes-map-type"] = self.rng.choice(("atomic", "granular"))
        return schema

    def _list(self, depth: int) -> Schema:
        schema: Schema = {"type": "array", "items": self.schema(depth)}
        return schema | ({"x-kubernetes-list-type": "atomic"} if self.chance(0.4) else {})

    def _set(self, _: int) -> Schema:
        items = dict(self.rng.choice(SCALARS))
        return {"type": "array", "items": items, "x-kubernetes-list-type": "set"}

    def _map_list(self, depth: int) -> Schema:
        item = self._struct(depth)
        item.pop("default", None)
        item.pop("x-kubernetes-map-type", None)
        keys = self.rng.sample(("name", "a", "b"), self.rng.choice((1, 1, 2)))
        required = []
        for key in keys:
            rule = dict(self.rng.choice(KEYS))
            if self.chance(0.4):
                rule["default"] = KEY_DEFAULTS[rule["type"]]
            else:
                required.append(key)
            item["properties"][key] = rule
        if required:
            item["required"] = required
        return {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}

    def _embedded(self, depth: int) -> Schema:
        schema = self._struct(depth) | {"x-kubernetes-embedded-resource": True}
        schema.pop("default", None)
        return schema

    def _untyped(self, _: int) -> Schema:
        return {"x-kubernetes-preserve-unknown-fields": True} | ({"type": "object"} if self.chance(0.6) else {})

    def reshape(self, schema: Schema) -> None:
        """Make something granular that was atomic, or the other way round; or add or take a property."""
        for _ in range(self.rng.randint(1, 3)):
            self._reshape_one(self.rng.choice(nodes_of(schema)[1:]))

    def _reshape_one(self, node: Schema) -> None:
        keys = node.get("x-kubernetes-list-map-keys")
        if node.get("type") == "array":
            if node.pop("x-kubernetes-list-type", "atomic") != "atomic":
                node.pop("x-kubernetes-list-map-keys", None)
            elif node["items"].get("type") in ("string", "integer", "boolean", "number"):
                node["x-kubernetes-list-type"] = "set"
                node["items"].pop("nullable", None)
                node["items"].pop("default", None)
            elif keyed := [key for key in node["items"].get("required", ()) if not keys]:
                node |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keyed}
        elif node.get("type") == "object" and ("properties" in node or "additionalProperties" in node):
            if "properties" in node and self.chance(0.3):
                node["properties"].setdefault(self.rng.choice(NAMES), self._scalar(0))
            elif node.pop("x-kubernetes-map-type", "granular") == "granular":
                node["x-kubernetes-map-type"] = "atomic"


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}


def _fields(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields}


def _by(item: Schema, *keys: str) -> Schema:
    lists = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": item, **lists}


def _one_of(*values: Any) -> Schema:
    return {**TEXT, "enum": list(values)}


METADATA = _fields(
    labels=TEXTS,
    annotations=TEXTS,
    finalizers={"type": "array", "items": _one_of("x.io/a", "x.io/b", "x.io/c"), "x-kubernetes-list-type": "set"},
    ownerReferences=_by(
        {
            **_fields(uid=_one_of("u1", "u2"), name=TEXT, controller={"type": "boolean"}),
            "x-fixed": {"apiVersion": "v1", "kind": "Thing"},
            "required": ["uid", "name"],
        },
        "uid",
    ),
)
_CONTAINER = {
    **_fields(
        name=TEXT,
        image=TEXT,
        args={"type": "array", "items": TEXT},
        env=_by({**_fields(name=TEXT, value=TEXT), "required": ["name"]}, "name"),
        ports=_by(
            {
                **_fields(containerPort=_one_of(80, 81), protocol=_one_of("TCP", "UDP"), name=_one_of("w", "v")),
                "required": ["containerPort", "protocol"],
            },
            "containerPort",
            "protocol",
        ),
        resources=_fields(limits={**TEXTS, "additionalProperties": _one_of("1", "0.5", "500m", "1Gi", 1)}),
        securityContext=_fields(runAsUser=NUMBER, privileged={"type": "boolean"}),
    ),
    "required": ["name", "image"],
}
_POD_SPEC = {
    **_fields(
        containers=_by(_CONTAINER, "name"),
        volumes=_by(
            {**_fields(name=TEXT, emptyDir=_fields(), hostPath=_fields(path=TEXT)), "required": ["name"]}, "name"
        ),
        nodeSelector=TEXTS,
        restartPolicy=_one_of("Always"),
        tolerations={"type": "array", "items": _fields(key=TEXT, operator=_one_of("Exists"))},
        imagePullSecrets=_by({**_fields(name=TEXT), "required": ["name"]}, "name"),
        securityContext=_fields(runAsUser=NUMBER),
    ),
    "required": ["containers"],
}
_SELECTED = {"app": "x"}
BUILTIN: dict[str, tuple[str, str, Schema]] = {
    "ConfigMap": (
        "/api/v1",
        "configmaps",
        _fields(
            data=TEXTS,
            binaryData={**TEXTS, "additionalProperties": _one_of("eA==", "")},
            immutable={"type": "boolean", "enum": [False]},
        ),
    ),
    "Secret": (
        "/api/v1",
        "secrets",
        _fields(
            data={**TEXTS, "additionalProperties": _one_of("eA==", "eQ==")}, stringData=TEXTS, type=_one_of("Opaque")
        ),
    ),
    "Service": (
        "/api/v1",
        "services",
        _fields(
            spec={
                **_fields(
                    ports=_by(
                        {
                            **_fields(
                                port=_one_of(80, 81, 82),
                                protocol=_one_of("TCP", "UDP"),
                                name=_one_of("a", "b", "c"),
                                targetPort=_one_of("w", 80, "80"),
                            ),
                            "required": ["port"],
                        },
                        "port",
                        "protocol",
                    ),
                    sessionAffinity=_one_of("None", "ClientIP"),
                    externalIPs={"type": "array", "items": _one_of("1.2.3.4", "1.2.3.5")},
                    publishNotReadyAddresses={"type": "boolean"},
                ),
                "x-fixed": {"clusterIP": "None", "selector": {"app": "x"}},
                "required": ["ports"],
            }
        )
        | {"required": ["spec"]},
    ),
    "Deployment": (
        "/apis/apps/v1",
        "deployments",
        _fields(
            spec={
                **_fields(
                    replicas=NUMBER,
                    minReadySeconds=NUMBER,
                    paused={"type": "boolean"},
                    strategy=_fields(
                        type=_one_of("RollingUpdate", "Recreate"), rollingUpdate=_fields(maxSurge=_one_of(1, "25%"))
                    ),
                    template={
                        **_fields(
                            metadata={
                                **_fields(labels={**TEXTS, "x-fixed": _SELECTED}, annotations=TEXTS),
                                "required": ["labels"],
                            },
                            spec=_POD_SPEC,
                        ),
                        "required": ["metadata", "spec"],
                    },
                ),
                "x-fixed": {"selector": {"matchLabels": _SELECTED}},
                "required": ["template"],
            },
            status=_fields(
                replicas=NUMBER,
                observedGeneration=NUMBER,
                conditions=_by(
                    {
                        **_fields(type=_one_of("A", "B"), status=_one_of("True", "False"), reason=TEXT),
                        "required": ["type", "status"],
                    },
                    "type",
                ),
            ),
        )
        | {"required": ["spec"]},
    ),
}
"""Root path, plural, and a schema to draw objects from: `required` fields are always there, `x-fixed` ones as given."""
