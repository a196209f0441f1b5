from __future__ import annotations

import orjson
import pytest
from hypothesis import given

from steersman.apimachinery.apply import path as paths

from .strategies import elements


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (paths.field("app.kubernetes.io/name"), "f:app.kubernetes.io/name"),
        (paths.key([("protocol", "TCP"), ("port", 80)]), 'k:{"port":80,"protocol":"TCP"}'),
        (paths.value("a"), 'v:"a"'),
        (paths.value("<&>"), r'v:"\u003c\u0026\u003e"'),
        (paths.value("tab\tnul\x00\u2028"), r'v:"tab\tnul\u0000\u2028"'),
        (paths.value("é"), 'v:"é"'),
        (paths.value(True), "v:true"),
        (paths.value(1.0), "v:1"),
        (paths.value(1.25), "v:1.25"),
        (paths.value(0.00002), "v:0.00002"),
        (paths.value(1.5e-7), "v:1.5e-07"),
        (paths.value(1e21), "v:1e+21"),
        (paths.index(3), "i:3"),
    ],
)
def test_text(element: str, text: str) -> None:
    assert element == text
    assert paths.parse(text) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('k:{"b": 1, "a": "x"}', 'k:{"a":"x","b":1}'),
        ('v: "a"', 'v:"a"'),
        ("v:1.0", "v:1"),
        ("i:+4", "i:4"),
        ("x:later", None),
    ],
)
def test_parse_makes_texts_canonical(text: str, canonical: str | None) -> None:
    assert paths.parse(text) == canonical


@pytest.mark.parametrize("text", ["", "f", "name", "v:", "v:{", "k:[]", "k:", "i:x", "i:", 'v:"a" 1'])
def test_parse_refuses_what_is_no_element(text: str) -> None:
    with pytest.raises(paths.PathError):
        paths.parse(text)


@given(elements)
def test_parse_keeps_canonical_texts(element: str) -> None:
    assert paths.parse(element) == element
    assert orjson.loads(orjson.dumps({element: {}})) == {element: {}}


def test_order() -> None:
    ordered = [
        ".",
        "f:a",
        "f:b",
        'k:{"name":"a"}',
        'k:{"name":"a","port":1}',
        'k:{"port":9}',
        'k:{"port":80}',
        "v:2",
        "v:10",
        'v:"10"',
        "v:true",
        "i:2",
        "i:10",
    ]
    backwards = list(reversed(ordered))
    assert sorted(backwards, key=paths.sort_key) == ordered


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:name"), '.spec.ports[port=80,protocol="TCP"].name'),
        (("f:metadata", "f:finalizers", 'v:"a/b"'), '.metadata.finalizers[="a/b"]'),
        (("f:x", "i:0"), ".x[0]"),
        (("f:x", "v:1.5"), ".x[=1.5]"),
        (("f:x", "v:true"), ".x[=true]"),
    ],
)
def test_describe(path: tuple[str, ...], text: str) -> None:
    assert paths.describe(path) == text
