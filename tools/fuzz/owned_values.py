"""Values for the fuzzer of ownership, and their changes: part of an object, another object, a wrong one."""

from __future__ import annotations

from random import Random
from typing import Any

from .owned_kinds import Schema

WORDS = ("x", "y", "z")
OTHERS: tuple[Any, ...] = (
    None,
    "x",
    1,
    True,
    {},
    [],
    {"a": 1},
    ["x"],
    {"a": {"b": None}},
    [1, 1],
    [{"a": 1}],
    1.5,
    [None],
)


class Values:
    """Draws values of schemas; `wrong` is the share of places that do not fit."""

    def __init__(self, rng: Random, wrong: float = 0.0) -> None:
        self.rng = rng
        self.wrong = wrong

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def value(self, schema: Schema, depth: int = 8) -> Any:
        """A value of a schema."""
        if self.wrong and self.chance(self.wrong):
            return self.rng.choice(OTHERS)
        if schema.get("nullable") and self.chance(0.15):
            return None
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self.rng.choice((1, "x", "1"))
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._list(schema, depth)
        return self._scalar(schema, kind) if kind else self._anything(2)

    def _scalar(self, schema: Schema, kind: str) -> Any:
        if schema.get("format") == "date-time":
            return self.rng.choice(("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"))
        if kind == "integer":
            return self.rng.randint(0, 2)
        if kind == "number":
            return self.rng.choice((1, 1.5, 2, 100000000000000000000.0, 0.1))
        return self.chance(0.5) if kind == "boolean" else self.rng.choice(WORDS)

    def _anything(self, depth: int) -> Any:
        draw = self.rng.random()
        if depth and draw < 0.5:
            return {self.rng.choice("abc"): self._anything(depth - 1) for _ in range(self.rng.randint(0, 2))}
        if depth and draw < 0.7:
            return [self._anything(depth - 1) for _ in range(self.rng.randint(0, 2))]
        return self.rng.choice((*WORDS, 1, 2, True, None, 1.5))

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = dict(schema.get("x-fixed") or {})
        if schema.get("x-kubernetes-embedded-resource"):
            made |= {"apiVersion": "v1", "kind": "Thing"}
            if self.chance(0.5):
                made["metadata"] = self.rng.choice(({"name": "x"}, {"labels": {"a": "x"}}, {"labels": {"b": "y"}}, {}))
        required = schema.get("required") or ()
        for name, child in (schema.get("properties") or {}).items():
            if name in required or self.chance(0.5):
                made[name] = self.value(child, depth - 1)
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict):
            for key in self.rng.sample("abc", self.rng.randint(0, 2)):
                made[key] = self.value(rest, depth - 1)
        if schema.get("x-kubernetes-preserve-unknown-fields") and self.chance(0.6):
            made[self.rng.choice(("a", "u", "w"))] = self._anything(2)
        return made

    def _list(self, schema: Schema, depth: int) -> list[Any]:
        made = [self.value(schema["items"], depth - 1) for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3)))]
        if schema.get("x-kubernetes-list-type") in ("map", "set") and self.chance(0.95):
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            made = list({_identity(item, keys): item for item in made}.values())
        return made

    def part(self, value: Any, schema: Schema) -> Any:
        """Some of the fields of a value, whose lists by key keep the keys of items."""
        if isinstance(value, dict):
            must = {*(schema.get("required") or ()), *(schema.get("x-fixed") or ())}
            if schema.get("x-kubernetes-embedded-resource"):
                must |= {"apiVersion", "kind"}
            return {
                key: self.part(each, below(schema, key))
                for key, each in value.items()
                if key in must or self.chance(0.7)
            }
        if isinstance(value, list):
            items = schema.get("items") or {}
            return [self.part(each, items) for each in value if self.chance(0.7)]
        return value

    def changed(self, value: Any, schema: Schema) -> Any:
        """The value with a change in one place."""
        if isinstance(value, dict):
            return self._changed_object(value, schema)
        if isinstance(value, list) and value and schema.get("items") is not None:
            return self._changed_list(value, schema)
        return self.value(schema)

    def _changed_object(self, value: dict[str, Any], schema: Schema) -> Any:
        known = schema.get("properties") or {}
        fixed = schema.get("x-fixed") or {}
        options = [key for key in {**value, **known} if key not in fixed]
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict) or not known:
            options.append(self.rng.choice("abc"))
        if not options:
            return self.value(schema)
        key, out = self.rng.choice(sorted(options)), dict(value)
        if key in out and self.chance(0.2) and key not in (schema.get("required") or ()):
            del out[key]
        elif key in out and self.chance(0.8):
            out[key] = self.changed(out[key], below(schema, key))
        else:
            out[key] = self.value(below(schema, key))
        return out

    def _changed_list(self, value: list[Any], schema: Schema) -> list[Any]:
        draw, at = self.rng.random(), self.rng.randrange(len(value))
        if draw < 0.25:
            return [*value[:at], *value[at + 1 :]]
        if draw < 0.5:
            fresh = self.value(schema["items"])
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            if schema.get("x-kubernetes-list-type") in ("map", "set") and self.chance(0.9):
                return [each for each in value if _identity(each, keys) != _identity(fresh, keys)] + [fresh]
            return [*value, fresh]
        if draw < 0.65:
            return self.rng.sample(value, len(value))
        return [*value[:at], self.changed(value[at], schema["items"]), *value[at + 1 :]]


def below(schema: Schema, key: str) -> Schema:
    """The schema of a field; {} where none is known."""
    found = (schema.get("properties") or {}).get(key, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else {}


def _identity(item: Any, keys: Any) -> str:
    if isinstance(item, dict) and keys:
        return repr([item.get(key) for key in keys])
    return repr(item)
