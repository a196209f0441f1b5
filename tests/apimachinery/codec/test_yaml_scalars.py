"""Scalars of YAML: the values are those of go-yaml v2, as its users see them in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.apimachinery.codec import yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("~", None),
        ("NULL", None),
        ("nUll", "nUll"),
        ("017", 15),
        ("0o17", 15),
        ("08", 8),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("+1", 1),
        ("1.", 1),
        (".5", 0.5),
        ("1e3", 1000),
        ("1.5e-3", 0.0015),
        ("1e400", "1e400"),
        ("18446744073709551615", 2.0**64),
        ("9223372036854775807.0", 2.0**63),
        ("5528022913646600192.0", 5528022913646600000),
        ("2001-01-01", "2001-01-01"),
        ("1:30", "1:30"),
        ("1,000", "1,000"),
        ("0x", "0x"),
        ("1__", 1),
        ("'1'", "1"),
        ('"\\x41"', "A"),
        ("!!str 1", "1"),
        ("!!int '3'", 3),
        ("!!float 1", 1),
        ("!!binary aGk=", "hi"),
        ("!odd 1", "1"),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    found = yaml.decode(f"a: {text}\n".encode())["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("key", "text"),
    [("1.5", "1.5"), ("1e3", "1000"), ("1e20", "1e+20"), ("0.1", "0.1"), (".inf", ".inf"), ("no", "false")],
)
def test_keys(key: str, text: str) -> None:
    assert yaml.decode(f"{key}: x\n".encode()) == {text: "x"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".nan", "json: unsupported value: NaN"),
        ("-.inf", "json: unsupported value: -Inf"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("!!binary '?'", "yaml: !!binary value contains invalid base64 data"),
        (r'"\/"', "yaml: found unknown escape character"),
        ("\x7f", "yaml: control characters are not allowed"),
    ],
)
def test_what_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(yaml.YamlError) as raised:
        yaml.decode(f"a: {text}\n".encode())
    assert str(raised.value) == why
