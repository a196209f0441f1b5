from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest

from steersman.net.wire import http_date


@pytest.mark.parametrize("seconds", [0, 951_782_399.9, 951_782_400, 1_796_036_400, 4_102_444_799])
def test_dates_of_headers(seconds: float) -> None:
    text = http_date(seconds)
    assert text.endswith(" GMT")
    assert len(text) == 29
    assert parsedate_to_datetime(text).timestamp() == int(seconds)


def test_the_example_of_the_standard() -> None:
    assert http_date(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT"
