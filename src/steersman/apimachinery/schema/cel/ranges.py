"""Estimated costs and sizes: a least and a greatest value, which never pass 64 bits.

Source: cel-go `checker/cost.go` (SizeEstimate, CostEstimate).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1


class Range(NamedTuple):
    """At least `low`, at most `high`."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.low + other.low, MOST), min(self.high + other.high, MOST))

    def times(self, other: Range) -> Range:
        return Range(min(self.low * other.low, MOST), min(self.high * other.high, MOST))

    def scaled(self, factor: float) -> Range:
        """Times a factor, rounded up."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed(value: int) -> Range:
    return Range(value, value)


UNKNOWN: Final = Range(0, MOST)
ZERO: Final = Range(0, 0)
ONE: Final = Range(1, 1)


def _scaled(value: int, factor: float) -> int:
    product = math.ceil(float(value) * factor)
    return min(product, MOST)
