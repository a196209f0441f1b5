"""Keys that stand twice, and floats: both are found by looks at the text that must not err."""

import json

from hypothesis import given
from hypothesis import strategies as st

from steersman._util.gotext import format_json_float
from steersman.apimachinery.codec import json as codec

TEXTS = st.text(st.sampled_from('ab":\\ ,{}1.0e\n'), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",\n", "\t: ")])


def written(text: str, *, escapes: bool) -> bytes:
    """The text, with backslashes as JSON may write them, too."""
    return (text.replace("\\\\", "\\u005c") if escapes else text).encode()


@given(VALUES, SEPARATORS, st.booleans())
def test_keys_that_stand_once_are_no_duplicates(value: object, separators: tuple[str, str], escapes: bool) -> None:
    raw = written(json.dumps(value, separators=separators), escapes=escapes)
    assert codec.duplicate_keys(raw, codec.decode(raw)) == []


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), VALUES, SEPARATORS, st.booleans())
def test_a_key_that_stands_twice_is_found(
    value: dict[str, object], other: object, separators: tuple[str, str], escapes: bool
) -> None:
    name = next(iter(value))
    text = json.dumps(value, separators=separators)
    again = json.dumps({name: other}, separators=separators)
    raw = written(f"[{text[:-1]}{separators[0]}{again[1:]}]", escapes=escapes)
    found = codec.duplicate_keys(raw, codec.decode(raw))
    assert found[0].startswith("[0]")
    assert name in found[0]


@given(VALUES)
def test_floats_are_written_as_go_writes_them(value: object) -> None:
    value = codec.fit_numbers(value)
    assert codec.encode(value) == as_go(value).encode()


def as_go(value: object) -> str:
    if isinstance(value, float):
        return format_json_float(value) if value else "0"  # read again, -0 has no sign
    if isinstance(value, list):
        return f"[{','.join(map(as_go, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{as_go(key)}:{as_go(value[key])}" for key in sorted(value)) + "}"
    return json.dumps(value, ensure_ascii=False)
