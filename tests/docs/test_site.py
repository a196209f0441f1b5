"""What the site is built with, and of."""

from __future__ import annotations

import re
import tomllib
from xml.etree import ElementTree

import pytest

from .blocks import PAGES, ROOT

LOCK = (ROOT / "requirements-docs.lock").read_text()
PICTURES = sorted((ROOT / "docs").rglob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def test_the_generator_is_pinned() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    pinned = re.findall(r"^(\S+==\S+)", LOCK, re.M)
    assert [wanted for wanted in groups["docs"] if wanted not in pinned] == [], "run `make lock`"
    entries = re.split(r"^(?=[a-z])", LOCK, flags=re.M)[1:]
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in LOCK


def test_pictures_are_used_described_and_fetch_nothing() -> None:
    text = "\n".join((ROOT / page).read_text() for page in PAGES)
    for picture in PICTURES:
        assert re.search(rf"!\[[^\]]{{20,}}\]\({picture.name}\)", text), (
            f"{picture.name} is not shown, or not described"
        )
        root = ElementTree.fromstring(picture.read_text())
        assert root.findtext(f"{SVG}title")
        assert root.findtext(f"{SVG}desc")
        assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")
        assert re.findall(r"(?:href|url\(|@import)", picture.read_text()) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_a_page_has_one_title(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    assert len(re.findall(r"^# ", text, re.M)) == 1
    assert text.startswith("# ")


def test_figures_are_those_that_were_measured() -> None:
    measured = (ROOT / "bench/README.md").read_text()
    page = (ROOT / "docs/comparison.md").read_text()
    rows = re.findall(r"^\| .*\d .*\|$", page.partition("Measured with")[2].partition("What others do better")[0], re.M)
    assert len(rows) == 5
    assert [row for row in rows if row not in measured] == []
    beside = re.findall(r"^\| the first server .*\| (.+) \| (.+) \|$|^\| memory .*\| (.+) \| (.+) \|$", page, re.M)
    figures = [figure for row in beside for figure in row if figure]
    assert len(figures) == 4
    assert [figure for figure in figures if f"| {figure} |" not in measured] == []
