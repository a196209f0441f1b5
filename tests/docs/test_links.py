"""Links between pages, and to headings on them, lead somewhere; what is said of others names its source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .blocks import PAGES, ROOT

_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")


def _text(page: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)


def _anchors(page: str) -> set[str]:
    """The anchors of headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.+)$", _text(page), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    broken = []
    for link in _LINK.findall(_text(page)):
        place, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (ROOT / page).parent / place if place else ROOT / page
        if not target.exists() or (anchor and anchor not in _anchors(str(target.resolve().relative_to(ROOT)))):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_pages_of_the_site_link_to_the_site_alone(page: str) -> None:
    outside = [link for link in _LINK.findall(_text(page)) if "://" not in link and _is_outside(page, link)]
    assert outside == [], "the site has what is under docs/, and nothing else"


def _is_outside(page: str, link: str) -> bool:
    target = ((ROOT / page).parent / link.partition("#")[0]).resolve()
    return (ROOT / "docs").resolve() not in (target, *target.parents)


def test_every_page_is_in_the_navigation() -> None:
    import tomllib

    config = tomllib.loads((ROOT / "zensical.toml").read_text())
    named: list[str] = []

    def collect(items: list[dict[str, object]]) -> None:
        for item in items:
            for value in item.values():
                if isinstance(value, str):
                    named.append(value)
                else:
                    collect(value)  # type: ignore[arg-type]

    collect(config["project"]["nav"])
    assert sorted(named) == sorted(str(Path(page).relative_to("docs")) for page in PAGES if page.startswith("docs/"))
