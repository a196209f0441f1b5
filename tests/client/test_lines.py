from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steersman.client.lines import LineSplitter

LINES = st.lists(st.binary(min_size=1, max_size=30).map(lambda b: b"{" + b.replace(b"\n", b"") + b"}"))


@given(LINES, st.lists(st.integers(1, 20)))
def test_lines_do_not_depend_on_how_the_stream_was_cut(lines: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes] = []
    for size in sizes:
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    found += splitter.feed(stream)
    assert found == lines
    assert splitter.rest() == b""


def test_a_line_that_was_cut_short_is_kept_apart() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert splitter.rest() == b'{"b"'


def test_blank_lines_are_left_out() -> None:
    assert LineSplitter().feed(b"\n\r\n{}\n \n") == [b"{}"]


def test_a_line_of_megabytes_arrives_whole() -> None:
    splitter = LineSplitter()
    line = b"x" * 3_000_000
    for start in range(0, len(line), 1000):
        assert splitter.feed(line[start : start + 1000]) == []
    assert splitter.feed(b"\n") == [line]
