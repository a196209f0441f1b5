"""A custom resource's schema with every kind of list and map, and a small ObjectMeta."""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.apply.typed import TypeView, from_crd, object_meta

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def list_of(items: dict[str, Any], kind: str = "atomic", *keys: str) -> dict[str, Any]:
    out = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return {**out, "x-kubernetes-list-map-keys": list(keys)} if keys else out


OPENAPI: dict[str, Any] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": struct(
        name=TEXT,
        namespace=TEXT,
        uid=TEXT,
        creationTimestamp={"type": "string", "format": "date-time"},
        labels={"type": "object", "additionalProperties": TEXT},
        annotations={"type": "object", "additionalProperties": TEXT},
        finalizers=list_of(TEXT, "set"),
        ownerReferences=list_of(struct(uid=TEXT, name=TEXT), "map", "uid"),
        managedFields=list_of({"type": "object"}),
    ),
}
SPEC = struct(
    a=TEXT,
    n=NUMBER,
    nested=struct(x=TEXT, y=TEXT),
    labels={"type": "object", "additionalProperties": TEXT},
    atomic={**struct(x=TEXT, y=TEXT), "x-kubernetes-map-type": "atomic"},
    items=list_of(TEXT),
    tags=list_of(TEXT, "set"),
    parts=list_of(struct(name=TEXT, value=TEXT, sub=struct(k=TEXT)), "map", "name"),
    ports=list_of(struct(port=NUMBER, protocol={**TEXT, "default": "TCP"}, name=TEXT), "map", "port", "protocol"),
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    percent={"x-kubernetes-int-or-string": True},
    template={**struct(spec=struct(a=TEXT)), "x-kubernetes-embedded-resource": True},
)
SCHEMA = struct(spec=SPEC, status=struct(phase=TEXT, conditions=list_of(struct(type=TEXT, status=TEXT), "map", "type")))
META = object_meta(OPENAPI)
VIEW: TypeView = from_crd(SCHEMA, META)
