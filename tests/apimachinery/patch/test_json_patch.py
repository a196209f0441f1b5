from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.codec.json import pairs
from steersman.apimachinery.errors import BadRequest, Invalid, RequestEntityTooLarge
from steersman.apimachinery.patch import json_patch

DOCUMENT: dict[str, Any] = {"a": {"x": 1, "y/z": 2, "~": 3}, "l": [1, 2, 3], "n": None, "o": [{"k": 1}, {"k": 2}]}


def op(kind: str, path: str, value: Any = ..., source: str | None = None) -> dict[str, Any]:
    out: dict[str, Any] = {"op": kind, "path": path}
    if value is not ...:
        out["value"] = value
    if source is not None:
        out["from"] = source
    return out


@pytest.mark.parametrize(
    ("operations", "changes"),
    [
        ([], {}),
        ([op("add", "/b", {"c": 1})], {"b": {"c": 1}}),
        ([op("add", "/l/-", 4)], {"l": [1, 2, 3, 4]}),
        ([op("add", "/l/0", 0)], {"l": [0, 1, 2, 3]}),
        ([op("add", "/l/3", 4)], {"l": [1, 2, 3, 4]}),
        ([op("add", "/l/-1", 4)], {"l": [1, 2, 3, 4]}),
        ([op("add", "/l/-2", 4)], {"l": [1, 2, 4, 3]}),
        ([op("add", "/b")], {"b": None}),
        ([op("remove", "/l/-1")], {"l": [1, 2]}),
        ([op("remove", "/a/y~1z"), op("remove", "/a/~0")], {"a": {"x": 1}}),
        ([op("replace", "/a/x", 5)], {"a": {"x": 5, "y/z": 2, "~": 3}}),
        ([op("replace", "/b", 5)], {"b": 5}),
        ([op("replace", "/l/1", 9)], {"l": [1, 9, 3]}),
        ([op("replace", "/o/1/k", 9)], {"o": [{"k": 1}, {"k": 9}]}),
        ([op("move", "/b", source="/a/x")], {"a": {"y/z": 2, "~": 3}, "b": 1}),
        ([op("move", "/l/0", source="/l/2")], {"l": [3, 1, 2]}),
        ([op("copy", "/b", source="/o/0"), op("replace", "/b/k", 7)], {"b": {"k": 7}}),
        ([op("copy", "/b", source="/o/0"), op("replace", "/o/0/k", 7)], {"b": {"k": 1}, "o": [{"k": 7}, {"k": 2}]}),
        ([op("copy", "/b", source="/none")], {"b": None}),
        ([op("test", "/a/x", 1), op("test", "/none", None), op("test", "/n", None), op("test", "/none")], {}),
        ([op("test", "/l", [1, 2, 3]), op("test", "/o/0", {"k": 1})], {}),
        ([op("test", "", DOCUMENT)], {}),
        ([op("add", "ignored/b", 1)], {"b": 1}),
    ],
)
def test_apply(operations: Any, changes: Any) -> None:
    before = copy.deepcopy((DOCUMENT, operations))
    assert json_patch.apply(DOCUMENT, operations) == {**DOCUMENT, **changes}
    assert (DOCUMENT, operations) == before


def test_the_whole_document_can_be_replaced() -> None:
    assert json_patch.apply(DOCUMENT, [op("replace", "", {"q": 1}), op("add", "/r", 2)]) == {"q": 1, "r": 2}


def test_no_operations() -> None:
    assert json_patch.apply(DOCUMENT, None) is DOCUMENT


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (op("test", "/a/x", 2), "testing value /a/x failed: test failed"),
        (op("test", "/a/x", True), "testing value /a/x failed: test failed"),
        (op("test", "/a/x", 1.0), "testing value /a/x failed: test failed"),
        (op("test", "/a/x", None), "testing value /a/x failed: test failed"),
        (op("test", "/none", 1), "testing value /none failed: test failed"),
        (op("test", "", {}), "testing value  failed: test failed"),
        (op("test", "/none/x", 1), "test operation does not apply: is missing path: /none/x: missing value"),
        (
            op("test", "/l/9", 1),
            "error in test for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (op("test", "/l/-", 1), "error in test for path: '/l/-': strconv.Atoi: parsing \"-\": invalid syntax"),
        (op("remove", "/b"), "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value"),
        (op("remove", "/b/c"), 'remove operation does not apply: doc is missing path: "/b/c": missing value'),
        (
            op("remove", "/l/3"),
            "error in remove for path: '/l/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (op("add", "/b/c", 1), 'add operation does not apply: doc is missing path: "/b/c": missing value'),
        (op("add", "/n/c", 1), 'add operation does not apply: doc is missing path: "/n/c": missing value'),
        (op("add", "", {}), 'add operation does not apply: doc is missing path: "": missing value'),
        (
            op("add", "/l/x", 1),
            "error in add for path: '/l/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            op("add", "/l/99999999999999999999", 1),
            "error in add for path: '/l/99999999999999999999': value was not a proper array index: "
            "'99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        ),
        (
            op("add", "/l/-5", 1),
            "error in add for path: '/l/-5': Unable to access invalid index: -5: invalid index referenced",
        ),
        (op("replace", "/b/c", 1), "replace operation does not apply: doc is missing path: /b/c: missing value"),
        (op("replace", "/l/3", 1), "replace operation does not apply: doc is missing key: /l/3: missing value"),
        (op("replace", "", 1), "replace operation value must be object or array: %!w(<nil>)"),
        (
            op("move", "/c", source="/b"),
            "error in move for path: 'b': Unable to remove nonexistent key: b: missing value",
        ),
        (
            op("move", "/c", source="/b/d"),
            "move operation does not apply: doc is missing from path: /b/d: missing value",
        ),
        (
            op("move", "/c/d", source="/a"),
            "move operation does not apply: doc is missing destination path: /c/d: missing value",
        ),
        (op("move", "/c"), "move operation failed to decode from: operation, missing from field: missing value"),
        (
            op("copy", "/c", source="/b/d"),
            "copy operation does not apply: doc is missing from path: /b/d: missing value",
        ),
        (op("merge", "/a"), "Unexpected kind: merge"),
        ({}, "Unexpected kind: unknown"),
        (None, "Unexpected kind: unknown"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
    ],
)
def test_operations_that_fail(operation: Any, reason: str) -> None:
    before = copy.deepcopy(DOCUMENT)
    with pytest.raises(Invalid) as caught:
        json_patch.apply(DOCUMENT, [op("add", "/kept", 1), operation])
    assert str(caught.value.__cause__) == reason
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }
    assert before == DOCUMENT


@pytest.mark.parametrize(
    ("patch", "what"),
    [
        ({}, "object into Go value of type []handlers.jsonPatchOp"),
        (5, "number into Go value of type []handlers.jsonPatchOp"),
        (["x"], "string into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5}], "number into Go struct field jsonPatchOp.op of type string"),
        ([{"op": "add", "path": []}], "array into Go struct field jsonPatchOp.path of type string"),
    ],
)
def test_patches_that_cannot_be_decoded(patch: Any, what: str) -> None:
    with pytest.raises(BadRequest) as caught:
        json_patch.apply(DOCUMENT, patch)
    assert caught.value.message == f"error decoding patch: json: cannot unmarshal {what}"


def test_too_many_operations() -> None:
    operations = [op("test", "/none", None)] * 10_000
    assert json_patch.apply(DOCUMENT, operations) == DOCUMENT
    with pytest.raises(RequestEntityTooLarge) as caught:
        json_patch.apply(DOCUMENT, [*operations, operations[0]])
    assert caught.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_copies_may_not_grow_without_bound() -> None:
    copies = [op("copy", "/l/-", source="/text")] * 3
    document = {"text": "x" * (1024 * 1024 - 2), "l": []}
    assert len(json_patch.apply(document, copies)["l"]) == 3
    with pytest.raises(Invalid) as caught:
        json_patch.apply({**document, "text": document["text"] + "<"}, copies)
    assert str(caught.value.__cause__).endswith("copy is 3145746, exceeding the limit 3145728")


def test_what_strict_decoding_has_against_a_patch() -> None:
    raw = b'[{"op":"test","path":"/none"},{"op":"test","Op":1,"note":"x","value":{"a":1,"a":2},"op":"add"}]'
    assert json_patch.problems(pairs(raw)) == [
        'json patch unknown field "[1].Op"',
        'json patch unknown field "[1].note"',
        'json patch duplicate field "[1].value.a"',
        'json patch duplicate field "[1].op"',
    ]


def test_what_is_untouched_is_shared() -> None:
    result = json_patch.apply(DOCUMENT, [op("replace", "/o/0/k", 9), op("test", "/a/x", 1)])
    assert result["a"] is DOCUMENT["a"]
    assert result["o"][1] is DOCUMENT["o"][1]


leaves = st.integers(0, 3) | st.none() | st.sampled_from(["x", True])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=3),
    max_leaves=8,
)
pointers = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "-1"]), max_size=3).map(
    lambda p: "".join("/" + x for x in p)
)
operations = st.builds(
    lambda kind, path, source, value: {"op": kind, "path": path, "from": source, "value": value},
    st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
    pointers,
    pointers,
    values,
)


@given(st.dictionaries(st.sampled_from("ab"), values), st.lists(operations, max_size=6))
def test_neither_argument_is_changed(document: Any, patch: Any) -> None:
    before = copy.deepcopy((document, patch))
    try:
        whole = json_patch.apply(document, patch)
    except Invalid:
        whole = None
    assert (document, patch) == before
    if whole is None:
        return
    step: Any = document
    for operation in patch:
        step = json_patch.apply(copy.deepcopy(step), [copy.deepcopy(operation)])
    assert step == whole
