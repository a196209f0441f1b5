"""Hypothesis strategies: structural schemas, and values that fit them or nearly do."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]
NAMES = ("a", "b", "c", "d")

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 2.5, 2**63])
    | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)


def _some(options: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


_flags = {"nullable": st.just(True)}
_texts = _some(
    {
        **_flags,
        "maxLength": st.integers(0, 2),
        "minLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$"]),
        "enum": st.just(["a", "b"]),
        "format": st.sampled_from(["date", "uri", "odd"]),
        "default": st.sampled_from(["a", "b"]),
    }
)
_numbers = {
    **_flags,
    "minimum": st.sampled_from([-1, 0, 0.5]),
    "maximum": st.sampled_from([1, 2, 2.5]),
    "exclusiveMinimum": st.booleans(),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "enum": st.just([0, 1]),
    "default": st.sampled_from([0, 1]),
}
_scalars = st.one_of(
    _texts.map(lambda rest: {"type": "string", **rest}),
    _some({**_numbers, "format": st.sampled_from(["int32", "int64"])}).map(lambda rest: {"type": "integer", **rest}),
    _some(_numbers).map(lambda rest: {"type": "number", **rest}),
    _some({**_flags, "default": st.booleans()}).map(lambda rest: {"type": "boolean", **rest}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
    st.sampled_from([{"minLength": 1}, {"enum": ["a"]}]).map(
        lambda one: {"type": "string", "oneOf": [one, {"maxLength": 1}]}
    ),
    st.just({"x-kubernetes-preserve-unknown-fields": True}),
)


_required = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(lambda names: {"required": names})
_presence = _required | st.lists(_required, min_size=1, max_size=2).flatmap(
    lambda schemas: st.sampled_from([{"anyOf": schemas}, {"oneOf": schemas}, {"not": schemas[0]}, {"allOf": schemas}])
)


def _containers(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    objects = _some(
        {
            **_flags,
            "properties": st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3),
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "minProperties": st.integers(0, 1),
            "x-kubernetes-preserve-unknown-fields": st.just(True),
            "not": _presence | st.just({"properties": {"a": {"enum": [0]}}}),
            "oneOf": st.lists(_presence, min_size=1, max_size=3),
            "anyOf": st.lists(_presence | st.just({"properties": {"a": {"minLength": 1}}}), min_size=1, max_size=2),
            "allOf": st.lists(_presence, min_size=1, max_size=2),
        }
    )
    maps = st.fixed_dictionaries(
        {"additionalProperties": inner | st.just(True)}, optional={"maxProperties": st.just(2)}
    )
    lists = st.fixed_dictionaries(
        {"items": inner},
        optional={"maxItems": st.just(2), "x-kubernetes-list-type": st.sampled_from(["atomic", "set"])},
    )
    return st.one_of(
        objects.map(lambda rest: {"type": "object", **rest}),
        maps.map(lambda rest: {"type": "object", **rest}),
        lists.map(lambda rest: {"type": "array", **rest}),
    )


schemas = st.recursive(_scalars, _containers, max_leaves=6)


def near(schema: Schema) -> st.SearchStrategy[Any]:
    """Values shaped like the schema, some of them wrong in places."""
    return st.one_of(shaped(schema), shaped(schema), json_values)


def shaped(schema: Schema) -> st.SearchStrategy[Any]:
    kind = schema.get("type")
    if kind == "object":
        return _shaped_object(schema)
    if kind == "array":
        return st.lists(near(schema["items"]), max_size=3)
    return {
        "string": st.sampled_from(["", "a", "b", "ab", "2024-02-29"]),
        "integer": st.integers(-2, 3),
        "number": st.integers(-2, 3) | st.sampled_from([0.5, 1.5]),
        "boolean": st.booleans(),
    }.get(kind or "", json_values)


def _shaped_object(schema: Schema) -> st.SearchStrategy[Any]:
    fields = {name: near(child) for name, child in schema.get("properties", {}).items()}
    extra = schema.get("additionalProperties")
    rest = near(extra) if isinstance(extra, dict) else json_values
    others = st.dictionaries(st.sampled_from(["x", "y"]), rest, max_size=1 if extra is None else 2)
    return st.builds(lambda known, more: {**more, **known}, st.fixed_dictionaries({}, optional=fields), others)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, dict[str, Any]]:
    """A root schema, and an object for it."""
    spec = draw(schemas)
    return {"type": "object", "properties": {"spec": spec}}, {"kind": "K", "metadata": {}, "spec": draw(near(spec))}
