from __future__ import annotations

import re

from steersman._util.lazily import lazily


def test_it_is_made_once_and_when_it_is_used() -> None:
    made: list[str] = []

    def make(text: str, *, flags: int) -> re.Pattern[str]:
        made.append(text)
        return re.compile(text, flags)

    pattern = lazily(make, "a+", flags=re.IGNORECASE)
    assert made == []
    assert [pattern.fullmatch("aAa") is None, pattern.fullmatch("b") is None] == [False, True]
    assert pattern.pattern == "a+"
    assert pattern.sub("x", "banAna") == "bxnxnx"
    assert made == ["a+"]
