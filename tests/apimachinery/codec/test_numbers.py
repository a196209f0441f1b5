"""Numbers as Go has them in JSON: which are floats, and how floats are written."""

from __future__ import annotations

import pytest

from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import spelled


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"[1]", 1),
        (b"[-0]", 0),
        (b"[9223372036854775807]", 2**63 - 1),
        (b"[-9223372036854775808]", -(2**63)),
        (b"[1.0]", 1.0),
        (b"[1e2]", 100.0),
        (b"[9223372036854775808]", 2.0**63),
        (b"[18446744073709551616]", 2.0**64),
        (b"[-9223372036854775809]", -(2.0**63)),
        (b'["\xff", 9223372036854775807]', 2**63 - 1),
    ],
)
def test_what_is_read(text: bytes, number: float) -> None:
    found = codec.decode(text)[-1]
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (0.1, b"0.1"),
        (0.00001, b"0.00001"),
        (1e-6, b"0.000001"),
        (1e-7, b"1e-7"),
        (1.5e-10, b"1.5e-10"),
        (1e20, b"100000000000000000000"),
        (2.0**63, b"9223372036854776000"),
        (1e21, b"1e+21"),
        (1.7976931348623157e308, b"1.7976931348623157e+308"),
    ],
)
def test_what_is_written(number: float, text: bytes) -> None:
    assert codec.encode({"a": [number], "b": ":1e5"}) == b'{"a":[%b],"b":":1e5"}' % text
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {}, "spec": number}
    assert codec.encode_object(obj) == b'{"apiVersion":"v1","kind":"K","metadata":{},"spec":%b}' % text


def test_a_number_that_no_float_holds() -> None:
    with pytest.raises(
        codec.NumberError, match="cannot unmarshal number 1e400 into Go value of type float64"
    ) as raised:
        codec.decode(b'{"kind": "K", "a": [1, 1e400, -1e999]}')
    assert raised.value.value == {"kind": "K", "a": [1, float("inf"), float("-inf")]}


def test_spelling_is_remembered_and_forgotten() -> None:
    raw = rb'{"a":[1.0,1e2,-0,"\u003c<",true],"b":12345678901234567890}'
    value = spelled.decode(raw)
    assert spelled.encode(value) == b'{"a":[1.0,1e2,-0,"<<",true],"b":12345678901234567890}'
    assert [spelled.literal(each) for each in value["a"][:4]] == ["1.0", "1e2", "-0", r'"\u003c<"']
    assert spelled.plain(value) == codec.decode(raw)
    assert [spelled.literal(each) for each in (1.0, 7, "<")] == ["1", "7", r'"\u003c"']
