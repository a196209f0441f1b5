"""Objects as Table and PartialObjectMetadata.

Source: apiserver `pkg/endpoints/handlers/response.go` and `pkg/registry/rest/table.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.errors import BadRequest
from steersman.apimachinery.request_info import RequestInfo
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object

META_V1 = "meta.k8s.io/v1"
_UNPRINTED = ("Name", "Created At")
"""The columns of kinds that nobody prints otherwise; their empty tables have no rows at all."""
_LEVELS = ("Metadata", "None", "Object")


def one(kind: str, scope: ResourceScope, obj: Object, now: float, info: RequestInfo) -> Object:
    """One object as a Table of one row, or its metadata alone."""
    if kind == "Table":
        version = obj["metadata"].get("resourceVersion")
        return table(scope, [obj], {"resourceVersion": version} if version else {}, now, info)
    return partial(obj)


def many(kind: str, scope: ResourceScope, items: list[Object], meta: Object, now: float, info: RequestInfo) -> Object:
    """A list as a Table, or as a list of metadata."""
    meta = {key: item for key, item in meta.items() if item != ""}
    if kind == "Table":
        return table(scope, items, meta, now, info)
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": META_V1,
        "metadata": meta,
        "items": [partial(item) for item in items] or None,
    }


def versioned(out: Object, version: str) -> Object:
    """What the functions here made, in another version of meta.k8s.io; in place."""
    if version != "v1":
        inside = [*(out.get("items") or ()), *(each["object"] for each in out.get("rows") or ())]
        for each in (out, *inside):
            if each is not None and each.get("apiVersion") == META_V1:
                each["apiVersion"] = f"meta.k8s.io/{version}"
    return out


def partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": META_V1, "metadata": obj["metadata"]}


def table(
    scope: ResourceScope, items: Sequence[Object], meta: Object, now: float, info: RequestInfo, *, header: bool = True
) -> Object:
    """A Table; `header` says whether the columns are described (the first event of a watch only)."""
    level = check_level(info)
    rows = [row(scope, item, level, now) for item in items]
    return {
        "kind": "Table",
        "apiVersion": META_V1,
        "metadata": meta,
        "columnDefinitions": [column.definition() for column in scope.columns] if header else None,
        "rows": rows or (None if tuple(column.name for column in scope.columns) == _UNPRINTED else []),
    }


def check_level(info: RequestInfo) -> str:
    """How much of each object a Table's rows carry. Raises BadRequest."""
    level = info.first("includeObject") or "Metadata"
    if level not in _LEVELS:
        error = fe.invalid("includeObject", level, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest(f"Unable to convert to Table as requested: {error}")
    return level


def row(scope: ResourceScope, obj: Object, level: str, now: float) -> Object:
    out: Object = {"cells": [column.cell(obj, now) for column in scope.columns]}
    if level == "Metadata":
        out["object"] = partial(obj)
    elif level == "Object":
        out["object"] = obj
    else:
        out["object"] = None
    return out
