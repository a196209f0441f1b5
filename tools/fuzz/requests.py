"""Requests about objects: creates, and updates of what is stored, as JSON, YAML and patches."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import yaml

from steersman.apimachinery.codec.json import decode
from steersman.apimachinery.schema import compile_schema

from . import values
from .objects import Shaper
from .values import Doubled, Raw, write
from .wire import UID_OF, VERSION_OF, Ask

Schema = dict[str, Any]
LEVELS = ("", "", "Ignore", "Warn", "Strict", "Strict")
BROKEN = (
    '{"a": 1',
    "",
    "[]",
    "null",
    "5",
    '"x"',
    '{"apiVersion": 1}',
    "{} {}",
    "\ufeff{}",
    '{"a": 01}',
    "{a: 1}",
    '{"kind": null}',
)
BROKEN += (
    '{"a": 1,}',
    '{"metadata": []}',
    '{"a": NaN}',
    "\x00",
    '{"spec": {"a": tru}}',
    '{"a": +1}',
    '{"a": .5}',
    '{"a": "\t"}',
)


class Writer:
    """Draws requests for one resource; `collection` is its path."""

    def __init__(self, rng: Random, collection: str, api_version: str, kind: str, schema: Schema) -> None:
        self.rng = rng
        self.shaper = Shaper(rng)
        self.collection = collection
        self.set_schema(schema)
        self._identity = {"apiVersion": api_version, "kind": kind}

    def set_schema(self, schema: Schema) -> None:
        """Draw objects for another schema from now on."""
        self.schema = schema
        try:
            self._pipeline = compile_schema(decode(write(schema).encode()))
        except (AttributeError, TypeError, ValueError):  # of a definition that should have been refused
            self._pipeline = compile_schema(None)

    def _value(self) -> Any:
        """An object that mostly is valid, as far as this project can tell."""
        for _ in range(4):
            value = self.shaper.value(self.schema)
            try:
                obj = decode(write({**self._identity, "metadata": {"name": "a"}, **value}).encode())
                self._pipeline.prune(obj)
                self._pipeline.default(obj)
                if not self._pipeline.validate(obj):
                    break
            except (TypeError, ValueError):
                continue
        return value

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def create(self, name: str) -> Ask:
        """A create of an object that fits, or that was changed in places."""
        subject = f"{self.collection}/{name}"
        if self.chance(0.01):
            return Ask("POST", self.collection, self.rng.choice(BROKEN), query=self._query(), subject=subject)
        obj = self._value()
        if self.chance(0.4):
            obj = self.shaper.mutated(obj, self.schema, self.rng.choice((1, 1, 2, 3)))
        return self._with_body("POST", self.collection, subject, self._named(obj, name))

    def _named(self, obj: Any, name: str) -> Any:
        obj = obj if isinstance(obj, dict) else {"spec": obj}
        obj.pop("items", None)  # kube-apiserver takes an object with a list of items for a list, and fails: 500
        meta: Any = {"name": name}
        if self.chance(0.06):
            meta = self.shaper.mutated({**meta, "labels": {"a": "b"}, "annotations": {"c": "d"}}, None)
        elif self.chance(0.05):
            meta |= self._strange_metadata()
        whole: dict[str, Any] = {**self._identity, "metadata": meta, **_content(obj)}
        if isinstance(obj, Doubled):
            return Doubled(whole, obj.first)
        return self.shaper.mutated(whole, None) if self.chance(0.01) else whole

    def _strange_metadata(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "labels": {"a": self.rng.choice((1, None, "-", "ok", True, {}))},
            "annotations": {"a": self.rng.choice((1.5, None, [], "ok"))},
            "finalizers": self.rng.choice((["x"], ["a/b", None], "x", [1], None, ["a/b", "a/b"])),
            "ownerReferences": self.rng.choice(
                ([{}], [{"apiVersion": "v1", "kind": "Nope", "name": "x", "uid": "y"}], [None], {}, "x")
            ),
            "creationTimestamp": self.rng.choice(("x", None, 5, "2024-01-01T00:00:00Z")),
            "deletionTimestamp": self.rng.choice(("2024-01-01T00:00:00Z", None, "")),
            "generation": self.rng.choice((5, "5", -1, 1.5, None)),
            "resourceVersion": self.rng.choice(("", None, 5)),
            "namespace": self.rng.choice(("default", "other", None, 1)),
            "uid": self.rng.choice(("x", 1, None)),
            "generateName": self.rng.choice(("x-", 1)),
            "managedFields": self.rng.choice(
                ([], [{}], None, [{"manager": "x"}], {}, [{"manager": "x", "operation": "Odd"}])
            ),
            "strange": 1,
            "Labels": {"a": "b"},
            "deletionGracePeriodSeconds": self.rng.choice((5, "5", None)),
        }
        return {key: each for key, each in options.items() if self.chance(0.15)}

    def _with_body(self, method: str, path: str, subject: str, obj: Any) -> Ask:
        query = self._query()
        draw = self.rng.random()
        if draw < 0.85:
            return Ask(method, path, write(obj, ascii_only=self.chance(0.2)), query=query, subject=subject)
        if draw < 0.93:
            return Ask(
                method, path, write(_with_yaml_scalars(self.rng, obj)), "application/yaml", query, subject=subject
            )
        try:
            plain = yaml.safe_load(write(obj))
            body = yaml.safe_dump(plain, allow_unicode=self.chance(0.5), sort_keys=False)
        except yaml.YAMLError:
            return Ask(method, path, write(obj), query=query, subject=subject)
        return Ask(method, path, body, "application/yaml", query, subject=subject)

    def _query(self) -> dict[str, str]:
        level = self.rng.choice(LEVELS)
        query = {"fieldValidation": level} if level else {}
        return query | ({"dryRun": "All"} if self.chance(0.04) else {})

    def update(self, name: str, stored: dict[str, Any], *, below: str = "") -> Ask:
        """A PUT or a patch of what is stored; `below` is a subresource."""
        subject = f"{self.collection}/{name}"
        path, draw = subject + below, self.rng.random()
        if draw < 0.45:
            return self._with_body("PUT", path, subject, self._changed(stored, subject))
        if draw < 0.75:
            patch = self._merge_patch(stored, subject)
            return Ask(
                "PATCH",
                path,
                write(_plain_texts(patch)),
                "application/merge-patch+json",
                self._query(),
                subject=subject,
            )
        patch = self._json_patch(stored)
        return Ask("PATCH", path, write(patch), "application/json-patch+json", self._query(), subject=subject)

    def _changed(self, stored: dict[str, Any], subject: str) -> Any:
        obj = copy.deepcopy(stored)
        obj.get("metadata", {}).pop("managedFields", None)
        draw, content = self.rng.random(), _content(obj)
        if draw < 0.15:
            fresh = self._value()
            content = fresh if isinstance(fresh, dict) else {}
        elif draw < 0.8:
            changed = self.shaper.mutated(content, self.schema)
            content = changed if isinstance(changed, dict) else {}
        meta = obj["metadata"] | {"resourceVersion": VERSION_OF.format(subject), "uid": UID_OF.format(subject)}
        if self.chance(0.05):
            meta.pop("resourceVersion")
        if self.chance(0.1):
            meta |= self._strange_metadata() | {"resourceVersion": VERSION_OF.format(subject)}
        return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": meta, **_content(content)}

    def _merge_patch(self, stored: dict[str, Any], subject: str) -> Any:
        draw = self.rng.random()
        if draw < 0.1:
            return {"metadata": {"labels": {"touched": str(self.rng.randint(0, 9))}}}
        if draw < 0.15:
            return {"metadata": self._strange_metadata()}
        if draw < 0.18:
            return values.anything(self.rng)
        key = self.rng.choice([key for key in (*stored, "spec") if key not in ("metadata", "kind", "apiVersion")])
        patch = {key: self._partly(stored.get(key), (self.schema.get("properties") or {}).get(key))}
        if self.chance(0.1):
            patch["metadata"] = {"resourceVersion": VERSION_OF.format(subject)}
        return patch

    def _partly(self, value: Any, schema: Schema | None) -> Any:
        if isinstance(value, dict) and value and self.chance(0.85):
            known = (schema or {}).get("properties") or {}
            keys = [self.rng.choice([*value, *known]) for _ in range(self.rng.choice((1, 1, 2)))]
            return {key: self._partly(value.get(key), known.get(key)) for key in keys}
        draw = self.rng.random()
        if draw < 0.3:
            return None
        if schema is not None and draw < 0.7:
            return self.shaper.value(schema)
        return self.shaper.mutated(value, schema)

    def _json_patch(self, stored: dict[str, Any]) -> Any:
        if self.chance(0.03):
            return self.rng.choice(
                ([], {}, [{}], [{"op": "odd"}], [{"op": "add", "path": "x", "value": 1}], [{"op": "add"}], "x", [1])
            )
        return [self._operation(stored) for _ in range(self.rng.choice((1, 1, 2, 3)))]

    def _operation(self, stored: dict[str, Any]) -> dict[str, Any]:
        path, value, schema = self._place(stored)
        draw = self.rng.random()
        if draw < 0.4:
            return {"op": "replace", "path": path, "value": _plain_texts(self.shaper.mutated(value, schema))}
        if draw < 0.6:
            key = self.rng.choice((self.rng.choice(values.KEYS), "0", "-", "99"))
            new = self.shaper.value(schema) if schema else values.anything(self.rng)
            return {"op": "add", "path": f"{path}/{_escaped(key)}", "value": _plain_texts(new)}
        if draw < 0.75:
            return {"op": "remove", "path": path}
        if draw < 0.85:
            return {"op": "test", "path": path, "value": value if self.chance(0.7) else values.anything(self.rng, 1)}
        return {
            "op": self.rng.choice(("copy", "move")),
            "from": path,
            "path": self._place(stored)[0] + self.rng.choice(("", "/x", "/0")),
        }

    def _place(self, stored: dict[str, Any]) -> tuple[str, Any, Schema | None]:
        key = self.rng.choice([key for key in (*stored, "spec") if key not in ("metadata", "kind", "apiVersion")])
        path, value, schema = f"/{key}", stored.get(key), (self.schema.get("properties") or {}).get(key)
        while isinstance(value, (dict, list)) and value and self.chance(0.75):
            if isinstance(value, dict):
                step: Any = self.rng.choice(list(value))
                schema = ((schema or {}).get("properties") or {}).get(step) or _schema(
                    (schema or {}).get("additionalProperties")
                )
            else:
                step = self.rng.randrange(len(value))
                schema = _schema((schema or {}).get("items"))
            path, value = f"{path}/{_escaped(str(step))}", value[step]
        return path, value, schema


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in obj.items() if key not in ("kind", "apiVersion", "metadata", "items")}


def _plain_texts(value: Any) -> Any:
    """The value without texts in odd spellings, which errors about patches quote as they are, and without 1e400."""
    if isinstance(value, Raw):
        text = str(value)
        return (
            json.loads(text).encode("utf-8", "replace").decode() if text[0] == '"' else 7 if text == "1e400" else value
        )
    if isinstance(value, dict):
        return {key: _plain_texts(each) for key, each in value.items()}
    return [_plain_texts(each) for each in value] if isinstance(value, list) else value


def _schema(value: Any) -> Schema | None:
    return value if isinstance(value, dict) else None


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _with_yaml_scalars(rng: Random, value: Any) -> Any:
    """The value with a plain scalar of YAML in some place."""
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        return Doubled(
            {**value, key: _with_yaml_scalars(rng, value[key])}, value.first if isinstance(value, Doubled) else {}
        )
    if isinstance(value, list) and value:
        return [_with_yaml_scalars(rng, value[0]), *value[1:]]
    return Raw(rng.choice(values.PLAIN_YAML)) if rng.random() < 0.7 else value
