import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery import field_errors, selectors
from steersman.apimachinery.selectors import SelectorError

LABELS = {"env": "prod", "tier": "2", "in": "x"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("env", True),
        ("!env", False),
        ("!other", True),
        ("env=prod", True),
        ("env==prod", True),
        ("env!=prod", False),
        ("other!=prod", True),
        ("other=", False),
        ("env in (prod,dev)", True),
        ("env in ()", False),
        ("env notin (dev)", True),
        ("other notin (dev)", True),
        ("tier>1", True),
        ("tier<2", False),
        ("env>1", False),
        ("other<1", False),
        ("env=prod,tier=3", False),
        ("in in (x)", True),
        (" env = prod ,\ttier ", True),
    ],
)
def test_matching(text, matches):
    assert selectors.parse(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("b,a", "a,b"),
        ("a  in ( z , y )", "a in (y,z)"),
        ("a in (b,b)", "a in (b)"),
        ("a in (b,)", "a in (,b)"),
        ("a in (,)", "a in ()"),
        ("a==b", "a==b"),
        ("a=,b", "a=,b"),
        ("!a", "!a"),
        ("a>5", "a>5"),
        ("a=in", "a=in"),
        ("x.y/z notin (a)", "x.y/z notin (a)"),
    ],
)
def test_canonical_text(text, canonical):
    assert str(selectors.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("/x", 'unable to parse requirement: <nil>: Invalid value: "/x": prefix part must be non-empty'),
        (
            f"a={'v' * 64}",
            f'unable to parse requirement: values[0][a]: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
        ),
    ],
)
def test_errors(text, message):
    with pytest.raises(SelectorError) as caught:
        selectors.parse(text)
    assert str(caught.value) == message


def test_a_number_beyond_int64_is_no_integer():
    with pytest.raises(SelectorError, match="must be an integer"):
        selectors.parse(f"a>{1 << 63}")
    assert not selectors.parse("a>1").matches({"a": "9" * 5000})


def test_exact_value():
    selector = selectors.parse("a=1,b in (2),c in (3,4),d!=5")
    assert [selector.exact(key) for key in "abcde"] == ["1", "2", None, None, None]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"env": "prod"}}, True),
        ({"matchLabels": {"env": "dev"}}, False),
        ({"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev", "prod"]}]}, True),
        ({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}, False),
        ({"matchExpressions": [{"key": "env", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "env", "operator": "DoesNotExist", "values": []}]}, False),
    ],
)
def test_label_selector_objects(selector, matches):
    assert selectors.from_object(selector).matches(LABELS) is matches


def test_a_label_selector_object_with_an_unknown_operator():
    with pytest.raises(SelectorError) as caught:
        selectors.from_object({"matchExpressions": [{"key": "a", "operator": "Near"}]})
    assert str(caught.value) == '"Near" is not a valid label selector operator'


def test_validation_of_label_selector_objects():
    selector = {
        "matchLabels": {"/a": "b"},
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["x"]},
            {"key": "a", "operator": "Near", "values": ["-"]},
        ],
    }
    found = [(error.type, error.field) for error in selectors.validate_object(selector, "s")]
    assert found == [
        (field_errors.INVALID, "s.matchLabels"),
        (field_errors.REQUIRED, "s.matchExpressions[0].values"),
        (field_errors.FORBIDDEN, "s.matchExpressions[1].values"),
        (field_errors.INVALID, "s.matchExpressions[2].operator"),
        (field_errors.INVALID, "s.matchExpressions[2].values[0]"),
    ]
    assert len(selectors.validate_object(selector, "s", allow_invalid_values=True)) == 4
    assert selectors.validate_object(None, "s") == []


KEYS = st.from_regex(r"([a-z]{1,5}\.[a-z]{1,3}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?", fullmatch=True)
VALUES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?)?", fullmatch=True)
VALUE_SETS = st.sets(VALUES, min_size=1, max_size=4).map(lambda values: tuple(sorted(values)))
REQUIREMENTS = st.one_of(
    st.builds(selectors.Requirement, KEYS, st.sampled_from(["exists", "!"])),
    st.builds(selectors.Requirement, KEYS, st.sampled_from(["=", "==", "!="]), VALUES.map(lambda value: (value,))),
    st.builds(selectors.Requirement, KEYS, st.sampled_from(["in", "notin"]), VALUE_SETS),
    st.builds(
        selectors.Requirement,
        KEYS,
        st.sampled_from(["gt", "lt"]),
        st.integers(0, 1 << 62).map(lambda number: (str(number),)),
    ),
)


@given(st.lists(REQUIREMENTS, max_size=4).map(selectors.LabelSelector))
def test_the_canonical_text_parses_to_the_same_selector(selector):
    assert selectors.parse(str(selector)) == selector


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.dictionaries(KEYS, VALUES, max_size=3))
def test_a_selector_made_of_labels_selects_their_supersets(wanted, more):
    selector = selectors.from_labels(wanted)
    assert selector.matches({**more, **wanted})
    assert selector.matches(more) is all(more.get(key) == value for key, value in wanted.items())


@given(st.text(alphabet="ab=!(),<> in", max_size=12))
def test_any_text_parses_or_is_refused(text):
    try:
        selector = selectors.parse(text)
    except SelectorError as error:
        assert str(error)
    else:
        assert selectors.parse(str(selector)) == selector
