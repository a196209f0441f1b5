import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery import names

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (names.dns1123_subdomain, "a.b-c.1", []),
        (names.dns1123_subdomain, "a" * 253, []),
        (names.dns1123_subdomain, "a" * 254, ["must be no more than 253 characters"]),
        (names.dns1123_subdomain, "", [SUBDOMAIN]),
        (names.dns1123_subdomain, "A", [SUBDOMAIN]),
        (names.dns1123_subdomain, "a..b", [SUBDOMAIN]),
        (names.dns1123_subdomain, "a\n", [SUBDOMAIN]),
        (names.dns1123_subdomain, "é" * 127, ["must be no more than 253 characters", SUBDOMAIN]),
        (names.dns1123_label, "1-a", []),
        (names.dns1123_label, "a.b", ["must not contain dots"]),
        (names.dns1123_label, "a-", [LABEL]),
        (names.dns1123_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.dns1035_label, "a1", []),
        (names.qualified_name, "Name_1.x", []),
        (names.qualified_name, "x.io/Name", []),
        (names.qualified_name, "/n", ["prefix part must be non-empty"]),
        (names.qualified_name, "x/", ["name part must be non-empty", f"name part {KEY}"]),
        (names.qualified_name, "X/n", [f"prefix part {SUBDOMAIN}"]),
        (names.qualified_name, "x" * 254 + "/n", ["prefix part must be no more than 253 bytes"]),
        (names.qualified_name, "n" * 64, ["name part must be no more than 63 bytes"]),
        (names.label_value, "", []),
        (names.label_value, "a_b.C-1", []),
        (names.label_value, "-a", [VALUE]),
        (names.label_value, "v" * 64, ["must be no more than 63 bytes"]),
        (names.config_map_key, ".hidden_KEY-1", []),
        (names.config_map_key, ".", ["must not be '.'"]),
        (names.config_map_key, "..x", ["must not start with '..'"]),
        (names.path_segment_name, "a:b", []),
        (names.path_segment_name, "..", ["may not be '..'"]),
        (names.path_segment_name, "/%", ["may not contain '/'", "may not contain '%'"]),
        (names.c_identifier, "_a1", []),
    ],
)
def test_checks(check, value, expected):
    assert check(value) == expected


def test_two_slashes_are_told_in_one_message():
    optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    assert names.qualified_name("a/b/c") == [f"a valid label key {KEY} {optional}"]


def test_dns1035_label_and_identifier_quote_their_patterns():
    assert names.dns1035_label("1a")[0].endswith("regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')")
    assert names.c_identifier("1a")[0].endswith("regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')")


@pytest.mark.parametrize("rule", [names.name_is_dns_subdomain, names.name_is_dns_label, names.name_is_dns1035_label])
def test_a_prefix_may_end_with_a_dash(rule):
    assert rule("web-", True) == []
    assert rule("web-", False) != []
    assert rule("-", True) != []


def test_a_remembered_answer_is_not_shared():
    names.qualified_name("/x").append("changed by a caller")
    assert names.qualified_name("/x") == ["prefix part must be non-empty"]


LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True)


@given(st.lists(LABELS, min_size=1, max_size=3).map(".".join), st.integers())
def test_a_generated_name_is_valid_when_its_base_is(base, seed):
    name = names.generate_name(f"{base}-", random.Random(seed))
    assert len(name) <= 63
    assert name[:-5] == f"{base}-"[:58]
    assert set(name[-5:]) <= set(names.RANDOM_ALPHABET)
    if f"{base}-"[:58].rstrip("-.") == f"{base}-"[:58] or len(base) < 58:
        assert names.dns1123_subdomain(name) == []


@given(st.text(max_size=80))
def test_a_label_is_also_a_subdomain_and_a_label_value(text):
    if not names.dns1123_label(text):
        assert names.dns1123_subdomain(text) == []
        assert names.label_value(text) == []
        assert names.qualified_name(text) == []
