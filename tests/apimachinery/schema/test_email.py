"""Addresses: the verdicts are those of Go's net/mail."""

from __future__ import annotations

import pytest

from steersman.apimachinery.schema.email import is_email

GOOD = [
    "a@b",
    "a.b+c@d-e.f",
    "ä@ö.ü",
    "  a@b",
    "a@ b",
    "<a@b>",
    "Jo Do <a@b>",
    '"Jo, Do" <a@b>',
    '"a b"@c',
    '"a\\"b"@c',
    "a. b.c <a@b>",
    "a@[1.2.3.4]",
    "a@[::1]",
    "a@b (c (d) e)",
    "a@b (\\))",
    "group: a@b;",
    "group: a@b; (c)",
    "=?utf-8?q?=c3=a4?= <a@b>",
    "=?utf-8?b?w6Q=?= <a@b>",
    "=?utf-8?x?a?= <a@b>",
    "=?iso-8859-1?q?a?= <a@b>",
]
BAD = [
    "",
    "a",
    "a b",
    "@b",
    "a@",
    ".a@b",
    "a.@b",
    "a..b@c",
    "a@b.",
    "a@b, c@d",
    "a@b <c@d>",
    "a b@c",
    "Jo <a@b",
    "Jo a@b>",
    '""@b',
    '"a@b',
    "a@[1.2.3]",
    "a@[fe80::1%eth0]",
    "a@b (c",
    "group:;",
    "group: a@b, c@d;",
    "group: a@b",
    "=?foo?q?a?= <a@b>",
    "=?utf-8?q??= <a@b>",
    "a@b\n",
    "a\x00@b",
]


@pytest.mark.parametrize("text", GOOD)
def test_addresses(text: str) -> None:
    assert is_email(text)


@pytest.mark.parametrize("text", BAD)
def test_no_addresses(text: str) -> None:
    assert not is_email(text)


@pytest.mark.parametrize("piece", ["a", "a ", "a.", "(", '"', "=?", "a@b,"])
def test_long_texts_take_no_longer_than_their_length_asks_for(piece: str) -> None:
    assert not is_email(piece * 30_000)
