"""docs/runtime.md: what it names is there, and each of its rows has a test."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import steersman
from steersman.runtime import predicates
from steersman.runtime.cache.cache import Cache
from steersman.runtime.client import CachedClient
from steersman.runtime.cluster import Cluster
from steersman.runtime.context import Context

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "runtime.md").read_text()
SHOWN: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("features.toml").read_text())
ABSENT = re.compile(r"\bnone\b|left to a proxy|contextlib\.suppress|see above")
ROOTS = {
    "manager": steersman.Manager,
    "client": CachedClient,
    "ctx": Context,
    "controller": steersman.Controller,
    "cache": Cache,
    "predicates": predicates,
}
SET_BY_INIT = {"client", "request", "reasons", "attempt", "fencing_token", "log", "reconcile_id", "live", "mapper"}


def rows() -> Iterator[tuple[set[str], str]]:
    """The numbers of each row, and what it says of steersman."""
    for numbers, _, ours in re.findall(r"^\| (B[^|]*) \| (.*?) \| (.*) \|$", PAGE, re.M):
        found: set[str] = set()
        for part in numbers.split(","):
            first, *last = re.findall(r"\d+", part)
            found |= {f"B{number}" for number in range(int(first), int((last or [first])[0]) + 1)}
        yield found, ours


def names() -> list[str]:
    """All code in the page that is about us."""
    reconciler = re.findall(r"^\| (`.*?) \| .* \|$", PAGE, re.M)
    return sorted(
        {name for text in [ours for _, ours in rows()] + reconciler for name in re.findall(r"`([^`]+)`", text)}
    )


def resolves(path: str) -> bool:
    """Whether there is such a module, or such a name in one."""
    module, _, name = path.rpartition(".")
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(path)
        return True
    return hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("section", SHOWN)
def test_what_is_shown_is_shown_by_tests_that_there_are(section: str) -> None:
    for number, tests in SHOWN[section].items():
        for test in tests:
            file, _, name = test.partition("::")
            assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(), re.M), (number, test)


def test_each_row_has_a_test_or_is_absent() -> None:
    listed = {number: ours for numbers, ours in rows() for number in numbers}
    for number, tests in SHOWN["features"].items():
        assert number in listed, "the page does not list it any more"
        assert tests or ABSENT.search(listed[number]), (number, listed[number])


@pytest.mark.parametrize("code", names())
def test_what_it_names_is_there(code: str) -> None:
    code = code.removeprefix("await ").removeprefix("async with ")
    dotted = re.match(r"\.?[A-Za-z_][\w.]*", code)
    if not dotted or code.startswith(("async def", "async for", "?", "/", ".")):
        return
    first, *rest = dotted[0].split(".")
    if rest and first in ("steersman", "runtime"):
        path = dotted[0].removeprefix("steersman.")
        assert resolves(f"steersman.{path}"), code
        return
    if not (first in ROOTS and rest) and not hasattr(steersman, first):
        return
    place: Any = ROOTS[first] if first in ROOTS and rest else getattr(steersman, first)
    for name in rest:
        if name in SET_BY_INIT or name == "cluster":
            place = {"client": CachedClient, "live": CachedClient, "cluster": Cluster}.get(name)
            continue
        if place in (None, Cluster):
            break
        assert hasattr(place, name), code
        place = getattr(place, name)
    for keyword in re.findall(r"[(,] ?(\w+)=", code) if callable(place) else ():
        assert keyword in inspect.signature(place).parameters, code
