import re

import pytest

from steersman.apimachinery.schema.formats import is_recognised, string_format
from steersman.apimachinery.schema.patterns import PatternError, compile_pattern
from steersman.apimachinery.schema.urls import parse_url

VERDICTS = {
    "bsonobjectid": {"507f1f77bcf86cd799439011": True, "507f1f77bcf86cd79943901": False},
    "uri": {
        "http://foo/": True,
        "/a b": True,
        "*": True,
        "mailto:x": True,
        "http://[::1]:80/": True,
        "http://é/": True,
        "example.com": False,
        "": False,
        "http://a b": False,
        "http://::1/": False,
        "http://a:b/": False,
        "http://a/%zz": False,
        "http://a%41/": False,
        "1a:b": False,
        ":x": False,
        "/a\x7f": False,
    },
    "email": {
        "a@b": True,
        "A. B <a@b>": True,
        '"x y"@b': True,
        "a@[1.2.3.4]": True,
        "a@b (c)": True,
        "a@": False,
        ".a@b": False,
        "a..b@c": False,
        "a@b,c@d": False,
    },
    "hostname": {
        "a": True,
        "a.bc": True,
        "é.com": True,
        "a-": True,
        "-a": False,
        "a_b": False,
        "a.b": False,
        "a" * 64: False,
    },
    "ipv4": {"1.2.3.4": True, "01.2.3.4": True, "::ffff:1.2.3.4": True, "1.2.3.256": False, "::1": False},
    "ipv6": {"::1": True, "fe80::1%eth0": False, "1.2.3.4": False, "::ffff:01.2.3.4": False},
    "cidr": {
        "1.2.3.4/8": True,
        "::/0": True,
        "1.2.3.4/33": False,
        "::/129": False,
        "1.2.3.4": False,
        "1.2.3.4/+8": False,
    },
    "mac": {"00:00:5e:00:53:01": True, "0000.5e00.5301": True, "00:00-5e:00:53:01": False, "0:0:0:0:0:0": False},
    "uuid": {"A3BB189E-8bf9-3888-9912-ace4e6543002": True, "a3bb189e8bf938889912ace4e6543002": True, "": False},
    "uuid3": {"a3bb189e-8bf9-3888-9912-ace4e6543002": True, "a3bb189e-8bf9-4888-9912-ace4e6543002": False},
    "uuid4": {"a3bb189e-8bf9-4888-9912-ace4e6543002": True, "a3bb189e-8bf9-4888-7912-ace4e6543002": False},
    "uuid5": {"a3bb189e-8bf9-5888-9912-ace4e6543002": True, "a3bb189e-8bf9-4888-9912-ace4e6543002": False},
    "isbn": {"3836221195": True, "978 3836221191": True, "3401013190": False},
    "isbn10": {"3 401 01319 X": True, "978 3836221191": False},
    "isbn13": {"978-3836221191": True, "3836221195": False},
    "creditcard": {"4220-8554-2622-2389": True, "4220855426213389": False, "no card": False},
    "ssn": {"123-45-6789": True, "123456789": False},
    "hexcolor": {"#FfF": True, "ffffff": True, "#ffff": False},
    "rgbcolor": {"rgb( 1 , 20,255)": True, "rgb(256,1,1)": False, "rgb(01,1,1)": False},
    "byte": {"YQ==": True, "YWJj": True, "": False, "YQ": False},
    "password": {"": True},
    "date": {"2024-02-29": True, "0000-02-29": True, "2023-02-29": False, "2024-1-1": False, "2024-13-01": False},
    "date-time": {
        "2024-01-01T00:00:00Z": True,
        "2024-01-01t00:00:00.1+99:99": True,
        "2024-01-01T00:00:00": False,
        "2024-01-01T24:00:00Z": False,
        "2024-01-01 00:00:00Z": False,
    },
    "duration": {
        "1.5h": True,
        "-1h": True,
        "2 days": True,
        "PT1H": True,
        "0": True,
        "1x": False,
        "h": False,
        "": False,
    },
    "k8s-short-name": {"a-b": True, "a.b": False, "A": False, "a" * 64: False},
    "k8s-long-name": {"a.b": True, "a..b": False, "a" * 254: False},
}


@pytest.mark.parametrize(
    ("name", "text", "valid"),
    [(name, text, valid) for name, texts in VERDICTS.items() for text, valid in texts.items()],
)
def test_format(name: str, text: str, valid: bool) -> None:
    check = string_format(name)
    assert check is not None
    assert check(text) is valid


def test_dashes_in_names_do_not_count_and_unknown_formats_are_none() -> None:
    assert string_format("datetime") is string_format("date-time")
    assert string_format("no-such-format") is None


@pytest.mark.parametrize(
    ("kind", "name", "known"),
    [
        ("string", "uuid", True),
        ("", "date-time", True),
        ("string", "int32", False),
        ("integer", "int64", True),
        ("integer", "uuid", False),
        ("number", "double", True),
        ("number", "int32", False),
        ("boolean", "uuid", False),
    ],
)
def test_formats_belong_to_types(kind: str, name: str, known: bool) -> None:
    assert is_recognised(kind, name) is known


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("a{2000}", "invalid repeat count: `{2000}`"),
        ("(?P<a", "invalid named capture: `(?P<a`"),
        ("*", "missing argument to repetition operator: `*`"),
        (")", "unexpected ): `)`"),
        ("(", "missing closing ): `(`"),
        ("[", "missing closing ]: `[`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\8", "invalid escape sequence: `\\8`"),
        ("a\\C", "invalid escape sequence: `\\C`"),
        ("[\\C]", "invalid escape sequence: `\\C`"),
    ],
)
def test_bad_patterns_are_named_in_go_words(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == f"error parsing regexp: {reason}"


def test_patterns_search_in_long_texts_and_stop_at_no_line_end() -> None:
    ends = compile_pattern("b$")
    assert ends("a" * 500 + "b")
    assert not ends("ab\n")


def test_what_only_looks_like_an_escape_sequence_is_none() -> None:
    assert compile_pattern(r"\Qa\C\E$")(r"a\C")
    assert compile_pattern(r"\\C")(r"\C")


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("%zz", 'invalid URL escape "%zz"'),
        ("a%4", 'invalid URL escape "%4"'),
        ("a%41", 'invalid URL escape "%41"'),
        ("a^%zz", 'invalid character "^" in host name'),
        ("a%4\u00e9", 'invalid URL escape "%4\\xc3"'),
        ("a:1:2", 'invalid port ":1:2" after host'),
    ],
)
def test_escapes_in_hosts(host: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_url(f"https://{host}/")


def test_parse_url() -> None:
    url = parse_url("https://u:p@host:8/path?q#f")
    assert (url.scheme, url.user, url.host, url.path, url.query, url.fragment) == (
        "https",
        "u:p",
        "host:8",
        "/path",
        "q",
        "f",
    )
    assert parse_url("https://a%25%c3%a4/").host == "a%ä"
    assert parse_url("https://*@:%41:@x/").user == "%2A%40:A%3A"
    with pytest.raises(ValueError, match="first path segment in URL cannot contain colon"):
        parse_url("ht tp://x")
    with pytest.raises(ValueError, match=re.escape(r'parse "x\x01": net/url: invalid control character in URL')):
        parse_url("x\x01#y")
