"""The conformance tests of the CEL specification, as far as Kubernetes enables what they test."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from .spec import SpecTest, directory, failure, load

_EXCLUDED = Path(__file__).with_name("spec_excluded.toml")


@cache
def excluded() -> dict[str, str]:
    """Files, sections and tests that are out, with the reason."""
    entries = tomllib.loads(_EXCLUDED.read_text())["excluded"]
    return {name: entry["reason"] for entry in entries for name in entry["tests"]}


@pytest.fixture(scope="module")
def tests() -> list[SpecTest]:
    folder = directory()
    if isinstance(folder, str):
        pytest.skip(folder)
    return list(load(folder))


def _entry(name: str) -> str:
    """The entry of the list that a test falls under, if any."""
    parts = name.split("/")
    return next((each for each in (name, "/".join(parts[:2]), parts[0]) if each in excluded()), "")


def test_what_kubernetes_enables_passes(tests: list[SpecTest]) -> None:
    ran = [test for test in tests if not _entry(test.name)]
    failures = [f"{test.name}: {test.text('expr')}: {why}" for test in ran if (why := failure(test))]
    assert not failures, "\n".join(failures)
    assert len(ran) > 1000


def test_what_is_excluded_does_not_pass(tests: list[SpecTest]) -> None:
    passing = [test.name for test in tests if _entry(test.name) and not failure(test)]
    assert not passing, "take these from the list: " + ", ".join(passing)


def test_every_exclusion_is_of_a_test_that_exists(tests: list[SpecTest]) -> None:
    assert excluded().keys() <= {_entry(test.name) for test in tests}
