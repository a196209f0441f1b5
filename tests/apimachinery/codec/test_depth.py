"""How deep values may nest, and what is read although it is no proper JSON."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import yaml
from steersman.apimachinery.errors import Invalid
from steersman.apimachinery.patch import json_patch


def nested(depth: int, opening: bytes, closing: bytes) -> bytes:
    return opening * depth + b"1" + closing * depth


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_json_nests_to_a_limit(opening: bytes, closing: bytes) -> None:
    assert codec.encode(codec.decode(nested(codec.MAX_DEPTH, opening, closing)))
    for depth in (codec.MAX_DEPTH + 1, 1000, 5000, 100_000):
        with pytest.raises(codec.JsonError, match=r"^exceeded max depth$"):
            codec.decode(nested(depth, opening, closing))


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b"{a: ", b"}"), (b"- ", b"")])
def test_yaml_nests_to_a_limit(opening: bytes, closing: bytes) -> None:
    assert yaml.decode(nested(codec.MAX_DEPTH, opening, closing))
    for depth in (codec.MAX_DEPTH + 1, 20_000):
        with pytest.raises(yaml.YamlError):
            yaml.decode(nested(depth, opening, closing))


def test_no_json_patch_nests_deeper() -> None:
    deep: Any = codec.decode(nested(codec.MAX_DEPTH - 1, b'{"a":', b"}"))
    path = "/a" * 100 + "/b"
    with pytest.raises(Invalid):
        json_patch.apply(deep, [{"op": "add", "path": path, "value": deep}])


def test_a_copy_into_itself_is_a_copy() -> None:
    patch = [{"op": "add", "path": "/data", "value": {"a": 1}}, {"op": "copy", "from": "/data", "path": "/data/b"}]
    assert json_patch.apply({}, patch) == {"data": {"a": 1, "b": {"a": 1}}}
    with pytest.raises(Invalid):
        json_patch.apply({}, patch + [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(60)])


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"\xff\xfe"}', {"a": "\ufffd\ufffd"}),
        (b'["\\ud800"]', ["\ufffd"]),
        (b'["\\ud83d\\ude00\\udc00"]', ["\U0001f600\ufffd"]),
        (b'{"\xff":1,"b":99999999999999999999999,"c":1.5}', {"\ufffd": 1, "b": 1e23, "c": 1.5}),
    ],
)
def test_what_is_no_unicode_is_replaced(raw: bytes, value: object) -> None:
    assert codec.decode(raw) == value


@pytest.mark.parametrize("raw", [b"[1e400]", b'["\xff",1e400]', b"[" + b"9" * 5000 + b"]"])
def test_numbers_that_no_float_holds(raw: bytes) -> None:
    with pytest.raises(codec.JsonError, match="cannot unmarshal number"):
        codec.decode(raw)


def test_numbers_of_yaml() -> None:
    assert yaml.decode(b"[99999999999999999999999, 18446744073709551615]") == [1e23, 2.0**64]
    assert yaml.decode(b"big: " + b"9" * 5000) == {"big": "9" * 5000}
    assert yaml.decode(b"a: !!binary aGVsbG8=") == {"a": "hello"}
