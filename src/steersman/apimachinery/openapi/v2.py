"""The OpenAPI v2 document: one for all groups, made of parts that can be built and encoded one by one.

Source: kube-openapi `pkg/builder/{openapi,parameters}.go`, `pkg/handler/default_pruning.go`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from steersman.apimachinery.openapi.crd_schemas import V2_PREFIX, V3_PREFIX
from steersman.apimachinery.openapi.parameters import NAMESPACE, QUERY, Parameter, PathItem, path_items
from steersman.apimachinery.openapi.resources import GVK_EXTENSION, gvk_value
from steersman.apimachinery.openapi.routes import DELETE_OPTIONS, PATCH, Operation
from steersman.apimachinery.openapi.v3 import BUILTIN_INFO, REASONS

# kubectl up to 1.27 looks for these two in the operations themselves, and does not follow references.
_NEVER_SHARED = frozenset({"dryRun", "fieldValidation"})
_SECURITY = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}


def frame() -> dict[str, Any]:
    """The document without its paths and definitions, but with the parameters that operations refer to."""
    return {
        "swagger": "2.0",
        "info": BUILTIN_INFO,
        "parameters": dict(shared_parameters().values()),
        "securityDefinitions": _SECURITY,
        "security": [{"BearerToken": []}],
    }


def paths(operations: Iterable[Operation]) -> dict[str, Any]:
    """The path items of these operations."""
    return {item.path: _path(item) for item in path_items(operations)}


def definition(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A built-in kind's v3 schema as v2 shows it: without defaults, alternatives and wrapped references."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref":
            out[key] = V2_PREFIX + value.removeprefix(V3_PREFIX)
        elif key == "allOf" and len(value) == 1 and set(value[0]) == {"$ref"}:
            out["$ref"] = V2_PREFIX + value[0]["$ref"].removeprefix(V3_PREFIX)
        elif key == "oneOf":
            out["type"] = "string"
        elif key == "properties":
            out[key] = {name: definition(item) for name, item in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            out[key] = definition(value)
        elif key != "default":
            out[key] = value
    return out


@cache
def shared_parameters() -> dict[str, tuple[str, dict[str, Any]]]:
    """Parameters that operations refer to, by name or, for bodies, by model: each with its key in the document."""
    found = {name: _parameter(item) for name, item in QUERY.items() if name not in _NEVER_SHARED}
    found["namespace"] = _parameter(NAMESPACE)
    found[PATCH] = _body(PATCH, required=True)
    found[DELETE_OPTIONS] = _body(DELETE_OPTIONS, required=False)
    return {name: (_key(value), value) for name, value in found.items()}


def _key(parameter: Mapping[str, Any]) -> str:
    """A key that changes with the parameter, so that a client's old document is never read with new keys."""
    digest = hashlib.sha256(json.dumps(parameter, sort_keys=True).encode()).digest()
    return f"{parameter['name']}-{base64.urlsafe_b64encode(digest[:6]).decode()}"


def _path(item: PathItem) -> dict[str, Any]:
    out: dict[str, Any] = {operation.method: _operation(item, operation) for operation in item.operations}
    if item.shared:
        out["parameters"] = [_reference_or(parameter) for parameter in item.shared]
    return out


def _operation(item: PathItem, operation: Operation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "description": operation.description,
        "consumes": list(operation.consumes),
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.id,
        "responses": {
            **{str(code): _response(code, model) for code, model in operation.responses},
            "401": {"description": REASONS[401]},
        },
    }
    parameters = [_reference_or(parameter) for parameter in item.own(operation)]
    if operation.body:
        parameters.insert(0, _body_of(operation))
    if parameters:
        out["parameters"] = parameters
    if operation.gvk is not None:
        out["x-kubernetes-action"] = operation.action
        out[GVK_EXTENSION] = gvk_value(*operation.gvk)
    return out


def _response(code: int, model: str) -> dict[str, Any]:
    return {"description": REASONS[code], "schema": {"$ref": V2_PREFIX + model}}


def _reference_or(parameter: Parameter) -> dict[str, Any]:
    shared = shared_parameters().get(parameter.name)
    return {"$ref": f"#/parameters/{shared[0]}"} if shared else _parameter(parameter)


def _body_of(operation: Operation) -> dict[str, Any]:
    shared = shared_parameters().get(operation.body)
    return {"$ref": f"#/parameters/{shared[0]}"} if shared else _body(operation.body, required=operation.body_required)


def _body(model: str, *, required: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": "body", "in": "body"}
    if required:
        out["required"] = True
    return {**out, "schema": {"$ref": V2_PREFIX + model}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    out: dict[str, Any] = {
        "uniqueItems": True,
        "type": parameter.type,
        "description": parameter.description,
        "name": parameter.name,
        "in": parameter.place,
    }
    if parameter.place == "path":
        out["required"] = True
    return out
