"""The OpenAPI documents of what the catalog serves: built when first asked for, kept encoded and compressed.

A document lives until the scopes it describes are replaced, so a change to one custom resource rebuilds the documents
of its group version alone, and of the v2 document the part that describes them.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

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
_FASTEST = 1
_TURN = 0.01


@dataclass(frozen=True, slots=True)
class Document:
    """A document, kept compressed: the text repeats itself so much that a tenth of the memory or less will do.

    `hash` is the SHA-512 of the body in upper-case hexadecimal, as upstream has it.
    """

    packed: bytes
    hash: str

    @property
    def body(self) -> bytes:
        """The bytes before compression."""
        return gzip.decompress(self.packed)


def _document(body: bytes) -> Document:
    packed = gzip.compress(body, compresslevel=_FASTEST, mtime=0)
    return Document(packed, hashlib.sha512(body).hexdigest().upper())


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the v2 document: the inside of `paths` and of `definitions`, encoded and compressed.

    Parts that depend on equal things are equal.
    """

    depends_on: object
    packed_paths: bytes
    packed_definitions: bytes


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How the v2 document is encoded part by part, and put together."""

    paths: Callable[[dict[str, Any]], bytes]
    definitions: Callable[[dict[str, Any]], bytes]
    join: Callable[[Sequence[bytes], Sequence[bytes]], bytes]


def _inside(value: dict[str, Any]) -> bytes:
    return codec.encode(value)[1:-1]


def _join_json(paths: Sequence[bytes], definitions: Sequence[bytes]) -> bytes:
    all_paths, all_definitions = (b",".join(filter(None, parts)) for parts in (paths, definitions))
    return b'{%b,"paths":{%b},"definitions":{%b}}' % (_inside(v2.frame()), all_paths, all_definitions)


def _join_protobuf(paths: Sequence[bytes], definitions: Sequence[bytes]) -> bytes:
    return v2_protobuf.document(v2.frame(), b"".join(paths), b"".join(definitions))


_JSON = _Encoding(_inside, _inside, _join_json)
_PROTOBUF = _Encoding(v2_protobuf.paths, v2_protobuf.definitions, _join_protobuf)


def _assemble(encoding: _Encoding, parts: Sequence[_Part]) -> Document:
    paths = [zlib.decompress(part.packed_paths) for part in parts]
    definitions = [zlib.decompress(part.packed_definitions) for part in parts]
    return _document(encoding.join(paths, definitions))


_Item = TypeVar("_Item")


async def _unhurried(items: Iterable[_Item]) -> AsyncIterator[_Item]:
    """The items, with a turn for everyone else whenever what is done with them has taken `_TURN` seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for item in items:
        yield item
        if loop.time() - began > _TURN:
            await asyncio.sleep(0)
            began = loop.time()


class OpenAPI:
    """Documents by group version (v3), and of all (v2), of one catalog, for use on its event loop."""

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

    async def v3_index(self) -> bytes:
        """The index of all v3 documents, each with its hash."""
        self._refresh()
        while self._index is None:
            generation = self._generation
            async for path in _unhurried(sorted(self._keys)):
                self.v3(path)
            self._refresh()
            if generation == self._generation:
                self._index = codec.encode({"paths": {path: self._entry(path) for path in sorted(self._keys)}})
        return self._index

    def _entry(self, path: str) -> dict[str, str]:
        document = self.v3(path)
        assert document is not None
        return {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.hash}"}

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

    async def v2_json(self) -> Document:
        """The v2 document as JSON."""
        return await self._v2_in(_JSON)

    async def v2_protobuf(self) -> Document:
        """The v2 document as protobuf."""
        return await self._v2_in(_PROTOBUF)

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
        self._parts = {key: part for key, part in self._parts.items() if part.depends_on == self._dependency(key[1])}

    def _content(self, path: str) -> dict[str, Any]:
        """The content of a v3 document that there is."""
        group_version = _parse(path)
        if group_version is None:
            return v3.document([_server_operation(path)], _builtin_schemas(), custom=False)
        schemas = {**kinds.schemas(), **_custom_schemas(self._in(group_version), v2=False)}
        return v3.document(self._operations_in(group_version), schemas, custom=self._is_custom(group_version))

    def _operations_in(self, group_version: GroupVersion) -> list[Operation]:
        found = [item for scope in self._in(group_version) for item in operations(self._describe(scope))]
        if not self._is_custom(group_version):
            found.append(server_routes.version_resources(*group_version))
        return found

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

    async def _v2_in(self, encoding: _Encoding) -> Document:
        """The v2 document: a part for the server and for all built-in schemas, and one for each group version."""
        self._refresh()
        while encoding not in self._v2:
            generation = self._generation
            parts = [self._part(encoding, key) async for key in _unhurried([None, *self._scopes])]
            document = await asyncio.to_thread(_assemble, encoding, parts)
            self._refresh()
            if generation == self._generation:
                self._v2[encoding] = document
        return self._v2[encoding]

    def _part(self, encoding: _Encoding, key: GroupVersion | None) -> _Part:
        found = self._parts.get((encoding, key))
        if found is None:
            if key is None:
                found_operations, definitions = self._server_operations(), _builtin_definitions()
            else:
                found_operations = self._operations_in(key)
                definitions = _custom_schemas(self._in(key), v2=True)
            packed_paths = zlib.compress(encoding.paths(v2.paths(found_operations)), _FASTEST)
            packed_definitions = zlib.compress(encoding.definitions(definitions), _FASTEST)
            found = self._parts[encoding, key] = _Part(self._dependency(key), packed_paths, packed_definitions)
        return found

    def _dependency(self, key: GroupVersion | None) -> object:
        """What a part of the v2 document depends on."""
        if key is None:
            return [path for path in self._keys if _parse(path) is None]
        return self._in(key)

    def _server_operations(self) -> list[Operation]:
        return [_server_operation(path) for path in self._keys if _parse(path) is None]

    def _is_custom(self, group_version: GroupVersion) -> bool:
        return all(scope.custom for scope in self._in(group_version))

    def _in(self, group_version: GroupVersion) -> Scopes:
        """The scopes of a group version: none when it has gone while documents were being built."""
        return self._scopes.get(group_version, ())


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
