"""Installing downloads wheels only, and few bytes: held to what `python -m tests.wheels.record` has recorded."""

from __future__ import annotations

import json
import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from .record import LIMIT, PLATFORMS, PROJECTS, PYTHONS, RECORD, requirements

ROOT = Path(__file__).parents[2]
RECORDED = json.loads(RECORD.read_text())
OWN = 2_000_000
"""Bytes that our own wheel may have."""
CASES = [(project, platform, python) for project in PROJECTS for platform in PLATFORMS for python in PYTHONS]


def required(project: str) -> set[str]:
    """The names of all that a project requires, and what these require in turn, as they are installed here."""
    found: set[str] = set()
    todo = requirements(project)
    while todo:
        wanted = Requirement(todo.pop())
        name = canonicalize_name(wanted.name)
        # The record is of other systems, too: what only a system or an old Python needs is not looked for.
        if name not in found and (wanted.marker is None or "sys_platform" in str(wanted.marker)):
            found.add(name)
            todo += [each for each in requires(name) or () if "extra ==" not in each]
    return found


@pytest.mark.parametrize(("project", "platform", "python"), CASES)
def test_what_is_downloaded_is_small(project: str, platform: str, python: str) -> None:
    wheels = RECORDED[project][platform][python]["wheels"]
    names = {parse_wheel_filename(name)[0] for name in wheels}
    assert required(project) <= names, "ask again: python -m tests.wheels.record"
    assert sum(wheels.values()) + OWN < LIMIT


def test_the_readme_tells_the_figures() -> None:
    def megabytes(project: str, key: str) -> list[float]:
        found = [each for pythons in RECORDED[project].values() for each in pythons.values()]
        sizes = [sum(each["wheels"].values()) if key == "wheels" else each["unpacked"] for each in found]
        return [min(sizes) / 1e6, max(sizes) / 1e6]

    text = " ".join((ROOT / "README.md").read_text().split())
    for project in ("steersman", "steersman-client"):
        told = re.search(rf"`{project}` downloads (\d+) to (\d+) MB .*?installed (\d+) to (\d+) MB", text)
        assert told, project
        figures = [*megabytes(project, "wheels"), *megabytes(project, "unpacked")]
        assert [int(each) for each in told.groups()] == [round(each) for each in figures]
