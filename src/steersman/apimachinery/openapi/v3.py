"""OpenAPI v3 documents, one for each group version.

Source: kube-openapi `pkg/builder3/openapi.go`, KEP-2896.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.apimachinery.openapi.crd_schemas import V3_PREFIX
from steersman.apimachinery.openapi.parameters import Parameter, PathItem, path_items
from steersman.apimachinery.openapi.resources import GVK_EXTENSION, reachable
from steersman.apimachinery.openapi.routes import Operation

BUILTIN_INFO = {"title": "Kubernetes", "version": "1.37"}
CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
REASONS = {200: "OK", 201: "Created", 202: "Accepted", 401: "Unauthorized"}
_SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}


def document(
    operations: Iterable[Operation], schemas: Mapping[str, Mapping[str, Any]], *, custom: bool
) -> dict[str, Any]:
    """The document of one group version: these operations and, of `schemas`, those that they need.

    `custom` documents have another title, and name no way to authenticate.
    """
    found = list(operations)
    wanted = {model for operation in found for model in (operation.body, *(model for _, model in operation.responses))}
    names = sorted(reachable(wanted, schemas, V3_PREFIX))
    components: dict[str, Any] = {"schemas": {name: schemas[name] for name in names}}
    if not custom:
        components["securitySchemes"] = _SECURITY
    return {
        "openapi": "3.0.0",
        "info": CUSTOM_INFO if custom else BUILTIN_INFO,
        "paths": {item.path: _path(item) for item in path_items(found)},
        "components": components,
    }


def _path(item: PathItem) -> dict[str, Any]:
    out: dict[str, Any] = {operation.method: _operation(item, operation) for operation in item.operations}
    if item.shared:
        out["parameters"] = [_parameter(parameter) for parameter in item.shared]
    return out


def _operation(item: PathItem, operation: Operation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
        "responses": {
            **{str(code): _response(code, model, operation.produces) for code, model in operation.responses},
            "401": {"description": REASONS[401]},
        },
    }
    own = item.own(operation)
    if own:
        out["parameters"] = [_parameter(parameter) for parameter in own]
    if operation.body:
        out["requestBody"] = {"content": _content(operation.body, operation.consumes)}
        if operation.body_required:
            out["requestBody"]["required"] = True
    if operation.gvk is not None:
        out["x-kubernetes-action"] = operation.action
        out[GVK_EXTENSION] = operation.gvk._asdict()
    return out


def _response(code: int, model: str, produces: Iterable[str]) -> dict[str, Any]:
    return {"description": REASONS[code], "content": _content(model, produces)}


def _content(model: str, media_types: Iterable[str]) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": V3_PREFIX + model}} for media_type in media_types}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    out: dict[str, Any] = {"name": parameter.name, "in": parameter.place, "description": parameter.description}
    if parameter.place == "path":
        out["required"] = True
    return {**out, "schema": {"type": parameter.type, "uniqueItems": True}}
