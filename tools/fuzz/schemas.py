"""Structural schemas that use every keyword which CustomResourceDefinitions take."""

from __future__ import annotations

from random import Random
from typing import Any

from steersman.apimachinery.codec.json import decode, encode
from steersman.apimachinery.schema import compile_schema

from . import formats, objects, values

Schema = dict[str, Any]
NAMES = (
    "a",
    "b",
    "c",
    "d",
    "name",
    "key",
    "x-y",
    "a.b",
    "ünï",
    "items",
    "type",
    "kind",
    "metadata",
    "apiVersion",
    "0",
    "",
)
COMMON_NAMES = 7  # those of NAMES that are drawn mostly
BOUNDS = (0, 1, -1, 2, 5, 10, 100, 0.5, 1.5, -2.5, 2**31, 2**53 + 1, 2**63 - 1, 1e20, 0.1, 1e-7, 3.0, 1e21)
FACTORS = (1, 2, 3, 5, 0.5, 0.1, 0.01, 1.5, 2.5, 10, 1e-7, 1e20, 0.3, 100)
TYPES = ("string", "integer", "number", "boolean", "object", "array")


def _fits(schema: Schema, value: Any) -> bool:
    """Whether a value is valid, in itself and when defaults are filled in, and has no unknown fields."""
    text = f'{{"x": {values.write(value)}}}'.encode()
    try:
        pipeline = compile_schema(decode(values.write({"type": "object", "properties": {"x": schema}}).encode()))
        obj = decode(text)
        before = encode(obj)
        return not pipeline.prune(obj) and encode(obj) == before and not pipeline.validate(obj)
    except ValueError:
        return False


class SchemaMaker:
    """Draws schemas. What it makes is structural; a few defaults may not fit."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def root(self, *, with_status: bool, with_scale: bool) -> Schema:
        """The schema of a whole custom resource."""
        properties = {"spec": self.schema(3) if self.chance(0.3) else self._object(3)}
        if with_scale:
            properties["spec"] = self._object(2)
            properties["spec"].setdefault("properties", {})["replicas"] = {"type": "integer"}
            properties["spec"].pop("additionalProperties", None)
        if with_status or self.chance(0.2):
            properties["status"] = self.schema(2)
        for name in self.some(("data", "extra", "more"), 0.3):
            properties[name] = self.schema(2)
        if self.chance(0.15):
            properties["metadata"] = self._metadata()
        if self.chance(0.1):
            properties["kind"] = {"type": "string", **self.some_of({"maxLength": 3, "pattern": "^[A-Z]"})}
        if self.chance(0.1):
            properties["apiVersion"] = {
                "type": "string",
                **self.some_of({"minLength": 40, "enum": ["fuzz.example.com/v1"]}),
            }
        schema: Schema = {"type": "object", "properties": properties}
        if self.chance(0.1):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if self.chance(0.15):
            schema["required"] = self.some((*properties, "missing"), 0.4) or ["spec"]
        if self.chance(0.1) and not with_status:
            schema |= self._validations(schema, 1)
        return schema

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def some(self, options: tuple[str, ...], share: float) -> list[str]:
        return [each for each in options if self.chance(share)]

    def some_of(self, options: Schema, share: float = 0.5) -> Schema:
        return {key: each for key, each in options.items() if self.chance(share)}

    def schema(self, depth: int) -> Schema:
        """A schema of any kind; `depth` is how many levels may be below it."""
        kinds = [
            (self._string, 5),
            (self._integer, 3),
            (self._number, 3),
            (self._boolean, 1),
            (self._int_or_string, 1.2),
        ]
        kinds.append((self._untyped, 0.7))
        if depth > 0:
            below = [
                (self._object, 5),
                (self._map, 2.5),
                (self._list, 4),
                (self._map_list, 2),
                (self._set, 1.5),
                (self._embedded, 1),
            ]
            kinds += below
        makers = [maker for maker, _ in kinds]
        maker = self.rng.choices(makers, [weight for _, weight in kinds])[0]
        return self.dressed(maker(depth - 1), depth)

    def dressed(self, schema: Schema, depth: int) -> Schema:
        """The same schema with keywords that go with every type."""
        if self.chance(0.2):
            schema["nullable"] = True
        if self.chance(0.13):
            schema |= self._junctors(schema, depth)
        if self.chance(0.1):
            schema["enum"] = self._enum(schema)
        if self.chance(0.2):
            self._add_default(schema)
        if self.chance(0.03):
            schema |= {"description": "d", "title": "t", "example": {"a": 1}}
        return schema

    def _add_default(self, schema: Schema) -> None:
        """A default that this project thinks to fit, or (seldom) any."""
        for _ in range(6):
            value = objects.Shaper(self.rng).value(schema)
            if self.chance(0.005) or _fits(schema, value):
                schema["default"] = value
                return

    def _enum(self, schema: Schema) -> list[Any]:
        shaper = objects.Shaper(self.rng)
        allowed = [shaper.value(schema) for _ in range(self.rng.randint(1, 4))]
        return [*allowed, values.anything(self.rng, 1)] if self.chance(0.1) else allowed

    def _string(self, _: int) -> Schema:
        return {"type": "string", **self._string_rules()}

    def _string_rules(self) -> Schema:
        rules: Schema = {}
        if self.chance(0.35):
            rules["format"] = self.rng.choice(formats.STRING_FORMATS)
        if self.chance(0.25):
            rules["pattern"] = self.rng.choice(formats.PATTERNS)[0]
        return (
            rules
            | self.some_of({"maxLength": self.rng.choice((0, 1, 3, 5, 64))}, 0.25)
            | self.some_of({"minLength": self.rng.randint(0, 3)}, 0.2)
        )

    def _integer(self, _: int) -> Schema:
        rules = self._number_rules()
        return {
            "type": "integer",
            **rules,
            **self.some_of({"format": self.rng.choice(("int32", "int64", "double", "odd"))}, 0.4),
        }

    def _number(self, _: int) -> Schema:
        rules = self._number_rules()
        return {
            "type": "number",
            **rules,
            **self.some_of({"format": self.rng.choice(("float", "double", "int32", "odd"))}, 0.4),
        }

    def _number_rules(self) -> Schema:
        rules = self.some_of({"minimum": self.rng.choice(BOUNDS), "maximum": self.rng.choice(BOUNDS)}, 0.25)
        rules |= self.some_of({"exclusiveMinimum": True}, 0.3) if "minimum" in rules else {}
        rules |= self.some_of({"exclusiveMaximum": True}, 0.3) if "maximum" in rules else {}
        return rules | self.some_of({"multipleOf": self.rng.choice(FACTORS)}, 0.15)

    def _boolean(self, _: int) -> Schema:
        return {"type": "boolean"}

    def _int_or_string(self, _: int) -> Schema:
        schema: Schema = {"x-kubernetes-int-or-string": True}
        if self.chance(0.3):
            schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        if self.chance(0.3):
            schema["pattern"] = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        return (
            schema
            | self.some_of({"format": self.rng.choice(("int32", "byte", "ipv4"))}, 0.15)
            | self.some_of(self._number_rules(), 0.3)
        )

    def _untyped(self, _: int) -> Schema:
        schema: Schema = {"x-kubernetes-preserve-unknown-fields": True}
        if self.chance(0.3):
            schema["type"] = self.rng.choice(("object", "object", "array"))
            if schema["type"] == "array":
                schema["items"] = {"x-kubernetes-preserve-unknown-fields": True}
                del schema["x-kubernetes-preserve-unknown-fields"]
        return schema | (self.some_of(self._string_rules() | self._number_rules(), 0.2) if self.chance(0.2) else {})

    def _object(self, depth: int) -> Schema:
        schema: Schema = {"type": "object"}
        names = NAMES if self.chance(0.25) else NAMES[:COMMON_NAMES]
        drawn = self.rng.sample(names, self.rng.randint(0 if self.chance(0.1) else 1, min(5, len(names))))
        if drawn:
            schema["properties"] = {name: self._property(name, depth) for name in drawn}
        if self.chance(0.25):
            schema["required"] = self.some((*drawn, "gone"), 0.4) or [drawn[0] if drawn else "gone"]
        if self.chance(0.15):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if self.chance(0.1):
            schema["x-kubernetes-map-type"] = self.rng.choice(("atomic", "granular"))
        return schema | self.some_of(
            {"minProperties": self.rng.randint(0, 2), "maxProperties": self.rng.randint(1, 4)}, 0.08
        )

    def _property(self, name: str, depth: int) -> Schema:
        # of objects in objects only these may have such names without being what they are in whole objects
        return self.schema(depth)

    def _map(self, depth: int) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": True if self.chance(0.15) else self.schema(depth)}
        if self.chance(0.1):
            schema["x-kubernetes-map-type"] = self.rng.choice(("atomic", "granular"))
        return schema | self.some_of(
            {"minProperties": self.rng.randint(0, 2), "maxProperties": self.rng.randint(1, 4)}, 0.1
        )

    def _list(self, depth: int) -> Schema:
        schema: Schema = {"type": "array", "items": self.schema(depth)}
        if self.chance(0.2):
            schema["x-kubernetes-list-type"] = "atomic"
        return schema | self._list_rules()

    def _list_rules(self) -> Schema:
        return self.some_of({"minItems": self.rng.randint(0, 2), "maxItems": self.rng.randint(0, 4)}, 0.12)

    def _set(self, depth: int) -> Schema:
        makers = (self._string, self._integer, self._number, self._boolean, self._int_or_string)
        items = self.rng.choice(makers)(0)
        if depth > 0 and self.chance(0.2):
            items = {"type": "array", "items": self.schema(0), "x-kubernetes-list-type": "atomic"}
        elif depth > 0 and self.chance(0.2):
            items = self._object(0) | {"x-kubernetes-map-type": "atomic"}
        return {"type": "array", "items": items, "x-kubernetes-list-type": "set"} | self._list_rules()

    def _map_list(self, depth: int) -> Schema:
        item = self._object(depth)
        item.pop("additionalProperties", None)
        keys = self.rng.sample(("name", "key", "a"), self.rng.choice((1, 1, 2)))
        makers = (self._string, self._string, self._integer, self._boolean, self._number)
        for key in keys:
            rule = self.rng.choice(makers)(0) if self.chance(0.3) else {"type": self.rng.choice(("string", "integer"))}
            item.setdefault("properties", {})[key] = rule
            if len(keys) > 1 and self.chance(0.5):
                rule["default"] = objects.Shaper(self.rng).value(rule)
        item["required"] = sorted(
            {*item.get("required", ()), *(key for key in keys if "default" not in item["properties"][key])}
        )
        if not item["required"]:
            del item["required"]
        schema = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
        return schema | self._list_rules()

    def _embedded(self, depth: int) -> Schema:
        schema = self._object(depth) | {"x-kubernetes-embedded-resource": True}
        for name in ("apiVersion", "kind", "metadata"):
            schema.get("properties", {}).pop(name, None)
        if not schema.get("properties") or self.chance(0.3):
            schema.pop("properties", None)
            schema["x-kubernetes-preserve-unknown-fields"] = True
        elif self.chance(0.2):
            schema["properties"] |= self.some_of(
                {"metadata": self._metadata(), "kind": {"type": "string", "maxLength": 5}}
            )
        return schema

    def _metadata(self) -> Schema:
        schema: Schema = {"type": "object"}
        rules = self.some_of(
            {"name": {"type": "string", "maxLength": self.rng.randint(1, 8)}, "generateName": {"type": "string"}}
        )
        return schema | ({"properties": rules} if rules else {})

    def _junctors(self, schema: Schema, depth: int) -> Schema:
        found: Schema = {}
        for keyword in self.some(("allOf", "anyOf", "oneOf"), 0.4):
            found[keyword] = [self._validations(schema, depth) for _ in range(self.rng.randint(1, 3))]
        if self.chance(0.3) or not found:
            found["not"] = self._validations(schema, depth)
        if "anyOf" in schema:
            found.pop("anyOf", None)
        return found

    def _validations(self, schema: Schema, depth: int) -> Schema:
        """Rules without structure for values of a schema, as anyOf and its like have them."""
        kind = schema.get("type", self.rng.choice(("string", "integer")))
        if self.chance(0.06):
            kind = self.rng.choice(TYPES)
        rules: Schema = {}
        if kind == "string":
            rules = self._string_rules()
        elif kind in ("integer", "number"):
            rules = self._number_rules()
        elif kind == "object":
            rules = self._object_validations(schema, depth)
        elif kind == "array":
            rules = self._list_rules()
            if "items" in schema and depth > 0 and self.chance(0.4):
                rules["items"] = self._validations(schema["items"], depth - 1)
        if self.chance(0.15):
            rules["enum"] = [objects.Shaper(self.rng).value(schema) for _ in range(2)]
        if depth > 0 and self.chance(0.15):
            rules |= self._junctors(schema, depth - 1)
        return rules

    def _object_validations(self, schema: Schema, depth: int) -> Schema:
        rules = self.some_of({"minProperties": self.rng.randint(0, 3), "maxProperties": self.rng.randint(0, 3)}, 0.2)
        known = schema.get("properties") or {}
        names = tuple(known) or ("a",)
        if self.chance(0.5):
            rules["required"] = self.some((*names, "gone"), 0.4) or ["gone"]
        below = {
            name: self._validations(known[name], depth - 1)
            for name in known
            if depth > 0 and name != "metadata" and self.chance(0.4)
        }
        return rules | ({"properties": below} if below else {})
