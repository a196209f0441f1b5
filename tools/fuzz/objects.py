"""Objects for schemas: those that fit, and those that were changed here and there."""

from __future__ import annotations

from random import Random
from typing import Any

from . import formats, values
from .values import Doubled, Raw

Schema = dict[str, Any]
DEPTH = 8


class Shaper:
    """Draws values that fit a schema (as far as its structure and its simple rules go), and changes them."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def value(self, schema: Schema, depth: int = DEPTH) -> Any:
        """A value that a schema mostly takes."""
        if schema.get("enum") and self.chance(0.9):
            return self.rng.choice(schema["enum"])
        if schema.get("nullable") and self.chance(0.08):
            return None
        kind = schema.get("type")
        if kind is None and schema.get("x-kubernetes-int-or-string"):
            return (
                self.rng.choice(("50%", "1", "100m", 5, "1Gi", "a", "1.5"))
                if self.chance(0.6)
                else self._number(schema, whole=True)
            )
        makers = {
            "string": lambda: self._string(schema),
            "integer": lambda: self._number(schema, whole=True),
            "number": lambda: self._number(schema, whole=False),
            "boolean": lambda: self.chance(0.5),
            "object": lambda: self._object(schema, depth),
            "array": lambda: self._list(schema, depth),
        }
        return makers[kind]() if isinstance(kind, str) and kind in makers else values.anything(self.rng)

    def _string(self, schema: Schema) -> Any:
        if schema.get("format") and self.chance(0.9):
            return values.of_format(self.rng, str(schema["format"]))
        for pattern, about in formats.PATTERNS:
            if schema.get("pattern") == pattern and self.chance(0.9):
                return self.rng.choice(about[:1] if self.chance(0.5) else about)
        word = values.text(self.rng)
        if not isinstance(word, Raw) and self.chance(0.8):
            low, high = schema.get("minLength"), schema.get("maxLength")
            if isinstance(low, int):
                word = word.ljust(low, "a")
            if isinstance(high, int):
                word = word[: max(high, 0)]
        return word

    def _number(self, schema: Schema, *, whole: bool) -> Any:
        low, high, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
        given = [each for each in (low, high) if isinstance(each, (int, float)) and not isinstance(each, bool)]
        if isinstance(factor, (int, float)) and factor and self.chance(0.7):
            drawn: Any = factor * self.rng.randint(-3, 30)
        elif given and self.chance(0.7):
            drawn = self.rng.choice(given) + self.rng.choice((0, 0, 1, -1, 0.5, 1e-7))
        else:
            return values.number(self.rng, whole=whole and self.chance(0.97))
        if whole:
            return int(drawn)
        return Raw(str(int(drawn)) + ".0") if self.chance(0.1) else drawn

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        required = schema.get("required") or ()
        made: dict[str, Any] = {}
        if schema.get("x-kubernetes-embedded-resource") and self.chance(0.95):
            made |= {"apiVersion": "v1", "kind": "Thing", "metadata": self._metadata()}
        for name, child in (schema.get("properties") or {}).items():
            if depth > 0 and (name in required or self.chance(0.6)):
                made[name] = self.value(child, depth - 1)
        rest = schema.get("additionalProperties")
        if rest is not None and depth > 0:
            for _ in range(self.rng.randint(0, 3)):
                key = self.rng.choice(values.KEYS)
                made[key] = self.value(rest, depth - 1) if isinstance(rest, dict) else values.anything(self.rng)
        if schema.get("x-kubernetes-preserve-unknown-fields") and self.chance(0.5):
            made[self.rng.choice(values.KEYS)] = (
                values.nested(self.rng) if self.chance(0.05) else values.anything(self.rng)
            )
        return {
            **made,
            **{name: values.anything(self.rng, 1) for name in required if name not in made and self.chance(0.8)},
        }

    def _metadata(self) -> dict[str, Any]:
        options = {
            "name": self.rng.choice(("a", "A_b", "x.y", "", "a/b")),
            "labels": {"a": self.rng.choice(("b", "", "x y", "-"))},
            "annotations": {"a/b": "c", self.rng.choice(("ok", "Bad Key", "a/b/c")): "d"},
            "namespace": self.rng.choice(("default", "No_pe")),
            "creationTimestamp": self.rng.choice((None, "2024-01-01T00:00:00Z", "nope")),
            "strange": 1,
            "finalizers": [self.rng.choice(("a", "a/b", "?"))],
        }
        return {key: each for key, each in options.items() if self.chance(0.15)}

    def _list(self, schema: Schema, depth: int) -> list[Any]:
        items = schema.get("items")
        if not isinstance(items, dict) or depth <= 0:
            return []
        low, high = schema.get("minItems") or 0, schema.get("maxItems")
        size = max(low, self.rng.randint(0, 3)) if isinstance(low, int) else 1
        if isinstance(high, int) and self.chance(0.9):
            size = min(size, max(high, 0))
        made = [self.value(items, depth - 1) for _ in range(size)]
        if schema.get("x-kubernetes-list-type") == "map" and self.chance(0.8):
            for place, item in enumerate(made):
                for key in schema.get("x-kubernetes-list-map-keys") or ():
                    rule = (items.get("properties") or {}).get(key) or {}
                    if isinstance(item, dict) and key in item and rule.get("type") == "string" and "enum" not in rule:
                        item[key] = f"{item[key]}{place}"
        return made

    def mutated(self, value: Any, schema: Schema | None, times: int = 1) -> Any:
        """The value, changed somewhere; what is given may be changed too."""
        for _ in range(times):
            value = self._mutate(value, schema)
        return value

    def _mutate(self, value: Any, schema: Schema | None) -> Any:
        if isinstance(value, dict) and value and self.chance(0.75):
            key = self.rng.choice(list(value))
            value = dict(value)
            value[key] = self._mutate(value[key], _below(schema, key))
            return value
        if isinstance(value, list) and value and self.chance(0.65):
            at = self.rng.randrange(len(value))
            items = (schema or {}).get("items")
            return [*value[:at], self._mutate(value[at], items if isinstance(items, dict) else None), *value[at + 1 :]]
        return self._changed(value, schema)

    def _changed(self, value: Any, schema: Schema | None) -> Any:
        draw = self.rng.random()
        if draw < 0.12:
            return None
        if isinstance(value, dict) and draw < 0.75:
            return self._changed_object(value, schema)
        if isinstance(value, list) and draw < 0.75:
            return self._changed_list(value)
        if isinstance(value, str) and not isinstance(value, Raw) and draw < 0.4:
            return values.near(self.rng, value)
        if isinstance(value, (int, float)) and draw < 0.4:
            return value + self.rng.choice((1, -1, 0.5, 1e-10, 2**31, 2**63))
        if schema is not None and draw < 0.5:
            return self.value(schema)
        return values.number(self.rng) if draw < 0.6 else values.anything(self.rng)

    def _changed_object(self, value: dict[str, Any], schema: Schema | None) -> Any:
        value, draw = dict(value), self.rng.random()
        if value and draw < 0.3:
            del value[self.rng.choice(list(value))]
        elif value and draw < 0.4:
            key = self.rng.choice(list(value))
            return Doubled(value, {key: values.anything(self.rng, 1)})
        elif schema and schema.get("properties") and draw < 0.6:
            name = self.rng.choice(list(schema["properties"]))
            value[name] = None if self.chance(0.3) else self.value(schema["properties"][name])
        else:
            value[self.rng.choice(values.KEYS)] = values.anything(self.rng, 1)
        return value

    def _changed_list(self, value: list[Any]) -> list[Any]:
        draw = self.rng.random()
        if value and draw < 0.5:
            return [*value, self.rng.choice(value)]
        if value and draw < 0.65:
            return value[1:]
        return [*value, None if draw < 0.8 else values.anything(self.rng, 1)]


def _below(schema: Schema | None, key: str) -> Schema | None:
    if schema is None:
        return None
    known = (schema.get("properties") or {}).get(key, schema.get("additionalProperties"))
    return known if isinstance(known, dict) else None
