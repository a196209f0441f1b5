"""What pruning, defaulting and validating a custom resource costs, beside a JSON round trip of it.

python bench/schema.py
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from typing import Any

import orjson

from steersman.apimachinery.schema import compile_schema

ITEM = {
    "type": "object",
    "required": ["name", "port"],
    "properties": {
        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"},
        "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
        "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"},
        "target": {"x-kubernetes-int-or-string": True},
        "weight": {"type": "number", "minimum": 0, "maximum": 1},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}},
        "note": {"type": "string"},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["replicas"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                "paused": {"type": "boolean", "default": False},
                "ports": {
                    "type": "array",
                    "maxItems": 100,
                    "items": ITEM,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "protocol"],
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def sample(items: int = 32) -> dict[str, Any]:
    """A valid object of about 5 KB."""
    ports = [
        {
            "name": f"port-{index}",
            "port": 1000 + index,
            "protocol": "UDP" if index % 2 else "TCP",
            "target": "http" if index % 3 else 8080,
            "weight": index / 64,
            "labels": {"app": f"app-{index}", "tier": "backend"},
            "note": "text that says nothing",
        }
        for index in range(items)
    ]
    metadata = {"name": "sample", "namespace": "default", "labels": {"a": "b"}}
    return {
        "apiVersion": "x.example/v1",
        "kind": "Sample",
        "metadata": metadata,
        "spec": {"replicas": 3, "ports": ports},
    }


def microseconds(call: Callable[[], object], number: int = 2000) -> float:
    """The best of five rounds, for one call."""
    return min(timeit.repeat(call, number=number, repeat=5)) / number * 1e6


def main() -> None:
    pipeline = compile_schema(SCHEMA)
    obj = sample()
    pipeline.default(obj)
    raw = orjson.dumps(obj)
    broken = json.loads(raw)
    broken["spec"]["ports"][5]["port"] = "x"

    def all_steps() -> None:
        pipeline.prune(obj)
        pipeline.default(obj)
        pipeline.validate(obj)

    rows = {
        "orjson round trip": lambda: orjson.loads(orjson.dumps(obj)),
        "json round trip": lambda: json.loads(json.dumps(obj)),
        "prune": lambda: pipeline.prune(obj),
        "default": lambda: pipeline.default(obj),
        "validate": lambda: pipeline.validate(obj),
        "prune, default, validate": all_steps,
        "validate, one error": lambda: pipeline.validate(broken),
    }
    print(f"object of {len(raw)} bytes")
    for label, call in rows.items():
        print(f"{label:26} {microseconds(call, 200 if 'error' in label else 2000):8.1f} us")
    print(f"{'compile':26} {microseconds(lambda: compile_schema(SCHEMA), 20):8.1f} us")


if __name__ == "__main__":
    main()
