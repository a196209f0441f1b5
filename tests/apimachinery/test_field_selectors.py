import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery import field_selectors
from steersman.apimachinery.field_selectors import FieldSelector, Term
from steersman.apimachinery.selectors import SelectorError

FIELDS = {"metadata.name": "a", "status.phase": "Running"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("metadata.name=a,status.phase!=Failed", True),
        ("metadata.name=a,", True),
        ("spec.x=", True),
        ("spec.x!=", False),
    ],
)
def test_matching(text, matches):
    assert field_selectors.parse(text).matches(lambda field: FIELDS.get(field, "")) is matches


def test_escaped_values():
    selector = field_selectors.parse(r"a=x\,y\=z\\")
    assert selector == FieldSelector([Term("a", "x,y=z\\")])
    assert str(selector) == r"a=x\,y\=z\\"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_errors(text, message):
    with pytest.raises(SelectorError) as caught:
        field_selectors.parse(text)
    assert str(caught.value) == message


def test_the_only_value_of_a_field():
    selector = field_selectors.parse("a=1,b!=2")
    assert [selector.exact(field) for field in "abc"] == ["1", None, None]


def test_terms_may_be_renamed_or_dropped():
    def rename(field: str, value: str) -> tuple[str, str]:
        return ("", "") if field == "b" else (f"x.{field}", value)

    assert str(field_selectors.parse("a=1,b=2,c!=3").transform(rename)) == "x.a=1,x.c!=3"


TERMS = st.builds(Term, st.from_regex(r"[a-z]{1,4}(\.[a-z]{1,4})?", fullmatch=True), st.text(max_size=8), st.booleans())


@given(st.lists(TERMS, max_size=3))
def test_the_canonical_text_parses_to_the_same_terms(terms):
    selector = field_selectors.parse(str(FieldSelector(terms)))
    assert sorted(selector.terms, key=str) == sorted(terms, key=str)
    assert field_selectors.parse(str(selector)) == selector
