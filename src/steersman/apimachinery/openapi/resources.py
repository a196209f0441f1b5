"""Resources as OpenAPI documents describe them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.gvk import GroupVersionKind

GVK_EXTENSION = "x-kubernetes-group-version-kind"


@dataclass(frozen=True, slots=True)
class SubresourceDescription:
    """A subresource: its kind's coordinates, the name of that kind's schema, and the verbs it serves."""

    name: str
    gvk: GroupVersionKind
    model: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceDescription:
    """A resource in one version. `model` and `list_model` name the schemas of its kind and of its list.

    `verbs` are discovery's. `custom` tells custom resources, whose operations upstream describes a bit differently;
    `returns_deleted` whether a delete answers the object.
    """

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    custom: bool
    verbs: frozenset[str]
    model: str
    list_model: str
    subresources: tuple[SubresourceDescription, ...] = ()
    returns_deleted: bool = False


def gvk_value(group: str, version: str, kind: str) -> dict[str, str]:
    """A kind's coordinates as the extension has them."""
    return {"group": group, "kind": kind, "version": version}


def model_name(group: str, version: str, kind: str) -> str:
    """The name of a custom kind's schema: the group backwards, the version, the kind."""
    return ".".join([*reversed(group.split(".")), version, kind])


def models_by_kind(schemas: Mapping[str, Mapping[str, Any]]) -> dict[GroupVersionKind, str]:
    """Names of schemas by the kind they say they describe."""
    return {
        GroupVersionKind(item["group"], item["version"], item["kind"]): name
        for name, schema in schemas.items()
        for item in schema.get(GVK_EXTENSION, ())
    }


def reachable(names: Iterable[str], schemas: Mapping[str, Mapping[str, Any]], prefix: str) -> set[str]:
    """The named schemas and all that they refer to, as far as `schemas` has them."""
    found: set[str] = set()
    waiting = [name for name in names if name in schemas]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [other for other in _references(schemas[name], prefix) if other in schemas]
    return found


def _references(value: Any, prefix: str) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in _references(item, prefix)]
    if not isinstance(value, dict):
        return []
    found = [name for item in value.values() for name in _references(item, prefix)]
    reference = value.get("$ref")
    if isinstance(reference, str):
        found.append(reference.removeprefix(prefix))
    return found
