"""The pages of the reference say what the code says."""

from __future__ import annotations

import re

import pytest

import steersman
import steersman.testing
from steersman.cli import COMMANDS
from steersman.generate.init_command import REQUIREMENT_VARIABLE

from .reference.pages import DIRECTORY, pages


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.delenv(REQUIREMENT_VARIABLE, raising=False)
    return pages()


def test_the_pages_are_up_to_date(made: dict[str, str]) -> None:
    kept = {path.name: path.read_text() for path in DIRECTORY.iterdir()}
    assert kept == made, "make them anew: python -m tests.docs.reference"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("python.md", [name for names in steersman._EXPORTS.values() for name in names]),
        ("testing.md", list(steersman.testing._MODULES)),
        ("commands.md", [f"steersman {name}" for name in COMMANDS]),
    ],
)
def test_nothing_is_left_out(page: str, names: list[str], made: dict[str, str]) -> None:
    headings = re.findall(r"^##+ (.+)$", made[page], re.M)
    assert sorted(set(names) - set(headings)) == []


def test_metrics_of_both_halves(made: dict[str, str]) -> None:
    for name in ("apiserver_request_total", "workqueue_depth", "controller_runtime_reconcile_total"):
        assert f"`{name}`" in made["metrics.md"]
