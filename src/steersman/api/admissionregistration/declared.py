"""The types of what admission's expressions may name: `request`, `namespaceObject`, and `variables`.

Source: apiserver `pkg/admission/plugin/cel/compile.go` (BuildRequestType, BuildNamespaceType), `composition.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.program import object_types
from steersman.apimachinery.schema.cel.schema_types import Decl, Field
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.structural import Node

VARIABLES: Final = t.object_type("kubernetes.variables")
_TEXTS: Final = t.list_of(t.STRING)
_LABELS: Final = t.map_of(t.STRING, t.STRING)
_KEPT: Final = frozenset({t.OBJECT, t.OPAQUE, "type"})


def declare_object(name: str, fields: Mapping[str, Type | Decl]) -> Decl:
    """The declaration of an object type with these fields."""
    out = Decl(Node(), "object", t.object_type(name))
    for key, each in fields.items():
        declare_field(out, key, each)
    return out


def declare_field(decl: Decl, name: str, declared: Type | Decl) -> None:
    """Add a field to an object type."""
    inner = declared if isinstance(declared, Decl) else _of_type(declared)
    decl.fields[name] = Field(name, inner)
    decl.raw_fields[name] = inner


def variable_type(declared: Type | None) -> Type:
    """How a variable of a policy is seen by the expressions after it; None for one that does not compile."""
    if declared is None or declared.kind in _KEPT or declared.nullable:
        return t.DYN
    if declared.kind == "list":
        return t.list_of(variable_type(declared.params[0]))
    if declared.kind == "map":
        return t.map_of(variable_type(declared.params[0]), variable_type(declared.params[1]))
    return declared


def _of_type(declared: Type) -> Decl:
    return Decl(Node(), "unknown", declared)


def _list(decl: Decl) -> Decl:
    assert decl.type is not None
    out = Decl(Node(), "list", t.list_of(decl.type))
    out.element = decl
    return out


def _request() -> Decl:
    group = {"group": t.STRING, "version": t.STRING}
    kind = declare_object("kubernetes.GroupVersionKind", {**group, "kind": t.STRING})
    resource = declare_object("kubernetes.GroupVersionResource", {**group, "resource": t.STRING})
    user = declare_object(
        "kubernetes.UserInfo",
        {"username": t.STRING, "uid": t.STRING, "groups": _TEXTS, "extra": t.map_of(t.STRING, _TEXTS)},
    )
    return declare_object(
        "kubernetes.AdmissionRequest",
        {
            "kind": kind,
            "resource": resource,
            "subResource": t.STRING,
            "requestKind": kind,
            "requestResource": resource,
            "requestSubResource": t.STRING,
            "name": t.STRING,
            "namespace": t.STRING,
            "operation": t.STRING,
            "userInfo": user,
            "dryRun": t.BOOL,
            "options": t.DYN,
        },
    )


def _namespace() -> Decl:
    condition = declare_object(
        "kubernetes.NamespaceCondition",
        {
            "status": t.STRING,
            "type": t.STRING,
            "lastTransitionTime": t.TIMESTAMP,
            "message": t.STRING,
            "reason": t.STRING,
        },
    )
    metadata = {
        "name": t.STRING,
        "generateName": t.STRING,
        "namespace": t.STRING,
        "labels": _LABELS,
        "annotations": _LABELS,
        "UID": t.STRING,
        "creationTimestamp": t.TIMESTAMP,
        "deletionGracePeriodSeconds": t.INT,
        "deletionTimestamp": t.TIMESTAMP,
        "generation": t.INT,
        "resourceVersion": t.STRING,
        "finalizers": _TEXTS,
    }
    parts: dict[str, Type | Decl] = {
        "metadata": declare_object("kubernetes.NamespaceMetadata", metadata),
        "spec": declare_object("kubernetes.NamespaceSpec", {"finalizers": _TEXTS}),
        "status": declare_object("kubernetes.NamespaceStatus", {"conditions": _list(condition), "phase": t.STRING}),
    }
    return declare_object("kubernetes.Namespace", parts)


_REQUEST, _NAMESPACE = _request(), _namespace()
REQUEST: Final = t.object_type("kubernetes.AdmissionRequest")
NAMESPACE: Final = t.object_type("kubernetes.Namespace")
OBJECTS: Final[Mapping[str, Decl]] = {**object_types(_REQUEST), **object_types(_NAMESPACE)}
"""The object types, by name."""
