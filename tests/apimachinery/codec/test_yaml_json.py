"""JSON that comes as YAML, as kubectl and most clients send it, is read faster, and means the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.codec import yaml

_KEYS = st.text(st.sampled_from("ab\"\\/<u0e\u00e9\u2028\t\x7f: #'-"), max_size=4) | st.sampled_from(["<<", "y" * 1100])
_SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | _KEYS
_OBJECTS = st.dictionaries(
    _KEYS,
    st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3)),
    max_size=4,
)


@given(_OBJECTS, st.booleans(), st.sampled_from([None, 1, "\t"]), st.sampled_from(["", "  ", "\n"]))
def test_json_means_the_same_whether_it_is_read_as_json_or_as_yaml(obj, ascii_only, indent, before):
    text = (before + json.dumps(obj, ensure_ascii=ascii_only, indent=indent)).encode()

    def read(how):
        try:
            return json.dumps(how(text), sort_keys=True)
        except yaml.YamlError as error:
            return str(error)

    def slowly(raw):
        return next(yaml.decode_documents(raw)).value

    assert read(lambda raw: yaml.decode_with_duplicates(raw)[0]) == read(slowly)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": "\\/"}',
        b'{"a": "\\ud83d\\ude00"}',
        b'{"a": "x", "a": "y"}',
        b'{"a": {"b\\"": 1, "b\\"": 2}}',
        b'{"a": 1} # and more',
        b'{"a": 1}\n---\n{"b": 2}',
        b'{"a": 1, }',
        b'{"a": 0x10, b: yes}',
        b'{"a": -0, "b": 1e3, "c": 1.0, "d": 1e400, "e": 18446744073709551616}',
        b"{}",
        b'["a"]',
    ],
)
def test_what_is_no_plain_json_is_left_to_yaml(text):
    def read(how):
        try:
            return json.dumps(how(text))
        except yaml.YamlError as error:
            return str(error)

    assert read(lambda raw: yaml.decode_with_duplicates(raw)[0]) == read(
        lambda raw: next(yaml.decode_documents(raw)).value
    )
