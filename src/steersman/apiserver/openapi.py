"""The OpenAPI documents of what the catalog serves: built when first asked for, kept as encoded bytes.

A document lives until the scopes it describes are replaced, so a change to one custom resource rebuilds the documents
of its group version alone, and of the v2 document the part that describes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steersman.api import kinds
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.openapi import crd_schemas, server_routes, v2, v2_protobuf, v3
from steersman.apimachinery.openapi.resources import (
    ResourceDescription,
    SubresourceDescription,
    model_name,
    models_by_kind,
)
from steersman.apimachinery.openapi.routes import Operation, operations
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.scope import ResourceScope

Scopes = tuple[ResourceScope, ...]
GroupVersion = tuple[str, str]
_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


@dataclass(frozen=True, slots=True)
class Document:
    """Encoded bytes and the hash that names them: SHA-512 in upper-case hexadecimal, as upstream has it."""

    body: bytes
    hash: str


def _document(body: bytes) -> Document:
    return Document(body, hashlib.sha512(body).hexdigest().upper())


@dataclass(frozen=True, slots=True)
class _Part:
    """What some scopes add to the v2 document: the inside of `paths` and of `definitions`, encoded."""

    scopes: Scopes
    paths: bytes
    definitions: bytes


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How the v2 document is encoded part by part, and put together."""

    paths: Callable[[dict[str, Any]], bytes]
    definitions: Callable[[dict[str, Any]], bytes]
    join: Callable[[Sequence[_Part]], bytes]


def _inside(value: dict[str, Any]) -> bytes:
    return codec.encode(value)[1:-1]


def _join_json(parts: Sequence[_Part]) -> bytes:
    paths = b",".join(part.paths for part in parts if part.paths)
    definitions = b",".join(part.definitions for part in parts if part.definitions)
    return b'{%b,"paths":{%b},"definitions":{%b}}' % (_inside(v2.frame()), paths, definitions)


def _join_protobuf(parts: Sequence[_Part]) -> bytes:
    paths = b"".join(part.paths for part in parts)
    definitions = b"".join(part.definitions for part in parts)
    return v2_protobuf.document(v2.frame(), paths, definitions)


_JSON = _Encoding(_inside, _inside, _join_json)
_PROTOBUF = _Encoding(v2_protobuf.paths, v2_protobuf.definitions, _join_protobuf)


class OpenAPI:
    """Documents by group version (v3), and of all (v2). Everything here is synchronous and bound to one event loop."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._generation = -1
        self._scopes: dict[GroupVersion, Scopes] = {}
        self._keys: dict[str, object] = {}
        self._models = models_by_kind(kinds.schemas())
        self._v3: dict[str, tuple[object, Document]] = {}
        self._parts: dict[tuple[_Encoding, GroupVersion | None], _Part] = {}
        self._index: bytes | None = None
        self._v2: dict[_Encoding, Document] = {}

    def v3_index(self) -> bytes:
        """The index of all v3 documents, each with its hash."""
        self._refresh()
        if self._index is None:
            urls = {}
            for path in sorted(self._keys):
                document = self.v3(path)
                assert document is not None
                urls[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.hash}"}
            self._index = codec.encode({"paths": urls})
        return self._index

    def v3(self, path: str) -> Document | None:
        """The document of a path such as `apis/apps/v1`; None when nothing of that name is served."""
        self._refresh()
        found = self._v3.get(path)
        if found is not None:
            return found[1]
        if path not in self._keys:
            return None
        document = _document(codec.encode(self._content(path)))
        self._v3[path] = (self._keys[path], document)
        return document

    def v2_json(self) -> Document:
        """The v2 document as JSON."""
        return self._v2_in(_JSON)

    def v2_protobuf(self) -> Document:
        """The v2 document as protobuf."""
        return self._v2_in(_PROTOBUF)

    def _refresh(self) -> None:
        """Drop what no longer describes what the catalog serves."""
        if self._generation == self._catalog.generation:
            return
        self._generation = self._catalog.generation
        grouped: dict[GroupVersion, list[ResourceScope]] = {}
        for scope in sorted(self._catalog.scopes(), key=lambda scope: scope.gvr):
            grouped.setdefault((scope.group, scope.gvr.version), []).append(scope)
        self._scopes = {key: tuple(scopes) for key, scopes in grouped.items()}
        self._keys = _document_keys(self._scopes)
        self._index = None
        self._v2 = {}
        self._v3 = {
            path: found for path, found in self._v3.items() if path in self._keys and found[0] == self._keys[path]
        }
        self._parts = {key: part for key, part in self._parts.items() if part.scopes == self._part_scopes(key[1])}

    def _content(self, path: str) -> dict[str, Any]:
        """The content of a v3 document that there is."""
        group_version = _parse(path)
        if group_version is None:
            return v3.document([_server_operation(path)], _builtin_schemas(), custom=False)
        scopes = self._scopes[group_version]
        custom = self._is_custom(group_version)
        found = [*self._operations(scopes)]
        if not custom:
            found.append(server_routes.version_resources(*group_version))
        return v3.document(found, {**kinds.schemas(), **_custom_schemas(scopes, v2=False)}, custom=custom)

    def _operations(self, scopes: Scopes) -> Iterable[Operation]:
        for scope in scopes:
            yield from operations(self._describe(scope))

    def _describe(self, scope: ResourceScope) -> ResourceDescription:
        model, list_model = self._model(scope, scope.kind), self._model(scope, scope.list_kind)
        subresources = [
            SubresourceDescription(name, *self._subresource_kind(scope, facts), tuple(facts["verbs"]))
            for name, facts in scope.subresources.items()
            if name in scope.subresource_strategies or (name == "scale" and scope.scale is not None)
        ]
        return ResourceDescription(
            gvk=scope.gvk,
            plural=scope.resource,
            namespaced=scope.namespaced,
            custom=scope.custom,
            verbs=scope.verbs,
            model=model,
            list_model=list_model,
            subresources=tuple(subresources),
            returns_deleted=scope.strategy.returns_deleted,
        )

    def _subresource_kind(self, scope: ResourceScope, facts: dict[str, Any]) -> tuple[GroupVersionKind, str]:
        if "kind" not in facts:
            return scope.gvk, self._model(scope, scope.kind)
        gvk = GroupVersionKind(facts.get("group", scope.group), facts.get("version", scope.gvr.version), facts["kind"])
        return gvk, self._models[gvk]

    def _model(self, scope: ResourceScope, kind: str) -> str:
        group, version = scope.group, scope.gvr.version
        if scope.custom:
            return model_name(group, version, kind)
        return self._models.get(GroupVersionKind(group, version, kind), "")

    def _v2_in(self, encoding: _Encoding) -> Document:
        """The v2 document: built-in kinds first, then each group version with custom resources."""
        self._refresh()
        if encoding not in self._v2:
            custom = [key for key, scopes in self._scopes.items() if any(scope.custom for scope in scopes)]
            self._v2[encoding] = _document(encoding.join([self._part(encoding, key) for key in (None, *custom)]))
        return self._v2[encoding]

    def _part(self, encoding: _Encoding, key: GroupVersion | None) -> _Part:
        """One group version's custom resources, or with None all built-in kinds."""
        found = self._parts.get((encoding, key))
        if found is None:
            scopes = self._part_scopes(key)
            paths = encoding.paths(v2.paths([*self._operations(scopes), *(() if key else self._server_operations())]))
            definitions = encoding.definitions(_custom_schemas(scopes, v2=True) if key else _builtin_definitions())
            found = self._parts[encoding, key] = _Part(scopes, paths, definitions)
        return found

    def _part_scopes(self, key: GroupVersion | None) -> Scopes:
        if key is None:
            return tuple(scope for scopes in self._scopes.values() for scope in scopes if not scope.custom)
        return tuple(scope for scope in self._scopes.get(key, ()) if scope.custom)

    def _server_operations(self) -> Iterable[Operation]:
        for path in self._keys:
            group_version = _parse(path)
            if group_version is None:
                yield _server_operation(path)
            elif not self._is_custom(group_version):
                yield server_routes.version_resources(*group_version)

    def _is_custom(self, group_version: GroupVersion) -> bool:
        return all(scope.custom for scope in self._scopes[group_version])


def _document_keys(served: dict[GroupVersion, Scopes]) -> dict[str, object]:
    """The names of all v3 documents, each with what it depends on: equal keys mean equal documents."""
    found: dict[str, object] = {"apis": None, "version": None}
    for (group, version), scopes in served.items():
        path = f"apis/{group}" if group else "api"
        found[f"{path}/{version}"] = scopes
        if not all(scope.custom for scope in scopes):
            found[path] = None
    return found


def _builtin_schemas() -> dict[str, Any]:
    return {**kinds.schemas(), server_routes.VERSION_INFO: server_routes.VERSION_SCHEMA}


def _builtin_definitions() -> dict[str, Any]:
    return {name: v2.definition(schema) for name, schema in _builtin_schemas().items()}


def _custom_schemas(scopes: Scopes, *, v2: bool) -> dict[str, Any]:
    found = {}
    for scope in scopes:
        if scope.custom:
            group, version, kind = scope.gvk
            selectable = scope.selectable_fields
            found[model_name(group, version, kind)] = crd_schemas.kind_schema(
                scope.openapi_schema, group, version, kind, v2=v2, selectable=selectable
            )
            found[model_name(group, version, scope.list_kind)] = crd_schemas.list_schema(
                group, version, kind, scope.list_kind, scope.resource, v2=v2, selectable=selectable
            )
    return found


def _parse(path: str) -> GroupVersion | None:
    """The group version whose document has this path."""
    parts = path.split("/")
    if parts[0] == "api" and len(parts) == 2:
        return "", parts[1]
    if parts[0] == "apis" and len(parts) == 3:
        return parts[1], parts[2]
    return None


def _server_operation(path: str) -> Operation:
    if path == "version":
        return server_routes.server_version()
    if path == "apis":
        return server_routes.all_groups()
    return server_routes.group_information(path.partition("/")[2])
