"""How warnings become headers."""

from __future__ import annotations

from steersman.apiserver.filters.warnings import warning_headers


def test_each_text_is_sent_once_and_quoted() -> None:
    sent = ['a "b" \\c', "é\u00a0x", 'a "b" \\c', ""]
    assert warning_headers(sent) == ['299 - "a \\"b\\" \\\\c"', '299 - "é\u00a0x"']


def test_a_text_with_control_characters_cannot_be_sent() -> None:
    assert warning_headers(["a\nb", "c\x7f", "d"]) == ['299 - "d"']


def test_texts_that_are_too_long_in_all_are_cut_to_the_same_length() -> None:
    headers = warning_headers(["x" * 4000, "y" * 90, "z" * 300])
    assert [header.count(each) for header, each in zip(headers, "xyz", strict=True)] == [256, 90, 256]


def test_one_long_text_is_whole_and_those_beyond_the_limit_are_left_out() -> None:
    assert warning_headers(["x" * 4096]) == [f'299 - "{"x" * 4096}"']
    assert len(warning_headers([f"{n:04}" + "x" * 300 for n in range(40)])) == 16
