import base64

import pytest

FIXED = "Forbidden: field is immutable when `immutable` is set"


@pytest.fixture
def config_maps(lifecycle):
    return lifecycle("", "ConfigMap")


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, []),
        ({"data": {".a": "", "B_c-d.txt": "x"}, "binaryData": {"e": "AAE="}}, []),
        ({"data": {"..": "v"}}, ["data[..]: Invalid value: \"..\": must not be '..'"]),
        (
            {"data": {"k": "v"}, "binaryData": {"k": "AAE="}},
            ['data[k]: Invalid value: "k": duplicate of key present in binaryData'],
        ),
        ({"data": {"k": "v" * (1 << 20)}}, []),
        ({"data": {"k": "v" * (1 << 20), "l": "w"}}, ["[]: Too long: may not be more than 1048576 bytes"]),
        ({"binaryData": {"k": base64.b64encode(bytes(1 << 20)).decode()}}, []),
        (
            {"binaryData": {"k": base64.b64encode(bytes((1 << 20) + 1)).decode()}},
            ["[]: Too long: may not be more than 1048576 bytes"],
        ),
    ],
)
def test_create(config_maps, body, errors):
    assert config_maps.create(**body)[1] == errors


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({"immutable": True, "data": {"k": "1"}}, []),
        ({"immutable": True, "data": {"k": "1"}, "metadata": {"labels": {"l": "1"}}}, []),
        ({"immutable": True, "data": {"k": "2"}}, [f"data: {FIXED}"]),
        ({"immutable": True, "data": {"k": "1"}, "binaryData": {"b": "AAE="}}, [f"binaryData: {FIXED}"]),
        ({"data": {"k": "1"}}, [f"immutable: {FIXED}"]),
        ({"immutable": False}, [f"immutable: {FIXED}", f"data: {FIXED}"]),
    ],
)
def test_immutable(config_maps, change, errors):
    old, _ = config_maps.create(immutable=True, data={"k": "1"})
    assert config_maps.update(old, **change)[1] == errors


def test_marking_may_come_with_a_last_change(config_maps):
    old, _ = config_maps.create(data={"k": "1"})
    new, errors = config_maps.update(old, immutable=True, data={"k": "2"})
    assert (new["data"], errors) == ({"k": "2"}, [])
