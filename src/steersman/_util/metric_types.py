"""Counters, gauges and histograms whose updates cost a dict look-up, in the Prometheus text format.

The metrics of `prometheus_client` take a lock and several calls at each update, and its exposition some ten
microseconds a line: too much for every request, and for a scrape on the event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]


class Metric(Protocol):
    """One metric family."""

    name: str

    def lines(self) -> Iterator[str]:
        """The family in the text format, without line ends; nothing if it has no series."""
        ...


class _Family:
    kind = ""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.help = help_text
        self.labels = tuple(labels)

    def _checked(self, values: Labels) -> Labels:
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} of them")
        return values

    def _header(self) -> str:
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}"

    def _text(self, values: Labels) -> str:
        return ",".join(f'{label}="{_escape(value)}"' for label, value in zip(self.labels, values, strict=True))


class _Values(_Family):
    """A family with one number a series. A series' cell, a list of that one number, may be kept and added to."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help_text, labels)
        self._cells: dict[Labels, list[float]] = {}

    def cell(self, values: Labels = ()) -> list[float]:
        """The series with these label values, made at its first use."""
        found = self._cells.get(values)
        if found is None:
            found = self._cells[self._checked(values)] = [0]
        return found

    def add(self, amount: float, values: Labels = ()) -> None:
        self.cell(values)[0] += amount

    def samples(self) -> Iterable[tuple[Labels, float]]:
        return [(values, cell[0]) for values, cell in list(self._cells.items())]

    def lines(self) -> Iterator[str]:
        samples = self.samples()
        if samples:
            yield self._header()
        for values, number in samples:
            text = self._text(values)
            yield f"{self.name}{{{text}}} {format_number(number)}" if text else f"{self.name} {format_number(number)}"


class Counter(_Values):
    """A number that only grows."""

    kind = "counter"

    def inc(self, *values: str) -> None:
        """Adds one to the series with these label values."""
        self.cell(values)[0] += 1


class Gauge(_Values):
    """A number that goes up and down, or that `source`, if set, tells at each scrape (by label values)."""

    kind = "gauge"
    source: Callable[[], Mapping[Labels, float]] | None = None

    def set(self, number: float, values: Labels = ()) -> None:
        self.cell(values)[0] = number

    def samples(self) -> Iterable[tuple[Labels, float]]:
        return list(self.source().items()) if self.source is not None else super().samples()


class Histogram(_Family):
    """How values are distributed over buckets; `bounds` are the buckets' inclusive upper ends, ascending."""

    kind = "histogram"

    def __init__(self, name: str, help_text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        super().__init__(name, help_text, labels)
        self.bounds = tuple(bounds)
        self._ends = [*map(format_number, self.bounds), "+Inf"]
        self._series: dict[Labels, list[float]] = {}

    def series(self, values: Labels) -> list[float]:
        """The series with these label values: the count of each bucket by itself, then the sum of all values.

        For `observe_in`; made at its first use.
        """
        found = self._series.get(values)
        if found is None:
            found = self._series[self._checked(values)] = [0] * (len(self._ends) + 1)
        return found

    def observe(self, value: float, values: Labels = (), times: int = 1) -> None:
        self.observe_in(self.series(values), value, times)

    def observe_in(self, series: list[float], value: float, times: int = 1) -> None:
        """Counts a value, so many times, in a series of this histogram."""
        series[bisect_left(self.bounds, value)] += times
        series[-1] += value * times

    def lines(self) -> Iterator[str]:
        present = [(values, list(series)) for values, series in list(self._series.items()) if any(series)]
        if present:
            yield self._header()
        for values, series in present:
            text = self._text(values)
            start = f"{self.name}_bucket{{{text}{',' if text else ''}le="
            total = 0
            for end, count in zip(self._ends, series, strict=False):
                total += int(count)
                yield f'{start}"{end}"}} {total}'
            labels = f"{{{text}}}" if text else ""
            yield f"{self.name}_sum{labels} {format_number(series[-1])}"
            yield f"{self.name}_count{labels} {total}"


def expose(metrics: Iterable[Metric]) -> bytes:
    """The text format of all metrics, in the order of their names."""
    lines = [line for metric in sorted(metrics, key=lambda metric: metric.name) for line in metric.lines()]
    return "\n".join([*lines, ""]).encode() if lines else b""


def format_number(number: float) -> str:
    """A number as Go's %g prints it, which is how upstream writes bucket bounds: 0.005, 131072, 1e+06, 1.05e+06."""
    if number == int(number) and abs(number) < 1e6:
        return str(int(number))
    if abs(number) < 1e6:
        return repr(float(number))
    mantissa, exponent = f"{number:.15e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"


def _escape(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value
