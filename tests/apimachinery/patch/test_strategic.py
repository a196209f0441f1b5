from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.errors import ApiError, BadRequest, Invalid
from steersman.apimachinery.patch import strategic
from steersman.apimachinery.patch.strategic import PatchSchema

TEXT: dict[str, Any] = {"type": "string"}


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def merged(items: dict[str, Any], key: str = "") -> dict[str, Any]:
    out = {"type": "array", "items": items, "x-kubernetes-patch-strategy": "merge"}
    return {**out, "x-kubernetes-patch-merge-key": key} if key else out


SCHEMAS: dict[str, Any] = {
    "Var": struct(name=TEXT, value=TEXT),
    "Box": struct(name=TEXT, image=TEXT, vars=merged({"$ref": "#/components/schemas/Var"}, "name")),
    "Kind": struct(
        data={"type": "object", "additionalProperties": TEXT},
        tags=merged(TEXT),
        atomic={"type": "array", "items": TEXT},
        boxes=merged({"$ref": "#/components/schemas/Box"}, "name"),
        keyless=merged({"$ref": "#/components/schemas/Var"}),
        grid=merged({"type": "array", "items": TEXT}),
        way={"allOf": [{"$ref": "#/components/schemas/Var"}], "x-kubernetes-patch-strategy": "retainKeys"},
        fixed={"allOf": [{"$ref": "#/components/schemas/Var"}], "x-kubernetes-patch-strategy": "replace"},
        inner={"allOf": [{"$ref": "#/components/schemas/Box"}]},
    ),
}
SCHEMA = PatchSchema(SCHEMAS, SCHEMAS["Kind"], "Kind")


def apply(document: Any, patch: Any) -> Any:
    before = copy.deepcopy((document, patch))
    try:
        return strategic.apply(document, patch, SCHEMA)
    finally:
        assert (document, patch) == before


def boxes(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"data": {"k": "1", "j": "2"}}, {"data": {"j": None, "n": "3"}}, {"data": {"k": "1", "n": "3"}}),
        ({"data": {"k": "1"}}, {"data": {"$patch": "replace", "x": "y"}}, {"data": {"x": "y"}}),
        ({"data": {"k": "1"}}, {"data": {"$patch": "delete"}}, {"data": {}}),
        ({}, {"data": {"$patch": "replace", "x": "y"}}, {}),
        ({}, {"data": {"k": None, "n": "1"}}, {"data": {"n": "1"}}),
        ({"data": {"k": "1"}}, None, {"data": {"k": "1"}}),
        ({"atomic": ["a", "b"]}, {"atomic": ["c"]}, {"atomic": ["c"]}),
        ({"fixed": {"name": "a", "value": "1"}}, {"fixed": {"name": "b"}}, {"fixed": {"name": "b"}}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, {"tags": ["a", "b", "c"]}),
        ({"tags": ["a", "b"]}, {"tags": ["c", "d"]}, {"tags": ["c", "d", "a", "b"]}),
        ({"tags": ["a", "b", "c"]}, {"$deleteFromPrimitiveList/tags": ["a", "c"]}, {"tags": ["b"]}),
        ({"tags": ["a"]}, {"$deleteFromPrimitiveList/tags": None}, {}),
        ({}, {"$deleteFromPrimitiveList/tags": ["a"]}, {}),
        ({"tags": ["a", "b"]}, {"$setElementOrder/tags": ["b", "a"]}, {"tags": ["b", "a"]}),
        ({"tags": []}, {"tags": []}, {"tags": []}),
        (
            {"boxes": [{"name": "a", "image": "1"}]},
            {"boxes": [{"name": "a", "vars": [{"name": "v", "value": "x"}]}]},
            {"boxes": [{"name": "a", "image": "1", "vars": [{"name": "v", "value": "x"}]}]},
        ),
        ({"boxes": boxes("a")}, {"boxes": boxes("n1", "n2")}, {"boxes": boxes("n1", "n2", "a")}),
        ({"boxes": boxes("a", "b")}, {"boxes": [{"name": "a", "$patch": "delete"}]}, {"boxes": boxes("b")}),
        ({"boxes": boxes("a")}, {"boxes": [{"$patch": "replace"}, {"name": "c"}]}, {"boxes": boxes("c")}),
        ({}, {"boxes": [{"name": "a", "$patch": "delete"}, {"name": "b"}]}, {"boxes": boxes("b")}),
        ({"boxes": boxes("a", "b")}, {"$setElementOrder/boxes": boxes("b", "a")}, {"boxes": boxes("b", "a")}),
        (
            {"boxes": boxes("a", "b")},
            {"$setElementOrder/boxes": boxes("c", "a"), "boxes": boxes("c")},
            {"boxes": boxes("c", "a", "b")},
        ),
        (
            {"boxes": boxes("a", "b")},
            {"$setElementOrder/boxes": boxes("c", "a"), "boxes": [{"name": "a", "$patch": "delete"}, {"name": "c"}]},
            {"boxes": boxes("b", "c")},
        ),
        ({}, {"$setElementOrder/boxes": boxes("a")}, {}),
        ({}, {"$setElementOrder/boxes": boxes("a"), "boxes": boxes("a")}, {"boxes": boxes("a")}),
        (
            {"way": {"name": "a", "value": "1"}},
            {"way": {"$retainKeys": ["name"], "name": "b"}},
            {"way": {"name": "b"}},
        ),
        ({"inner": {"name": "a"}}, {"inner": {"image": "i"}}, {"inner": {"name": "a", "image": "i"}}),
        ({"data": {"k": "1"}}, {"data": "text"}, {"data": "text"}),
    ],
)
def test_apply(document: Any, patch: Any, result: Any) -> None:
    assert apply(document, patch) == result


@pytest.mark.parametrize(
    ("patch", "kind", "message"),
    [
        ([], BadRequest, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ({"data": {"$patch": "explode"}}, ApiError, "unknown patch type: explode in map: map[$patch:explode]"),
        ({"boxes": [{"image": "x"}]}, ApiError, "map: map[image:x] does not contain declared merge key: name"),
        (
            {"boxes": [{"$patch": "delete"}]},
            ApiError,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        ({"boxes": [{"name": "a", "$patch": "merge"}]}, ApiError, "merging lists cannot yet be specified in the patch"),
        ({"boxes": [{"name": "a", "$patch": "x"}]}, ApiError, "unknown patch type: x in map: map[$patch:x name:a]"),
        ({"boxes": ["a"]}, ApiError, "list element types are not identical: [[map[name:a]] [a]]"),
        ({"boxes": [[]]}, ApiError, "list element types are not identical: [[map[name:a]] [[]]]"),
        ({"keyless": [{"name": "b"}]}, ApiError, "cannot merge lists without merge key for struct"),
        ({"grid": [["x"]]}, Invalid, "the server rejected our request due to an error in our request"),
        ({"way": {"$retainKeys": "name"}}, BadRequest, "invalid patch format of retainKeys"),
        ({"way": {"$retainKeys": ["value"], "name": "b"}}, BadRequest, "invalid patch format of retainKeys"),
        ({"$deleteFromPrimitiveList": ["a"]}, BadRequest, "invalid patch format of primitive list"),
        ({"$setElementOrderX/a": ["a"]}, BadRequest, "invalid patch format of setElementOrder list"),
        ({"$setElementOrder/tags": "a"}, ApiError, "expected a []interface {}, but received a string"),
        ({"$setElementOrder/tags": None}, ApiError, "expected a []interface {}, but received a %!s(<nil>)"),
        (
            {"$setElementOrder/boxes": [{"name": "a"}], "boxes": [{"name": "b", "image": "x"}]},
            ApiError,
            "The order in patch list:\n[map[image:x name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        (
            {"$setElementOrder/none": ["a"]},
            ApiError,
            'unable to find api field in struct Kind for the json field "none"',
        ),
    ],
)
def test_errors(patch: Any, kind: type[ApiError], message: str) -> None:
    document = {
        "data": {"k": "1"},
        "boxes": boxes("a"),
        "tags": ["a"],
        "keyless": [{"name": "a"}],
        "grid": [["a"]],
        "way": {"name": "a"},
    }
    with pytest.raises(ApiError) as caught:
        apply(document, patch)
    assert type(caught.value) is kind
    assert caught.value.message == message


def test_what_is_untouched_is_shared() -> None:
    document = {"data": {"k": "1"}, "boxes": [{"name": "a"}, {"name": "b", "vars": [{"name": "v"}]}]}
    result = apply(document, {"boxes": [{"name": "a", "image": "x"}]})
    assert result["data"] is document["data"]
    assert result["boxes"][1] is document["boxes"][1]


names = st.sampled_from("abcd")
items = st.lists(names, unique=True).map(lambda chosen: boxes(*chosen))
documents = st.fixed_dictionaries(
    {}, optional={"data": st.dictionaries(names, names), "tags": st.lists(names, unique=True), "boxes": items}
)


@given(documents, documents)
def test_a_patch_without_directives_adds_and_is_idempotent(document: Any, patch: Any) -> None:
    result = apply(document, patch)
    for key in ("tags", "boxes"):
        values = [str(item) for item in result.get(key, [])]
        expected = {str(item) for source in (document, patch) for item in source.get(key, [])}
        assert (set(values), len(values)) == (expected, len(expected))
        order = [value for value in values if value in {str(item) for item in patch.get(key, [])}]
        assert order == [str(item) for item in patch.get(key, [])]
    assert result.get("data", {}) == {**document.get("data", {}), **patch.get("data", {})}
    assert apply(result, patch) == result
