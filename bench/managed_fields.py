"""How long it takes to record who owns what: `python bench/managed_fields.py`.

A custom resource of some 2 KB with three managers, whose one field changes; a create of the same object; a status
update; and a PUT of an object that one manager made, and of one that five others have written to. Prints microseconds
per call.
"""

from __future__ import annotations

import timeit

import orjson

from steersman.apimachinery.apply.fieldset import FieldSet
from steersman.apimachinery.apply.managers import Writer, track_update
from steersman.apimachinery.apply.typed import TypeView, from_crd, object_meta

TEXT = {"type": "string"}
ITEM = {"type": "object", "properties": {"name": TEXT, "image": TEXT, "args": {"type": "array", "items": TEXT}}}
LIST = {
    "type": "array",
    "items": ITEM,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
CONDITION = {"type": "object", "properties": {"type": TEXT, "status": TEXT, "message": TEXT}}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "containers": LIST,
                "labels": {"type": "object", "additionalProperties": TEXT},
                **{f"option{number}": TEXT for number in range(12)},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "ready": {"type": "integer"},
                "conditions": {**LIST, "items": CONDITION, "x-kubernetes-list-map-keys": ["type"]},
            },
        },
    },
}
META = {
    "properties": {
        "name": TEXT,
        "labels": {"type": "object", "additionalProperties": TEXT},
        "annotations": {"type": "object", "additionalProperties": TEXT},
        "finalizers": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    },
    "type": "object",
}
NOW = "2026-01-02T03:04:05Z"
VERSION = "example.com/v1"


def example() -> dict[str, object]:
    return {
        "apiVersion": VERSION,
        "kind": "Widget",
        "metadata": {"name": "one", "labels": {"app": "one", "tier": "back"}, "finalizers": ["example.com/clean"]},
        "spec": {
            "replicas": 1,
            "labels": {f"label-{number}": "value" for number in range(6)},
            "containers": [
                {"name": name, "image": f"registry.example.com/{name}:1.2", "args": ["--verbose", "--port=8080"]}
                for name in ("web", "side", "proxy")
            ],
            **{f"option{number}": "on" for number in range(12)},
        },
    }


def stored(view: TypeView) -> dict[str, object]:
    """The object after a create, an update of labels by another manager and a status update."""
    obj = example()
    for writer, change in (
        (Writer("creator"), {}),
        (Writer("labeller"), {"metadata": {**obj["metadata"], "labels": {"app": "two"}}}),
        (Writer("controller", subresource="status"), {"status": {"ready": 1, "conditions": [{"type": "Ready"}]}}),
    ):
        new = {**obj, **change}
        live = obj if "managedFields" in obj["metadata"] else None
        fields = track_update(live, new, writer, view=view, api_version=VERSION, now=NOW)
        obj = {**new, "metadata": {**new["metadata"], "managedFields": fields}}
    return obj


def by_managers(view: TypeView, count: int) -> dict[str, object]:
    """The object as one manager created it and others changed it, each a field of its own."""
    obj = example()
    for number in range(count):
        new = {**obj, "spec": {**obj["spec"], f"option{number}": f"of {number}"}}
        live = obj if number else None
        fields = track_update(live, new, Writer(f"manager-{number}"), view=view, api_version=VERSION, now=NOW)
        obj = {**new, "metadata": {**new["metadata"], "managedFields": fields}}
    return obj


def put_by_managers(view: TypeView, count: int) -> float:
    """Seconds of a PUT, with the managedFields that were read, which changes one field."""
    live = by_managers(view, count)
    read = orjson.loads(orjson.dumps(live))
    new = {**read, "spec": {**read["spec"], "replicas": 2}}

    def put() -> None:
        track_update(live, new, Writer("manager-0"), view=view, api_version=VERSION, now=NOW)

    return min(timeit.repeat(put, number=300, repeat=7)) / 300


def main() -> None:
    schemas = {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": META}
    view = from_crd(SCHEMA, object_meta(schemas))
    live = stored(view)
    text = orjson.dumps(live)
    again = orjson.loads(text)
    patched = {**live, "spec": {**live["spec"], "replicas": 2}}
    put = {**again, "spec": {**again["spec"], "replicas": 2}}
    status = {**live, "status": {"ready": 2, "conditions": [{"type": "Ready", "status": "True"}]}}
    reset, reset_status = FieldSet.of(("status",)), FieldSet.of(("metadata",), ("spec",))
    cases = {
        "patch of one field": (live, patched, Writer("creator"), reset),
        "put of one field": (live, put, Writer("creator"), reset),
        "patch by a new manager": (live, patched, Writer("other"), reset),
        "status update": (live, status, Writer("controller", subresource="status"), reset_status),
        "create": (None, example(), Writer("creator"), reset),
        "no change": (live, again, Writer("creator"), reset),
    }
    print(f"{len(text)} bytes, {len(live['metadata']['managedFields'])} managers")
    for name, (before, after, writer, without) in cases.items():

        def call(before=before, after=after, writer=writer, without=without) -> None:
            track_update(before, after, writer, view=view, api_version=VERSION, now=NOW, reset=without)

        best = min(timeit.repeat(call, number=2000, repeat=5)) / 2000
        print(f"{best * 1e6:7.1f} us  {name}")
    one, five = put_by_managers(view, 1), put_by_managers(view, 5)
    print(f"{one * 1e6:7.1f} us  put, one manager\n{five * 1e6:7.1f} us  put, five managers: {five / one:.2f} times")


if __name__ == "__main__":
    main()
