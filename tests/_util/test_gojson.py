import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman._util.gojson import syntax_error

END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", END),
        ("{", END),
        ("[1,", END),
        ('"a', END),
        ("no", "invalid character 'o' in literal null (expecting 'u')"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("{1:2}", "invalid character '1' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('"\t"', "invalid character '\\t' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.a", "invalid character 'a' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
    ],
)
def test_messages(text, message):
    assert syntax_error(text.encode()) == message


def test_deep_nesting_needs_no_stack():
    assert syntax_error(b"[" * 100_000 + b"]" * 100_000) == ""
    assert syntax_error(b"[" * 100_000) == END


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_has_no_error(value, indent, ascii_only):
    assert syntax_error(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()) == ""


@given(st.text(alphabet='{}[]",:0-1.e+\\utrfalsn ', max_size=8))
def test_it_agrees_with_the_standard_library(text):
    try:
        json.loads(text)
    except ValueError:
        assert syntax_error(text.encode())
    else:
        assert syntax_error(text.encode()) == ""
