"""Pruning: what the schema does not know goes, what it keeps stays, and every unknown path is told."""

from typing import Any

import pytest

from steersman.apimachinery.schema import SchemaDecodeError, compile_schema

OBJECT = {"type": "object"}
TEXT = {"type": "string"}


def widget(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "x.example/v1", "kind": "Widget", "metadata": {"name": "a", "odd": 1}, **fields}


def in_spec(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def test_unknown_fields_go_and_are_told_in_sorted_order() -> None:
    item = {"type": "object", "properties": {"x": TEXT}}
    pipeline = compile_schema(in_spec(a=TEXT, l={"type": "array", "items": item}))
    obj = widget(zebra=1, spec={"a": "x", "l": [{"x": "1"}, {"x": "2", "y": 3}], "gone": {"deep": 1}})
    assert pipeline.prune(obj) == ["spec.gone", "spec.l[1].y", "zebra"]
    assert obj == widget(spec={"a": "x", "l": [{"x": "1"}, {"x": "2"}]})


@pytest.mark.parametrize(
    ("schema", "given", "kept"),
    [
        (OBJECT, {"a": 1}, {}),
        ({"type": "object", "additionalProperties": True}, {"a": {"b": 1}, "c": 2}, {"a": {}, "c": 2}),
        ({"type": "object", "additionalProperties": False}, {"a": {"b": 1}, "c": 2}, {"a": {}, "c": 2}),
        ({"type": "object", "additionalProperties": TEXT}, {"a": {"b": 1}}, {"a": {}}),
        ({"type": "array", "items": OBJECT}, [{"a": 1}, [{"b": 1}]], [{}, [{}]]),
        ({"type": "string"}, {"not": "a string"}, {}),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"a": {"b": [{"c": None}]}}, {"a": {"b": [{"c": None}]}}),
        (
            {"x-kubernetes-preserve-unknown-fields": True, "properties": {"p": {"type": "object"}}},
            {"p": {"gone": 1}, "free": {"kept": 1}},
            {"p": {}, "free": {"kept": 1}},
        ),
        (
            {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {"properties": {"p": OBJECT}}},
            [{"p": {"gone": 1}, "free": 1}],
            [{"p": {}, "free": 1}],
        ),
    ],
)
def test_what_is_kept(schema: dict[str, Any], given: Any, kept: Any) -> None:
    obj = widget(spec={"f": given})
    compile_schema(in_spec(f=schema)).prune(obj)
    assert obj["spec"]["f"] == kept


def test_optional_nulls_go_unless_nullable_or_defaulted() -> None:
    nullable = {"type": "string", "nullable": True}
    pipeline = compile_schema(in_spec(a=TEXT, n=nullable, d={"type": "string", "default": "x"}, o=OBJECT))
    obj = widget(spec={"a": None, "n": None, "d": None, "o": None})
    assert pipeline.prune(obj) == []
    assert obj["spec"] == {"n": None, "d": None}
    pipeline.default(obj)
    assert obj["spec"] == {"n": None, "d": "x"}


def test_nulls_in_lists_stay() -> None:
    obj = widget(spec={"l": [None]})
    compile_schema(in_spec(l={"type": "array", "items": TEXT})).prune(obj)
    assert obj["spec"] == {"l": [None]}


def test_preserve_unknown_fields_of_the_crd_prunes_nothing() -> None:
    obj = widget(spec={"odd": 1, "a": None})
    assert compile_schema(in_spec(a=TEXT), preserve_unknown_fields=True).prune(obj) == []
    assert obj == widget(spec={"odd": 1, "a": None})


def test_no_schema_keeps_everything() -> None:
    pipeline = compile_schema(None)
    obj = widget(anything={"at": [None, {"all": 1}]})
    assert pipeline.prune(obj) == []
    assert pipeline.validate(obj) == []
    assert obj == widget(anything={"at": [None, {"all": 1}]})


EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "properties": {"spec": {"type": "object", "properties": {"x": TEXT}}},
}


def test_embedded_resources_keep_their_identity_and_lose_unknown_metadata() -> None:
    pipeline = compile_schema(in_spec(tpl=EMBEDDED))
    inner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "n", "labels": {}, "strange": 1, "creationTimestamp": None},
        "spec": {"x": "x", "y": 1},
        "odd": 1,
    }
    obj = widget(spec={"tpl": inner})
    assert pipeline.prune(obj) == ["spec.tpl.odd", "spec.tpl.spec.y", "spec.tpl.metadata.strange"]
    assert obj["spec"]["tpl"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}, "spec": {"x": "x"}}


def test_malformed_embedded_metadata_is_refused_or_dropped_from_storage() -> None:
    pipeline = compile_schema(in_spec(tpl=EMBEDDED))
    bad = {"apiVersion": "v1", "kind": 5, "metadata": {"name": "n", "labels": "x"}}
    with pytest.raises(SchemaDecodeError, match=r"spec\.tpl\.kind: Invalid value: 5: must be a string"):
        pipeline.prune(widget(spec={"tpl": dict(bad)}))
    obj = widget(spec={"tpl": dict(bad)})
    pipeline.prune(obj, lenient=True)
    assert obj["spec"]["tpl"] == {"apiVersion": "v1", "metadata": {"name": "n"}}
    with pytest.raises(SchemaDecodeError, match=r"spec\.tpl\.metadata: .*ObjectMeta\.labels of type map"):
        pipeline.prune(widget(spec={"tpl": {**bad, "kind": "Pod"}}))
