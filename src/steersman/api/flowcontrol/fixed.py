"""The flow schemas and priority levels that a server comes with, and how upstream prints their specs.

Source: apiserver `pkg/apis/flowcontrol/bootstrap/default.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api import _data
from steersman.apimachinery.field_errors import Struct

LEVELS, SCHEMAS = "PriorityLevelConfiguration", "FlowSchema"
MANDATORY = ("catch-all", "exempt")
"""The names of those that cannot be changed or missed, of both kinds."""

_NAME = {"name": None}
_RESOURCE_RULE = {"verbs": None, "apiGroups": None, "resources": None, "clusterScope": False, "namespaces": None}
_SUBJECT = {"kind": "", "user": _NAME, "group": _NAME, "serviceAccount": {"namespace": "", "name": ""}}
_RULES = {
    "subjects": [_SUBJECT],
    "resourceRules": [_RESOURCE_RULE],
    "nonResourceRules": [{"verbs": None, "nonResourceURLs": None}],
}
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    SCHEMAS: {
        "priorityLevelConfiguration": {"name": ""},
        "matchingPrecedence": 0,
        "distinguisherMethod": {"type": ""},
        "rules": [_RULES],
    },
    LEVELS: {
        "type": "",
        "limited": {
            "nominalConcurrencyShares": 0,
            "limitResponse": {"type": "", "queuing": {"queues": 0, "handSize": 0, "queueLengthLimit": 0}},
            "lendablePercent": None,
            "borrowingLimitPercent": None,
        },
        "exempt": {"nominalConcurrencyShares": None, "lendablePercent": None},
    },
}
"""The fields of the specs in upstream's order, each with what stands for it when it is absent."""


def fixed(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """The specs of all objects of a kind that a server comes with, by name; not to be changed."""
    found: Mapping[str, Mapping[str, Any]] = _data.load("flowcontrol")[kind]
    return found


def shown(kind: str, spec: Mapping[str, Any]) -> Any:
    """A spec as messages quote it: with the names and the order of Go's fields."""
    return _shown(spec, _SHAPES[kind])


def _shown(value: Any, shape: Any) -> Any:
    if isinstance(shape, list):
        return [_shown(item, shape[0]) for item in value] if value else None
    if not isinstance(shape, Mapping):
        return shape if value is None else value
    if value is None:
        return None
    return Struct({_go_name(key): _shown(value.get(key), inner) for key, inner in shape.items()})


def _go_name(field: str) -> str:
    return {"apiGroups": "APIGroups", "nonResourceURLs": "NonResourceURLs"}.get(field, field[0].upper() + field[1:])
