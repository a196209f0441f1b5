"""Random requests for everything that an OpenAPI v3 description offers: every path, method, parameter and body.

Most of what is drawn fits the description; some of it is spoilt on purpose.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
_NAMES = ("x", "default", "kube-system", "cluster-admin", "a.b", "..", "A_b", "x" * 300, "%", " ", "é", "\x00", "x/y")
_TEXTS = (
    "",
    "x",
    "a=b",
    "metadata.name=x",
    "!a,b in (c)",
    "True",
    "All",
    "Strict",
    "v1",
    "1Gi",
    "5s",
    "é\u2028",
    "\ud83d",
)
_NUMBERS = (0, 1, -1, 3, 2**31, 2**63 - 1, -(2**63), 2**64, 1.5, -0.0, 1e300)
_STRANGE: tuple[Any, ...] = (
    None,
    True,
    [],
    {},
    [None],
    {"": None},
    "x" * 5000,
    2**70,
    -1,
    0.1,
    "\x00",
    [[]],
    {"a": {"b": []}},
)
_PATCHES = (
    [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
    [{"op": "remove", "path": ""}],
    [{"op": "test", "path": "/kind", "value": None}],
    [{"op": "replace", "path": "/spec", "value": []}],
    [{"op": "move", "from": "/metadata", "path": "/metadata/x"}],
    {"metadata": None},
    {"spec": {"$patch": "replace"}},
    {"metadata": {"finalizers": ["a/b"], "$setElementOrder/finalizers": ["a/b"]}},
)
_ACCEPTS = (
    "",
    "*/*",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    "text/html",
    ";;,",
)
_MOST_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Drawn:
    """One request: `path` is escaped, `query` encoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Operation:
    """One method of one path; `names` are the parameters in the path, `parameters` those of the query."""

    method: str
    path: str
    names: Sequence[str]
    parameters: Sequence[Mapping[str, Any]]
    bodies: Mapping[str, Any]
    schemas: Mapping[str, Any] = field(repr=False)


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """All operations of a document."""
    components = document.get("components") or {}
    known = components.get("parameters") or {}
    for path, item in (document.get("paths") or {}).items():
        for method in METHODS:
            found = item.get(method)
            if found is None:
                continue
            listed = [*(item.get("parameters") or ()), *(found.get("parameters") or ())]
            parameters = [_named(parameter, known) for parameter in listed]
            content = _named(found.get("requestBody") or {}, components.get("requestBodies") or {}).get("content") or {}
            yield Operation(
                method.upper(),
                path,
                [parameter["name"] for parameter in parameters if parameter["in"] == "path"],
                [parameter for parameter in parameters if parameter["in"] == "query"],
                {media: body.get("schema") or {} for media, body in content.items()},
                components.get("schemas") or {},
            )


def _named(item: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = item.get("$ref")
    found: Mapping[str, Any] = known[reference.rpartition("/")[2]] if reference else item
    return found


def draw(operation: Operation, rng: random.Random) -> Drawn:
    """A random request of an operation."""
    path = operation.path
    for name in operation.names:
        value = "default" if name == "namespace" and rng.random() < 0.8 else rng.choice(_NAMES)
        path = path.replace(f"{{{name}}}", quote(value, safe="" if rng.random() < 0.7 else "/"))
    query = [
        (parameter["name"], _text(parameter.get("schema") or {}, rng))
        for parameter in operation.parameters
        if rng.random() < 0.15
    ]
    if any(name in ("watch", "follow") for name, _ in query) or "/watch/" in path:
        query = [(name, value) for name, value in query if name != "timeoutSeconds"] + [("timeoutSeconds", "1")]
    headers = {"accept": rng.choice(_ACCEPTS)}
    body = b""
    if operation.bodies and rng.random() < 0.95:
        media = rng.choice(sorted(operation.bodies))
        if media == "*/*":
            media = "application/json"
        headers["content-type"] = media
        body = _body(media, operation, rng)
    elif rng.random() < 0.1:
        headers["content-type"], body = "application/json", rng.choice((b"{}", b"null", b"[", b"\xff", b'{"kind":1}'))
    method = operation.method if rng.random() < 0.97 else rng.choice(METHODS).upper()
    encoded = urlencode(query, errors="surrogatepass")
    return Drawn(method, path, encoded, {key: value for key, value in headers.items() if value}, body)


def _text(schema: Mapping[str, Any], rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(_TEXTS)
    kind = schema.get("type")
    if kind == "integer":
        return str(rng.choice(_NUMBERS))
    return rng.choice(("true", "false")) if kind == "boolean" else rng.choice(_TEXTS)


def _body(media: str, operation: Operation, rng: random.Random) -> bytes:
    schema = next(iter(operation.bodies.values()))
    if "patch" in media and rng.random() < 0.5:
        value: Any = rng.choice(_PATCHES)
    else:
        value = _Values(operation.schemas, rng).value(schema, 0)
    kinds = schema_kinds(schema, operation.schemas)
    if isinstance(value, dict) and kinds and rng.random() < 0.9:
        group, version, kind = rng.choice(kinds)
        value["apiVersion"], value["kind"] = f"{group}/{version}" if group else version, kind
        meta = value.get("metadata")
        if isinstance(meta, dict):
            meta["name"] = "x"
            meta.pop("namespace", None)
            if rng.random() < 0.8:
                meta.pop("resourceVersion", None)
    text = json.dumps(value).encode()
    if rng.random() < 0.03:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    return text


def schema_kinds(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The kinds that a body's schema is for."""
    resolved = _resolved(schema, schemas)
    found = resolved.get("x-kubernetes-group-version-kind") or ()
    return [(each["group"], each["version"], each["kind"]) for each in found if each["kind"] != "DeleteOptions"][:1]


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    while True:
        if "$ref" in schema:
            schema = schemas.get(schema["$ref"].rpartition("/")[2]) or {}
        elif len(schema.get("allOf") or ()) == 1:
            schema = schema["allOf"][0]
        else:
            return schema


@dataclass(slots=True)
class _Values:
    schemas: Mapping[str, Any]
    rng: random.Random

    def value(self, schema: Mapping[str, Any], depth: int) -> Any:
        rng, schema = self.rng, _resolved(schema, self.schemas)
        if rng.random() < 0.02:
            return rng.choice(_STRANGE)
        if schema.get("enum"):
            return rng.choice(schema["enum"])
        alternatives = schema.get("oneOf") or schema.get("anyOf")
        if alternatives:
            return self.value(rng.choice(alternatives), depth + 1)
        made: Mapping[str, Callable[[Mapping[str, Any], int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
        }
        kind = schema.get("type")
        if kind in made:
            return made[kind](schema, depth)
        if kind in ("integer", "number"):
            return rng.choice(_NUMBERS[:4]) if rng.random() < 0.9 else rng.choice(_NUMBERS)
        return rng.random() < 0.5 if kind == "boolean" else rng.choice(_STRANGE)

    def _object(self, schema: Mapping[str, Any], depth: int) -> Any:
        rng, found = self.rng, {}
        required = schema.get("required") or ()
        chance = 0.5 if depth < 2 else 0.2
        for name, inner in (schema.get("properties") or {}).items():
            if name in ("managedFields", "status") and rng.random() < 0.8:
                continue
            if depth >= _MOST_DEPTH:
                break
            if rng.random() < (0.95 if name in required or name in ("metadata", "spec") else chance):
                found[name] = self.value(inner, depth + 1)
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping) and depth < _MOST_DEPTH:
            for name in rng.sample(("a", "b", "x.y/z", "", "A B"), rng.randrange(3)):
                found[name] = self.value(extra, depth + 1)
        return found

    def _array(self, schema: Mapping[str, Any], depth: int) -> Any:
        if depth >= _MOST_DEPTH:
            return []
        return [self.value(schema.get("items") or {}, depth + 1) for _ in range(self.rng.choice((0, 1, 1, 2, 3)))]

    def _string(self, schema: Mapping[str, Any], depth: int) -> Any:
        form = schema.get("format")
        if form == "date-time":
            return self.rng.choice(("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901Z", "0000-00-00", ""))
        if form == "byte":
            return self.rng.choice(("", "YQ==", "a", "&"))
        return self.rng.choice(_TEXTS[:-1] + _NAMES[:7])
