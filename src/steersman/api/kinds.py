"""The built-in kinds: what discovery says of each, how its objects decode, and where its rules are.

Source: kubernetes `pkg/apis/**/register.go`, `pkg/kubeapiserver/default_storage_factory_builder.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from steersman._util.dataclass import dataclass
from steersman.api import _data
from steersman.apimachinery.codec.protobuf import Schema
from steersman.apimachinery.errors import BadRequest
from steersman.apimachinery.go_types import TypeTable
from steersman.apimachinery.go_values import DecodeError, cannot_be_handled
from steersman.apimachinery.gvk import GroupVersionKind, GroupVersionResource

if TYPE_CHECKING:
    from steersman.api.builtin import BuiltinStrategy
    from steersman.apimachinery.codec.protobuf_encode import Encoder

_STORAGE_PREFIXES = {
    ("", "replicationcontrollers"): "controllers",
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "services"): "services/specs",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
    ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
}
_STORED_AS = {
    ("autoscaling", "HorizontalPodAutoscaler"): ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("events.k8s.io", "Event"): ("", "v1", "Event"),
}
_REFERENCE = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource: its own kind (`Scale`, `Eviction`), or that of the resource."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True)
class BuiltinKind:
    """One kind in one version, with discovery's words for it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version_hash: str = ""
    subresources: Mapping[str, Subresource] = field(default_factory=dict, compare=False)
    type: str = ""
    """The key of its Go type in the type table."""

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, self.plural)

    @property
    def api_version(self) -> str:
        return self.gvk.api_version

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def stored(self) -> bool:
        """Whether objects of it are kept; reviews and bindings are answered and forgotten."""
        return "get" in self.verbs and self.kind != "ComponentStatus"

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def storage_kind(self) -> BuiltinKind:
        """The kind in whose form it is stored: itself but for events.k8s.io Events and old versions."""
        found = _STORED_AS.get((self.group, self.kind))
        return self if found is None else builtin_kind(*found)

    @property
    def storage_prefix(self) -> str:
        """The part of its objects' keys between `/registry/` and the namespace."""
        kind = self.storage_kind
        return _STORAGE_PREFIXES.get((kind.group, kind.plural), kind.plural)

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """Its OpenAPI v3 schema; `$ref`s point to `schemas()`. Shared, not to be changed."""
        found: Mapping[str, Any] = schemas()[schema_name(self)]
        return found

    @cached_property
    def strategy(self) -> BuiltinStrategy:
        """Its rules."""
        from steersman.api.builtin import strategy_of

        return strategy_of(self)

    def decode(self, obj: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The object as Go's type of it holds it, kind and apiVersion first, and the paths of unknown fields.

        Unknown fields are dropped, zero values left out or filled in, times and quantities made canonical.
        Decoding what it gave gives the same. Raises BadRequest with Go's text for what does not fit the type.
        """
        try:
            decoded, unknown = _data.type_table().decode(self.type, obj)
        except DecodeError as error:
            raise cannot_be_handled(self.kind, self.version, str(error)) from error
        return self._typed(decoded), unknown

    def check_fields(self, obj: Mapping[str, Any]) -> None:
        """Raises DecodeError for the first field, in the order of Go's type, whose value does not fit.

        Trees are converted in this order, while a decoder meets the fields as they are sent.
        """
        _data.type_table().decode(self.type, obj, by_field=True)

    def stored_form(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """The object as a round trip through the store gives it: empty lists and maps gone, fields in Go's order."""
        decoded, _ = _data.type_table().decode(self.type, obj, drop_empty=True)
        return self._typed(decoded)

    def strict_error(self, problems: list[str]) -> BadRequest:
        """400 for fieldValidation=Strict; `problems` are such as `unknown field "spec.x"`."""
        return cannot_be_handled(self.kind, self.version, f"strict decoding error: {', '.join(problems)}")

    def _typed(self, decoded: dict[str, Any]) -> dict[str, Any]:
        decoded.pop("kind", None)
        decoded.pop("apiVersion", None)
        return {"kind": self.kind, "apiVersion": self.api_version, **decoded}


@cache
def builtin_kinds() -> tuple[BuiltinKind, ...]:
    """All of them, in discovery's order."""
    return tuple(_kind(entry) for entry in _data.load("kinds"))


def builtin_kind(group: str, version: str, kind: str) -> BuiltinKind:
    """The kind of that name; KeyError when there is none."""
    return _by_gvk()[GroupVersionKind(group, version, kind)]


def builtin_resource(group: str, version: str, plural: str) -> BuiltinKind | None:
    """The kind that a resource path names, if it is a built-in."""
    return _by_gvr().get(GroupVersionResource(group, version, plural))


def schemas() -> Mapping[str, Any]:
    """The OpenAPI v3 schemas of all types, as `components.schemas` has them."""
    found: Mapping[str, Any] = _data.load("schemas")
    return found


def protobuf_schema() -> Schema:
    """The protobuf messages of all kinds, of their subresources, and of DeleteOptions."""
    return _data.protobuf_schema()


@cache
def protobuf_encoder() -> Encoder:
    """Encodes built-in objects, Status and PartialObjectMetadata."""
    from steersman.apimachinery.codec.protobuf_encode import Encoder  # few servers are asked for protobuf

    return Encoder(protobuf_schema())


def schema_name(kind: BuiltinKind) -> str:
    """The name of the kind's own schema among `schemas()`."""
    return _schema_names()[kind.gvk]


def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a schema's `$ref` (bare, or alone in `allOf`) points to; the schema itself when it has none."""
    reference = schema.get("$ref")
    if reference is None and len(schema.get("allOf") or ()) == 1:
        reference = schema["allOf"][0].get("$ref")
    if reference is None:
        return schema
    found: Mapping[str, Any] = schemas()[reference.removeprefix(_REFERENCE)]
    return found


def _kind(entry: Mapping[str, Any]) -> BuiltinKind:
    subresources = {
        sub["name"]: Subresource(
            sub["name"],
            sub.get("group", entry["group"]),
            sub.get("version", entry["version"]),
            sub["kind"],
            tuple(sub["verbs"]),
        )
        for sub in entry["subresources"]
    }
    return BuiltinKind(
        entry["group"],
        entry["version"],
        entry["kind"],
        entry["plural"],
        entry["singular"],
        entry["namespaced"],
        tuple(entry["verbs"]),
        tuple(entry["shortNames"]),
        tuple(entry["categories"]),
        entry["storageVersionHash"],
        subresources,
        entry["type"],
    )


@cache
def _by_gvk() -> dict[GroupVersionKind, BuiltinKind]:
    return {kind.gvk: kind for kind in builtin_kinds()}


@cache
def _by_gvr() -> dict[GroupVersionResource, BuiltinKind]:
    return {kind.gvr: kind for kind in builtin_kinds()}


@cache
def _schema_names() -> dict[GroupVersionKind, str]:
    return {
        GroupVersionKind(gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in schemas().items()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }


def type_table() -> TypeTable:
    """Go's types of all built-in kinds, and of DeleteOptions."""
    return _data.type_table()
