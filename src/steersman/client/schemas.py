"""What the server's OpenAPI v3 documents say of a kind: how its lists and maps are merged.

Source: KEP-2896 (OpenAPI v3); the extensions of KEP-555.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from steersman.apimachinery.errors import ApiError
from steersman.client.errors import ClientError
from steersman.client.resources import Resource


class Shape:
    """One place in a schema. Where nothing is known, maps are merged key by key, and lists are one whole."""

    def __init__(self, schema: Mapping[str, Any], components: Mapping[str, Any]) -> None:
        self._components = components
        self._schema = self._resolved(schema)

    @property
    def is_atomic(self) -> bool:
        """Whether a map is one whole."""
        return self._schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def is_set(self) -> bool:
        return self._schema.get("x-kubernetes-list-type") == "set"

    @property
    def list_keys(self) -> Sequence[str]:
        """The fields that tell a list's items apart; empty if it is no list of that kind."""
        if self._schema.get("x-kubernetes-list-type") != "map":
            return ()
        return self._schema.get("x-kubernetes-list-map-keys") or ()

    @property
    def default(self) -> Any:
        return self._schema.get("default")

    @property
    def item(self) -> Shape:
        """That of a list's items."""
        return Shape(self._schema.get("items") or {}, self._components)

    def field(self, name: str) -> Shape:
        """That of a map's value."""
        found = (self._schema.get("properties") or {}).get(name)
        if found is None:
            rest = self._schema.get("additionalProperties")
            found = rest if isinstance(rest, Mapping) else {}
        return Shape(found, self._components)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema without references; those in `allOf` hold beside the schema's own words."""
        for part in schema.get("allOf") or ():
            if "$ref" in part:
                schema = {**self._resolved(part), **{key: value for key, value in schema.items() if key != "allOf"}}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target = self._components.get(reference.rpartition("/")[2])
        return self._resolved(target) if isinstance(target, Mapping) else {}


UNKNOWN = Shape({}, {})


class Schemas:
    """The shapes of kinds, one request for each group version that is asked for."""

    def __init__(self, get: Callable[[str], Awaitable[Any]]) -> None:
        """`get` fetches the JSON at a path."""
        self._get = get
        self._known: dict[str, Mapping[str, Any]] = {}

    async def shape(self, resource: Resource) -> Shape:
        """That of a kind; UNKNOWN if the server does not tell."""
        components = self._known.get(resource.api_version)
        if components is None or (found := _of_kind(components, resource)) is None:
            # A kind that is not in the document may have come since.
            components = self._known[resource.api_version] = await self._fetch(resource)
            found = _of_kind(components, resource)
        return Shape(found, components) if found is not None else UNKNOWN

    async def _fetch(self, resource: Resource) -> Mapping[str, Any]:
        root = "apis" if resource.group else "api"
        try:
            document = await self._get(f"/openapi/v3/{root}/{resource.api_version}")
        except (ApiError, ClientError):
            return {}
        components = document.get("components") if isinstance(document, Mapping) else None
        schemas = components.get("schemas") if isinstance(components, Mapping) else None
        return schemas if isinstance(schemas, Mapping) else {}


def _of_kind(components: Mapping[str, Any], resource: Resource) -> Mapping[str, Any] | None:
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for schema in components.values():
        if isinstance(schema, Mapping) and wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
            return schema
    return None
