from __future__ import annotations

import logging

import pytest

from steersman.client.warning import Warnings, parse


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ('299 - "unknown field \\"spec.a\\""', ['unknown field "spec.a"']),
        ('299 - "one", 299 kube-apiserver "two"', ["one", "two"]),
        ('299 - "one" "Sun, 29 Nov 2026 20:41:38 GMT", 299 - "two"', ["one", "two"]),
        ('199 - "not ours", 299 - "ours"', ["ours"]),
        ('299 - "a, b"', ["a, b"]),
        ('299 - "never closed', []),
        ("299 - bare", []),
        ("", []),
    ],
)
def test_the_header_is_taken_apart(value: str, texts: list[str]) -> None:
    assert list(parse(value)) == texts


def test_each_text_is_passed_on_once() -> None:
    told: list[str] = []
    warnings = Warnings(told.append)
    warnings.read([("Warning", '299 - "a"'), ("warning", '299 - "b"'), ("Other", '299 - "c"')])
    warnings.read([("Warning", '299 - "a"')])
    assert told == ["a", "b"]


def test_they_are_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "steersman.client"):
        Warnings().read([("Warning", '299 - "v1beta1 is deprecated"')])
    assert caplog.messages == ["v1beta1 is deprecated"]
