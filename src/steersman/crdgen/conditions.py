"""The schema of `metav1.Condition`. Source: apimachinery `pkg/apis/meta/v1/types.go` and its markers."""

from __future__ import annotations

from steersman.crdgen.markers import Node

CONDITION: Node = {
    "type": "object",
    "description": "One aspect of the state that the object is in.",
    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    "properties": {
        "type": {
            "type": "string",
            "description": "Which aspect: a word in CamelCase, such as Ready.",
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "The metadata.generation that this is about; an older one is out of date.",
        },
        "lastTransitionTime": {"type": "string", "format": "date-time", "description": "When `status` changed last."},
        "reason": {
            "type": "string",
            "description": "Why: a word in CamelCase, for programs.",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"type": "string", "maxLength": 32768, "description": "Why, for people. It may be empty."},
    },
}
